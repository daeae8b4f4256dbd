-- lua/gpipe/nn/layer/input.lua - what our layers check of what they are called with.
--
-- Shapes and dtypes are checked by the ops, which name the layer. Here only what would never reach
-- an op: a value that is no tensor, with the layer's path and words in front.

local errors = require "gpipe.errors"
local scope = require "gpipe.nn.scope"

local input = {}

--- Return the input when it is a tensor. Errors: `3.fc (Linear 4 -> 2): input is nil, expected a
--- tensor`.
---@param layer nn.Module
---@param value any
---@param name? string "input"
---@return gpipe.Tensor
function input.tensor(layer, value, name)
  if getmetatable(value) ~= "gpipe.Tensor" then
    errors.raise("%s: %s is %s, expected a tensor", scope.label(layer), name or "input",
      errors.show(value))
  end
  return value
end

return input
