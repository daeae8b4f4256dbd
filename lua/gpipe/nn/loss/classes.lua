-- lua/gpipe/nn/loss/classes.lua - what losses of class ids check: [.., V] against ids [..].

local check = require "gpipe.nn.check"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

local classes = {}

local IDS = { i64 = true, i32 = true, u8 = true }

-- The target has the output's shape without the last dimension.
local function check_shapes(self, output, target)
  local scores, ids = output.shape, target.shape
  local fits = #scores == #ids + 1
  for d = 1, #ids do fits = fits and scores[d] == ids[d] end
  if fits then return end
  local wanted = #scores == 0 and "" or
    (", expected a target of " .. check.shape_text(table.move(scores, 1, #scores - 1, 1, {})))
  errors.raise_as("shape",
    "%s: output is %s and target is %s%s (the class scores are the last dimension)",
    scope.label(self), check.shape_text(scores), check.shape_text(ids), wanted)
end

local function check_types(self, output, target)
  input.tensor(self, output, "output")
  input.tensor(self, target, "target")
  if not IDS[target.dtype] then
    errors.raise('%s: target is %s, expected class ids of dtype i64, i32 or u8 (convert with '
      .. 'target:to("i64"))', scope.label(self), target.dtype)
  end
end

--- Raise unless output and target are tensors that fit: [.., V] and integers [..].
---@param loss nn.Loss
---@param output gpipe.Tensor
---@param target gpipe.Tensor
function classes.check(loss, output, target)
  check_types(loss, output, target)
  check_shapes(loss, output, target)
end

return classes
