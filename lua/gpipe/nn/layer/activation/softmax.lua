-- lua/gpipe/nn/layer/activation/softmax.lua - `nn.Softmax`: scores to shares that sum to 1.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"

---@class nn.Softmax: nn.Module
---@field over integer the dimension
local Softmax = class.new("Softmax", Module, true)

--- exp(x) divided by its sum along a dimension. (A model that ends in nn.CrossEntropyLoss needs
--- none: that loss takes scores.)
---
--- Shapes: any.
--- Errors: dim 0 or no integer; when called, a dimension the input does not have.
--- ```lua
--- local y = nn.Softmax(2)(gp.ones {3, 4})
--- assert(y:sum():item() == 3)
--- ```
---@param dim? integer from 1, negative from the end; -1
function Softmax:init(dim)
  local who = class.of(self).shown
  self.over = check.integer(who, "dim", dim == nil and -1 or dim)
  if self.over == 0 then check.fail(who, "dim", 0, "1 or more, or negative") end
end

function Softmax:forward(x) return input.tensor(self, x):softmax(self.over) end

function Softmax:describe() return tostring(self.over) end

return Softmax
