-- lua/gpipe/nn/loss/loss.lua - the base of all losses: a sum and a count make a mean.
--
-- A pipeline cannot take the mean of a micro-batch's loss, because micro-batches may hold different
-- numbers of rows or valid tokens. So a loss has two forms: calling it returns one scalar, and
-- `terms` returns the sum and the count separately. The pipeline first adds the counts of all
-- micro-batches, and then scales every micro-batch by the count of the whole mini-batch.

local errors = require "gpipe.errors"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"

--- The base of all losses: `terms` returns a sum and a count, and a call returns their quotient. To
--- write your own loss, inherit from this class.
--- ```lua
--- local Absolute = nn.class("Absolute", nn.Loss)
--- function Absolute:terms(output, target) return (output - target):abs():sum(), target:numel() end
--- assert(Absolute()(gp.ones {2}, gp.zeros {2}):item() == 1)
--- ```
---@class nn.Loss: nn.Module
---@field reduction "mean"|"sum"
local Loss = class.new("Loss", Module, true)

--- Return the sum over this (micro-)batch and the number to divide it by.
---
--- `sum` is a scalar tensor. `count` depends only on the target. It is an i64 scalar tensor, or an
--- integer if the shape determines it, or nil for reduction "sum": no division.
--- ```lua
--- local sum, count = nn.MSELoss {}:terms(gp.ones {2, 3}, gp.zeros {2, 3})
--- assert(sum:item() == 6 and count == 6)
--- ```
---@param output gpipe.Tensor
---@param target gpipe.Tensor
---@return gpipe.Tensor sum
---@return gpipe.Tensor|integer|nil count
function Loss:terms(output, target) -- luacheck: ignore 212
  local shown = class.of(self).shown
  errors.raise("%s: there is no terms, expected `function %s:terms(output, target)`", shown, shown)
end

-- If the count is 0, divide by 1: the sum is 0, and so is the loss. There is no branch on the
-- value, because the same code is traced.
local function at_least_one(count, dtype)
  local zero = count:eq(0):to(dtype)
  return count:to(dtype) + zero
end

Loss[class.TAKES] = function(self) return self.terms, 1 end

function Loss:forward(...)
  local sum, count = self:terms(...)
  if count == nil then return sum end
  if math.type(count) then return sum / math.max(count, 1) end
  return sum / at_least_one(count, sum.dtype)
end

return Loss
