-- lua/gpipe/nn/layer/activation/rrelu.lua - `nn.RReLU`: a leaky ReLU whose slopes are drawn.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"

---@class nn.RReLU: nn.Module
---@field lower number
---@field upper number
local RReLU = class.new("RReLU", Module, true)

--- x where it is above 0, else x times a slope. In training mode the slope is drawn for every
--- element between lower and upper; in evaluation mode it is their mean. Source: Xu et al., 2015.
---
--- Shapes: any. Errors: numbers that are not finite; a lower above upper.
--- ```lua
--- assert(nn.RReLU(0.5, 0.5)(gp.tensor {-2, 3}):sum():item() == 2)
--- ```
---@param lower? number 1 / 8
---@param upper? number 1 / 3
function RReLU:init(lower, upper)
  self.lower = check.number("nn.RReLU", "lower", lower == nil and 1 / 8 or lower)
  self.upper = check.number("nn.RReLU", "upper", upper == nil and 1 / 3 or upper)
  if self.lower > self.upper then
    errors.raise("nn.RReLU: lower is %g and upper %g, expected the lower one first", self.lower,
      self.upper)
  end
end

function RReLU:forward(x)
  input.tensor(self, x)
  if not self:is_training() then return x:leaky_relu((self.lower + self.upper) / 2) end
  local wide = x.dtype == "f64" and "f64" or "f32"
  local drawn = create.rand(x.shape, { dtype = wide }):to(x.dtype)
  if x.device ~= "traced" then drawn = drawn:to(x.device) end
  return core.where(x:gt(0), x, x * (drawn * (self.upper - self.lower) + self.lower))
end

function RReLU:describe() return ("%g, %g"):format(self.lower, self.upper) end

return RReLU
