-- lua/gpipe/nn/loss/l1.lua - `nn.L1Loss`: absolute differences.

local ElementwiseLoss = require "gpipe.nn.loss.elementwise"
local class = require "gpipe.nn.class"

---@class nn.L1Loss: nn.ElementwiseLoss
local L1Loss = class.new("L1Loss", ElementwiseLoss, true)

--- The mean (or sum) over all elements of |output - target|; "none" returns them one by one, for
--- eager use. Where both are equal the gradient is 0.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Errors: shapes that differ.
--- ```lua
--- assert(nn.L1Loss()(gp.tensor {1, -2}, gp.zeros {2}):item() == 1.5)
--- ```
---@param opts? {reduction?: "mean"|"sum"|"none"}
function L1Loss:init(opts) ElementwiseLoss.init(self, opts) end

function L1Loss.each(_, output, target) return (output - target):abs() end

return L1Loss
