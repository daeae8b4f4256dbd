-- lua/gpipe/nn/loss/huber.lua - `nn.HuberLoss`, `nn.SmoothL1Loss`: squares of small differences,
-- absolute values of large ones. Source: Huber 1964; Girshick 2015 (Fast R-CNN) for the smooth
-- form.

local ElementwiseLoss = require "gpipe.nn.loss.elementwise"
local class = require "gpipe.nn.class"

local huber = {}

-- d^2 / 2 where d = |output - target| is below the bound, else bound (d - bound / 2): c (d - c / 2)
-- with c, the smaller of d and the bound.
local function bent(output, target, bound)
  local d = (output - target):abs()
  local c = d:clamp(nil, bound)
  return c * (d - c * 0.5)
end

---@class nn.HuberLoss: nn.ElementwiseLoss
---@field delta number
local HuberLoss = class.new("HuberLoss", ElementwiseLoss, true)
huber.HuberLoss = HuberLoss

--- The mean (or sum) over all elements of d^2 / 2 where d = |output - target| is below delta, else
--- delta * (d - delta / 2); "none" returns them one by one, for eager use.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Errors: shapes that differ; a delta that is not above 0.
--- ```lua
--- assert(nn.HuberLoss {delta = 2}(gp.tensor {1, 4}, gp.zeros {2}):item() == 3.25)
--- ```
---@param opts? {delta?: number, reduction?: "mean"|"sum"|"none"} delta: 1
function HuberLoss:init(opts)
  ElementwiseLoss.init(self, opts, { delta = { type = "number", default = 1, above = 0 } })
end

function HuberLoss:each(output, target) return bent(output, target, self.delta) end

---@class nn.SmoothL1Loss: nn.ElementwiseLoss
---@field beta number
local SmoothL1Loss = class.new("SmoothL1Loss", ElementwiseLoss, true)
huber.SmoothL1Loss = SmoothL1Loss

--- The mean (or sum) over all elements of d^2 / (2 beta) where d = |output - target| is below beta,
--- else d - beta / 2; "none" returns them one by one, for eager use. With beta 0 it is nn.L1Loss.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Errors: shapes that differ; a beta below 0.
--- ```lua
--- assert(nn.SmoothL1Loss {beta = 2}(gp.tensor {1, 4}, gp.zeros {2}):item() == 1.625)
--- ```
---@param opts? {beta?: number, reduction?: "mean"|"sum"|"none"} beta: 1
function SmoothL1Loss:init(opts)
  ElementwiseLoss.init(self, opts, { beta = { type = "number", default = 1, min = 0 } })
end

function SmoothL1Loss:each(output, target)
  if self.beta == 0 then return (output - target):abs() end
  return bent(output, target, self.beta) / self.beta
end

return huber
