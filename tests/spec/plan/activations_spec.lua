-- tests/spec/plan/activations_spec.lua - pipe:activations(): every value that a micro-batch saves,
-- with its bytes and the reason.

local expect = require "tests.support.expect"
local gp = require "gpipe"
local inside = require "gpipe.pipeline.object".inside
local nn = gp.nn

-- All values are multiples of the 64 bytes that values are aligned to.
local function blocks()
  local list = {}
  for i = 1, 4 do
    list[i] = nn.Sequential { nn.LayerNorm(128), nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128) }
  end
  return nn.Sequential(list)
end

local function gpt()
  return gp.models.gpt2 { layers = 4, width = 32, heads = 2, context = 16, vocabulary = 64 }
end

gp.seed(1)
local ids = gp.randint(0, 64, { 64, 16 })
local CASES = {
  { "blocks", blocks, gp.randn { 128, 128 }, gp.randint(0, 128, { 128 }) },
  { "a GPT", gpt, ids, ids },
}

local function open(case, opts)
  gp.seed(3)
  opts.loss, opts.seed = nn.CrossEntropyLoss(), 5
  opts.devices = { { "cpu:0", threads = 1 }, { "cpu:1", threads = 1 } }
  local pipe = gp.pipeline(case[2](), opts)
  pipe:step(case[3], case[4])
  return pipe
end

-- Bytes that a micro-batch keeps of each stage, as the plan says: of one that keeps everything, or
-- of one that follows the mode.
local function kept_of(pipe)
  local own = inside(pipe)
  local _, plan = next(own.plans)
  local list = {}
  for stage = 0, own.stages - 1 do
    local info = own.core:stage(plan.handle, stage, 0)
    list[stage] = info.kept > 0 and info.kept_bytes or info.held_bytes
  end
  return list
end

local function sums_of(pipe)
  local sums = {}
  for stage = 0, inside(pipe).stages - 1 do sums[stage] = 0 end
  for _, one in ipairs(pipe:activations()) do sums[one.stage] = sums[one.stage] + one.bytes end
  return sums
end

local function total(list)
  local sum = 0
  for _, one in ipairs(list) do sum = sum + one.bytes end
  return sum
end

describe("pipe:activations()", function()
  for _, case in ipairs(CASES) do
    it("adds up to what each stage keeps of a micro-batch: " .. case[1], function()
      for _, checkpoint in ipairs { "never", "selective", "always" } do
        for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1" } do
          local pipe <close> = open(case, {
            chunks = 4, checkpoint = checkpoint, schedule = schedule,
          })
          assert.same(kept_of(pipe), sums_of(pipe), checkpoint .. ", " .. schedule)
        end
      end
    end)

    it("says of every value what made it, where, how large it is and why: " .. case[1], function()
      local pipe <close> = open(case, { chunks = 4, checkpoint = "never" })
      local list = pipe:activations()
      assert.is_true(#list > 0)
      for _, one in ipairs(list) do
        assert.is_true(one.bytes > 0 and #one.op > 0 and #one.name > 0 and #one.shape > 0)
        assert.is_truthy(one.why:find "^read by %S+" or one.why:find "^kept, because", one.why)
        assert.is_true(one.layer >= 1 and one.stage >= 0)
      end
      local text = tostring(list)
      assert.is_truthy(text:find("why", 1, true))
      assert.is_truthy(text:find("total", 1, true))
    end)

    it("lists less the more runs again: " .. case[1], function()
      local sums = {}
      for k, checkpoint in ipairs { "never", "selective", "always" } do
        local pipe <close> = open(case, { chunks = 4, checkpoint = checkpoint })
        sums[k] = total(pipe:activations())
      end
      assert.is_true(sums[1] > sums[2] and sums[2] > sums[3], table.concat(sums, " "))
    end)
  end

  it("lists what layers keep that are named one by one", function()
    local case = CASES[1]
    local pipe <close> = open(case, {
      chunks = 1, balance = { 2, 2 }, checkpoint = { "keep", "recompute", "keep", "selective" },
    })
    local by_layer = {}
    for _, one in ipairs(pipe:activations()) do
      by_layer[one.layer] = (by_layer[one.layer] or 0) + one.bytes
    end
    assert.is_true((by_layer[2] or 0) < by_layer[1])
    assert.is_true(by_layer[4] < by_layer[3])
  end)

  it("wants a step first", function()
    local pipe <close> = gp.pipeline(blocks(), { loss = nn.CrossEntropyLoss() })
    expect.fails_with("nothing is planned yet", pipe.activations, pipe)
  end)
end)
