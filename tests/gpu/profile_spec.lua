-- tests/gpu/profile_spec.lua - pipe:profile on GPUs: the device times the ops of a replayed step,
-- which keeps the bits of one that is not profiled.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local profile = require "tests.support.profile"
local on_gpu = gpu.spec(it)

local ONE, TWO = { "cuda:0" }, { "cuda:0", "cuda:0" }

local function held()
  collectgarbage()
  local bytes = 0
  for _, memory in pairs(gp.memory()) do bytes = bytes + memory.live end
  return bytes
end

describe("pipe:profile", function()
  on_gpu("counts what a CPU counts, in graphs and launched op by op", function()
    local function counts(p)
      local found = {}
      for _, row in ipairs(p.rows) do
        if row.phase == "forward" or row.phase == "backward" then
          local key = row.phase .. row.op
          found[key] = (found[key] or 0) + row.count
        end
      end
      return found
    end
    -- without the loss, which a GPU computes together with its gradient
    local function forward(p)
      return profile.sum(p, "flop", function(row)
        return row.phase == "forward" and not row.op:find "^cross_entropy"
      end)
    end
    local fields = { checkpoint = "always" }
    local p = profile.take(ONE, fields)
    profile.check_sums(p)
    assert.same(counts(p), counts(profile.take(ONE, fields, { ceilings = false, eager = true })))
    assert.equal(forward(profile.take({ "cpu:0" }, fields)), forward(p))
  end)

  on_gpu("reports copies, updates, and the gaps of a replayed step", function()
    local p = profile.take(TWO)
    for _, device in ipairs(p.devices) do
      assert.is_true(device.kernels > 0 and device.updates > 0)
      assert.is_true(math.abs(device.kernels + device.gaps - device.replayed) < 1e-9)
    end
    local names = {}
    for _, row in ipairs(p.rows) do names[row.op] = true end
    assert.is_true(names.adamw and names.norm and names.receive)
    assert.is_true(p.overhead >= 0)
  end)

  on_gpu("changes no bit of training, and leaves no memory", function()
    local losses, weights = profile.training(TWO, {}, false)
    local before = held()
    local timed, same = profile.training(TWO, {}, true)
    assert.equal(before, held())
    assert.same(losses, timed)
    assert.equal(weights, same)
  end)

  on_gpu("reports values that cross between GPUs", function()
    local p = profile.take({ "cuda:0", "cuda:1" })
    assert.is_true(p.devices[1].copies > 0 and p.devices[2].copies > 0)
  end, 2)
end)
