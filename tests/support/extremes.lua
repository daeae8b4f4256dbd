-- tests/support/extremes.lua - losses and layers at the ends of what a dtype holds, on any device.

local assert = require "luassert"
local gp = require "gpipe"

local nn = gp.nn

local extremes = {}

-- ---- cross entropy -------------------------------------------------------------------------------

-- A model that returns its only parameter.
local Constant = nn.class "Constant"
function Constant:init(value) self.value = nn.Parameter(value.shape, value, { dtype = value.dtype }) end
function Constant:forward(x) return self.value + x * 0 end

-- Loss and gradient of the mean cross entropy of logits [R, V] for classes 0, 1, ...
local function losses_of(case, logits)
  local rows = logits.shape[1]
  local options = { devices = { case.device }, precision = case.precision, chunks = 1 }
  options.loss = nn.CrossEntropyLoss { label_smoothing = case.smoothing or 0 }
  local pipe <close> = gp.pipeline(nn.Sequential { Constant(logits) }, options)
  local ids = gp.arange(0, rows - 1, { dtype = "i64" })
  local loss = pipe:step(gp.ones({ rows, 1 }, { dtype = logits.dtype }), ids)
  return loss, pipe:parameters()[1].grad:to("cpu"):clone()
end

local ROWS = 3

-- Whole numbers from 0 to 7, so that adding a whole offset is exact.
local function steps(width)
  local list = {}
  for i = 1, ROWS * width do list[i] = (i * i + i // width) % 8 end
  return gp.tensor(list):reshape { ROWS, width }
end

--- Check that an offset common to all logits changes no bit. case: {device, width, smoothing, precision}
function extremes.check_offsets(case, offsets)
  local logits = steps(case.width)
  local loss, grad = losses_of(case, logits)
  for _, offset in ipairs(offsets) do
    local other, its = losses_of(case, logits + offset)
    assert.are.equal(loss, other)
    assert(gp.equal(grad, its), ("%d classes, offset %g: the gradient differs"):format(case.width, offset))
  end
end

--- Check loss and gradient where all logits are one value: log V, and 1 / V off the class.
function extremes.check_equal(case, value)
  local smoothing, width = case.smoothing or 0, case.width
  local loss, grad = losses_of(case, gp.full({ ROWS, width }, value))
  local off = (1 - smoothing) / width / ROWS
  assert.near(math.log(width), loss, case.bound * math.log(width))
  for r, row in ipairs(grad:totable()) do
    for j, g in ipairs(row) do
      assert.near(j == r and off - (1 - smoothing) / ROWS or off, g, case.bound)
    end
  end
end

return extremes
