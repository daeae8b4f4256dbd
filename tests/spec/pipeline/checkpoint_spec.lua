-- tests/spec/pipeline/checkpoint_spec.lua - recomputation saves the activations of the other
-- micro-batches, and of all segments but one of the same.

local gp = require "gpipe"
local nn = gp.nn

-- Returns the peak bytes of the first device in a step.
local function peak(mode, chunks)
  local layers = {}
  for i = 1, 8 do layers[i] = nn.Sequential { nn.Linear(32, 32), nn.Tanh() } end
  local pipe <close> = gp.pipeline(nn.Sequential(layers), {
    balance = { 4, 4 }, loss = nn.MSELoss(), checkpoint = mode, chunks = chunks,
  })
  local x = gp.zeros { 256, 32 }
  pipe:step(x, x)
  return pipe.stats.peak_bytes[1]
end

describe("recomputation", function()
  it("saves memory with one micro-batch too", function()
    assert.is_true(peak("always", 1) < peak("never", 1))
    assert.equal(peak("never", 1), peak("except_last", 1)) -- the last one is the only one
  end)

  it("saves memory with several", function()
    assert.is_true(peak("always", 4) < peak("never", 4))
    assert.is_true(peak("always", 4) < peak("always", 1))
  end)
end)
