-- lua/gpipe/nn/layer/input.lua - checks the inputs of our layers.
--
-- The ops check shapes and dtypes, and their errors name the layer. Here only a value that would
-- never reach an op is checked: one that is not a tensor. The error begins with the layer's path
-- and description.

local errors = require "gpipe.errors"
local scope = require "gpipe.nn.scope"

local input = {}

--- Return the input if it is a tensor. Errors: `3.fc (Linear 4 -> 2): input is nil, expected a
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
