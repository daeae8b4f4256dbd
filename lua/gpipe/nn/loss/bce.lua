-- lua/gpipe/nn/loss/bce.lua - `nn.BCELoss`, `nn.BCEWithLogitsLoss`: yes or no, for each element.

local core = require "gpipe.core"
local ElementwiseLoss = require "gpipe.nn.loss.elementwise"
local class = require "gpipe.nn.class"

local bce = {}

---@class nn.BCELoss: nn.ElementwiseLoss
local BCELoss = class.new("BCELoss", ElementwiseLoss, true)
bce.BCELoss = BCELoss

--- The mean (or sum) over all elements of -(t log(p) + (1 - t) log(1 - p)) for a probability p, the
--- output, and a target t from 0 to 1; "none" gives them one by one, which is for eager use.
--- Logarithms are at least -100, so that the loss is finite where p is 0 or 1.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Units: nats. A p outside of 0 .. 1 gives NaN.
--- Errors: shapes or dtypes that differ.
--- ```lua
--- local loss = nn.BCELoss()(gp.full({2}, 0.5), gp.tensor {0, 1})
--- assert(math.abs(loss:item() - math.log(2)) < 1e-6)
--- ```
---@param opts? {reduction?: "mean"|"sum"|"none"}
function BCELoss:init(opts) ElementwiseLoss.init(self, opts) end

function BCELoss.each(_, output, target) return core.bce(output, target) end

---@class nn.BCEWithLogitsLoss: nn.ElementwiseLoss
local BCEWithLogitsLoss = class.new("BCEWithLogitsLoss", ElementwiseLoss, true)
bce.BCEWithLogitsLoss = BCEWithLogitsLoss

--- nn.BCELoss of sigmoid(output), computed of the scores themselves: exact for large ones too.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Units: nats.
--- Errors: shapes or dtypes that differ.
--- ```lua
--- local loss = nn.BCEWithLogitsLoss()(gp.zeros {2}, gp.tensor {0, 1})
--- assert(math.abs(loss:item() - math.log(2)) < 1e-6)
--- ```
---@param opts? {reduction?: "mean"|"sum"|"none"}
function BCEWithLogitsLoss:init(opts) ElementwiseLoss.init(self, opts) end

function BCEWithLogitsLoss.each(_, output, target) return core.bce_logits(output, target) end

return bce
