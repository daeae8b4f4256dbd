-- lua/gpipe/nn/loss/loss.lua - what all losses share: a sum and a count make a mean.
--
-- A pipeline cannot take the mean of a micro-batch's loss, because micro-batches may hold different
-- numbers of rows or valid tokens. So a loss has two faces: calling it gives one scalar at once,
-- and `terms` gives the sum and the count apart; the pipeline adds the counts of all micro-batches
-- first and scales every micro-batch by the whole mini-batch's count.

local errors = require "gpipe.errors"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"

--- What all losses are: `terms` gives a sum and a count, the call their quotient. A loss of one's
--- own is a class over it.
--- ```lua
--- local Absolute = nn.class("Absolute", nn.Loss)
--- function Absolute:terms(output, target) return (output - target):abs():sum(), target:numel() end
--- assert(Absolute()(gp.ones {2}, gp.zeros {2}):item() == 1)
--- ```
---@class nn.Loss: nn.Module
---@field reduction "mean"|"sum"
local Loss = class.new("Loss", Module, true)

--- The sum over this (micro-)batch and what to divide by.
---
--- `sum` is a scalar tensor. `count` depends on the target alone and is an i64 scalar tensor, or an
--- integer where the shape decides, or nil for reduction "sum": no division.
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

-- A count of 0 gives loss 0 (its sum is 0): divide by 1 then. No branch on the value, because the
-- same code is traced.
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
