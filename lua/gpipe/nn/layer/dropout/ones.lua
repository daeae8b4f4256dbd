-- lua/gpipe/nn/layer/dropout/ones.lua - the ones that a dropout keeps or sets to zero.
--
-- They are computed from the input, so that they have as many rows as the micro-batch.

local check = require "gpipe.nn.check"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

local ones = {}

--- A one for each element.
---@param layer nn.Module
---@param x gpipe.Tensor
---@return gpipe.Tensor
function ones.of_elements(layer, x) return input.tensor(layer, x):isnan():to(x.dtype) * 0 + 1 end

--- A one for each channel of each row. Errors: fewer than two dimensions.
---@param layer nn.Module
---@param x gpipe.Tensor [N, C, ..]
---@return gpipe.Tensor [N, C, 1, ..]
function ones.of_channels(layer, x)
  if input.tensor(layer, x):dim() < 2 then
    errors.raise("%s: the input is %s, expected rows and channels", scope.label(layer),
      check.shape_text(x.shape))
  end
  local first = x
  for d = 3, x:dim() do first = first:narrow(d, 1, 1) end
  return first:isnan():to(x.dtype) * 0 + 1
end

return ones
