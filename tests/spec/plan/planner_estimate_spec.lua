-- tests/spec/plan/planner_estimate_spec.lua - the planner's estimate of a device's bytes is near what
-- the runtime plans, also where I and W run apart.
local gp = require "gpipe"
local candidates = require "gpipe.plan.candidates"
local exact = require "gpipe.plan.exact"
local fit = require "gpipe.plan.fit"
local rate = require "gpipe.plan.rate"
local request = require "gpipe.plan.request"
local settle = require "gpipe.plan.settle"
local nn = gp.nn

local DEVICES, CHUNKS = 4, 8

-- How far the estimates of a schedule and a policy are from the exact bytes: least and most.
local function shares(kind, schedule, policy)
  local ids, list = gp.zeros({ 2 * CHUNKS, 32 }, { dtype = "i64" }), {}
  for d = 1, DEVICES do
    list[d] = { kind .. ":" .. d - 1, threads = kind == "cpu" and 1 or nil, memory = "1GiB",
      flops = 1e12, bandwidth = 1e11 }
  end
  local problem = request.read(gp.models.gpt2 { layers = 16, width = 64, heads = 2, context = 32,
    vocabulary = 256 }, { ids, ids }, { devices = list, chunks = CHUNKS, checkpoint = policy,
    loss = nn.CrossEntropyLoss(), optimizer = "AdamW" })
  local shape = candidates.shape(schedule, DEVICES, CHUNKS, true)
  shape.asked = CHUNKS
  local case = fit.case(problem, shape, candidates.lowered(shape, policy), policy)
  local balance, taken = fit.cut(problem, case)
  local row = settle.row(problem, case, balance, taken, rate.run(problem, case, balance))
  local low, high = math.huge, 0
  for d, bytes in ipairs((exact.bytes(problem, row))) do
    low, high = math.min(low, taken[d].bytes / bytes), math.max(high, taken[d].bytes / bytes)
  end
  return low, high
end

describe("the planner's estimate of bytes", function()
  for _, kind in ipairs { "cpu", "sim" } do
    for _, schedule in ipairs { "1f1b", "gpipe", "zb_h1", "zb_h2", "interleaved_1f1b" } do
      it(("is near the plan's: %s on %s devices"):format(schedule, kind), function()
        for _, policy in ipairs { "never", "selective", "always" } do
          local low, high = shares(kind, schedule, policy)
          assert.is_true(low > 0.9 and high < 1.16 and (high < 1.1 or policy == "always"),
            ("%s: %g to %g"):format(policy, low, high))
        end
      end)
    end
  end

  it("counts what I leaves for W by the schedule", function()
    local function carried(name)
      return gp.schedule.build(name, { devices = 4, chunks = 8 }):peak_carried().devices
    end
    assert.same({ 1, 2, 3, 4 }, carried "zb_h1")
    assert.same({ 0, 0, 0, 0 }, carried "1f1b")
  end)
end)
