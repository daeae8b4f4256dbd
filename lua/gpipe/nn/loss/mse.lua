-- lua/gpipe/nn/loss/mse.lua - `nn.MSELoss`: squared differences.

local core = require "gpipe.core"
local ElementwiseLoss = require "gpipe.nn.loss.elementwise"
local class = require "gpipe.nn.class"

---@class nn.MSELoss: nn.ElementwiseLoss
local MSELoss = class.new("MSELoss", ElementwiseLoss, true)

--- The mean (or sum) over all elements of (output - target)^2; "none" returns them one by one, for
--- eager use.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Errors: shapes that differ (nothing is broadcast: [32] against [32, 1] is nearly always a
--- mistake).
--- ```lua
--- local loss = nn.MSELoss {reduction = "sum"}
--- assert(loss(gp.ones {2, 3}, gp.zeros {2, 3}):item() == 6)
--- ```
---@param opts? {reduction?: "mean"|"sum"|"none"}
function MSELoss:init(opts) ElementwiseLoss.init(self, opts) end

function MSELoss.each(_, output, target) return (output - target):square() end

-- Compute the sum by one op, which reads halves directly.
function MSELoss:terms(output, target)
  if self.reduction == "none" then return ElementwiseLoss.terms(self, output, target) end
  self:check(output, target)
  return core.mse(output, target), self:count(output)
end

return MSELoss
