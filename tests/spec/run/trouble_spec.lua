-- tests/spec/run/trouble_spec.lua - a run in a hostile environment: a full disk, a folder that is
-- gone or cannot be written, another host's name, a clock that was set back.

local child = require "tests.child"
local core = require "gpipe.core"
local gp = require "gpipe"
local json = require "gpipe.io.json"

local SCRIPT = [[
  local gp = require "gpipe"
  local nn = gp.nn
  local opt = require "gpipe.flags".parse("Train.", {
    { "--steps N", 12, "steps" }, { "--width N", 8, "units" },
    { "--at N", 0, "the step before which --do is done", min = 0 }, { "--do COMMAND", "true", "" },
  }, arg, { run = true })
  gp.seed(1)
  local model = nn.Sequential { nn.Linear(4, opt.width), nn.Dropout(0.1), nn.Linear(opt.width, 2) }
  local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
  local adam = gp.optim.Adam(pipe:parameters(), { lr = 0.1 })
  local x, y = gp.randn({ 20, 4 }, { seed = 1 }), gp.randn({ 20, 2 }, { seed = 2 })
  local run = gp.run("trouble", {
    flags = opt, pipe = pipe, opt = adam, steps = opt.steps, every = 2, background = false,
    data = gp.data.epochs(gp.data.tensors(x, y), { batch = 6 }), quiet = true,
  })
  for step, bx, by in run:steps() do
    if step == opt.at then os.execute(opt["do"]) end
    local loss = pipe:step(bx, by)
    adam:step()
    run:log(step, { loss = loss })
  end
  run:finish()
]]

local script, place
before_each(function()
  script, place = child.file(SCRIPT), os.tmpname()
  os.remove(place)
end)
after_each(function()
  os.remove(script)
  os.execute("rm -rf " .. place)
end)

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function train(before, ...)
  local words = { before, "exec", child.quote(child.program), child.quote(script) }
  for _, word in ipairs { ... } do words[#words + 1] = child.quote(word) end
  return child.shell(table.concat(words, " "))
end

-- Removes the line that says which settings differ from those of the run's start, which quiet runs
-- print too.
local function without_settings(err)
  local rest, count = err:gsub("gpipe: [^\n]*: started with other settings: steps [^\n]*\n", "")
  assert.equal(1, count, err)
  return rest
end

describe("a run #process", function()
  it("keeps its last checkpoint where the disk is full, tries again, and ends", function()
    local _, err, code = train("", "--run-dir", place, "--steps", "4", "--width", "4000")
    assert.same({ "", 0 }, { err, code })
    local before = read(place .. "/checkpoints/step-00000004/MANIFEST.json")
    _, err, code = train("ulimit -f 100;", "--run-dir", place, "--steps", "12", "--width", "4000")
    assert.equal(1, code)
    local _, said = err:gsub("the checkpoint was not saved", "")
    assert.equal(3, said, err)
    assert.matches("3 checkpoints in a row", err)
    assert.equal(before, read(place .. "/checkpoints/step-00000004/MANIFEST.json"))
    assert.same({ "step-00000002", "step-00000004" }, core.folder_names(place .. "/checkpoints"))
    assert.equal("failed", json.read(place .. "/state.json").state)
    _, err, code = train("", "--run-dir", place, "--steps", "12", "--width", "4000")
    assert.same({ "", 0 }, { without_settings(err), code })
    local log = read(place .. "/log.jsonl")
    for step = 1, 12 do
      assert.equal(1, select(2, log:gsub(('"step":%d,'):format(step), "")), log)
    end
  end)

  it("reports that its folder is gone, and trains to the end", function()
    local _, err, code = train("", "--run-dir", place, "--at", "5", "--do", "rm -r " .. place)
    assert.equal(0, code, err)
    assert.is_truthy(err:find(place, 1, true), err)
    assert.matches("records are lost", err)
    assert.truthy(gp.checkpoint.read(place .. "/checkpoints/step-00000012"))
  end)

  it("names a folder that it may not write", function()
    -- root may write everywhere except to the kernel's files
    local _, err, code = train("", "--run-dir", "/proc/gpipe-run")
    assert.equal(1, code)
    assert.is_truthy(err:find("/proc/gpipe-run", 1, true), err)
  end)

  it("goes on under another host's name, with the clock set back", function()
    local _, err, code = train("", "--run-dir", place, "--steps", "7")
    assert.same({ "", 0 }, { err, code })
    for _, name in ipairs { "config.json", "state.json", "checkpoints/step-00000007/MANIFEST.json" } do
      os.execute(("touch -d 2100-01-01 %s/%s"):format(place, name))
    end
    local old = json.read(place .. "/state.json")
    old.host, old.updated, old.pid = "elsewhere", old.updated + 1000000, 1
    local file <close> = assert(io.open(place .. "/state.json", "w"))
    file:write(json.encode(old))
    file:close()
    _, err, code = train("", "--run-dir", place)
    assert.same({ "", 0 }, { without_settings(err), code })
    local state = json.read(place .. "/state.json")
    assert.same({ 12, "finished" }, { state.step, state.state })
    assert.is_true(state.seconds > 0)
  end)
end)
