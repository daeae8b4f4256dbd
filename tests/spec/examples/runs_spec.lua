-- tests/spec/examples/runs_spec.lua - every example supports the options of runs: --run-dir,
-- --resume, --minutes and --dry-run.

local child = require "tests.child"
local core = require "gpipe.core"
local run = require "tests.support.example".run

local EXAMPLES = {
  "digits.lua",
  "quickstart.lua --layers 1 --width 16 --context 16",
  "mnist/train.lua --synthetic",
  "cifar10/train.lua --synthetic",
  "unet/train.lua --synthetic",
  "resnet101/train.lua --synthetic --depth 18 --size 32",
  "amoebanet/train.lua --synthetic --filters 16",
  "char-lm/train.lua --synthetic",
  "transformer-lm/train.lua --synthetic",
  "gpt2-squad/train.lua --synthetic",
}

describe("with --dry-run", function()
  for _, example in ipairs(EXAMPLES) do
    it("examples/" .. example:match "%S+", function()
      local text, code = run(example .. " --dry-run --quiet")
      assert.are.equal(0, code, text)
      assert.is_truthy(text:find("\ndevice +model +gradients +optimizer +a step +in all\n"), text)
      assert.is_truthy(text:find("\ncpu:0 +[%d.]+ "), text)
    end)
  end
end)

describe("with --run-dir", function()
  local place
  before_each(function()
    place = os.tmpname()
    os.remove(place)
  end)
  after_each(function() os.execute("rm -rf " .. place) end)

  local function read(path)
    local file <close> = assert(io.open(path, "rb"))
    return file:read "a"
  end

  -- Trains in a folder; returns what it printed and the exit code.
  local function train(name, more)
    return run(("quickstart.lua --steps 30 --layers 1 --width 16 --context 16 --batch 4 --length 5 "
      .. "--quiet --run-dir %s/%s %s"):format(place, name, more or ""))
  end

  it("a killed and restarted quickstart.lua ends like one that was never killed", function()
    local text, code = train "whole"
    assert.are.equal(0, code, text)
    local stopped
    text, stopped = train("cut", "--minutes 0.0001")
    assert.are.equal(75, stopped, text)
    for _ = 1, 3 do
      local limit = ("timeout -s KILL %.2f "):format(0.1 + 0.1 * math.random())
      os.execute(limit .. child.quote(child.program) .. " examples/quickstart.lua --steps 30 "
        .. "--layers 1 --width 16 --context 16 --batch 4 --length 5 --quiet --run-dir " .. place
        .. "/cut >/dev/null 2>&1")
    end
    text, code = train("cut", "--resume")
    assert.are.equal(0, code, text)
    assert.are.equal(read(place .. "/whole/log.jsonl"), read(place .. "/cut/log.jsonl"))
    local last = "/checkpoints/step-00000030/stage-1.safetensors"
    assert.are.equal(read(place .. "/whole" .. last), read(place .. "/cut" .. last))
  end)

  it("digits.lua goes on with --resume alone where there is a checkpoint", function()
    local text, code = run(("digits.lua --quiet --resume --run-dir %s/none"):format(place))
    assert.are.equal(1, code)
    assert.is_truthy(text:find("no checkpoint", 1, true), text)
    text, code = run(("digits.lua --quiet --epochs 2 --run-dir %s/digits"):format(place))
    assert.are.equal(0, code, text)
    assert.are.same({ "step-00000046" }, core.folder_names(place .. "/digits/checkpoints"))
    text, code = run(("digits.lua --quiet --epochs 2 --resume --run-dir %s/digits"):format(place))
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find("held-out digits are right", 1, true), text)
  end)
end)
