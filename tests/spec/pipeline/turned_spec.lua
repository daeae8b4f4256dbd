-- tests/spec/pipeline/turned_spec.lua - on GPUs, plans turn the weights of convolutions once for all
-- micro-batches (runtime/graph/turn.c). Plans for devices that are not there show it; that no bit
-- changes is tested where kernels run (tests/spec/cuda).

local gp = require "gpipe"
local nn = gp.nn

-- Two kernels of 3 x 3, one of 1 x 1, and one of a channel a group: the last two need no turn.
local function model()
  return nn.Sequential {
    nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, { groups = 8 }), nn.Conv2d(8, 4, 3),
    nn.Flatten(), nn.Linear(16, 2),
  }
end

-- Returns the number of ops of a name in an action of the plan.
local function count(devices, action, op)
  local dry = gp.dry_run(model(), {
    devices = devices, chunks = 2, loss = nn.CrossEntropyLoss(), precision = "bf16",
    sample = { gp.zeros { 4, 3, 8, 8 }, gp.zeros({ 4 }, { dtype = "i64" }) },
  })
  local found = dry.core:ops(dry.core, 0, action)[op]
  return found and found.count or 0
end

local GPU, CPU = { {} }, { { own = false } }

describe("the weights of convolutions", function()
  it("are turned once a step for GPUs, forward and backward together", function()
    assert.are.equal(2, count(GPU, "P", "copy"))
    assert.are.equal(count(GPU, "F", "copy"), count(CPU, "F", "copy"))
    assert.are.equal(4, count(GPU, "F", "conv2d"))
    assert.are.equal(3, count(GPU, "B", "conv_transpose2d"))
  end)

  it("are packed and not turned where a device is a CPU", function()
    assert.are.equal(0, count(CPU, "P", "copy"))
  end)
end)
