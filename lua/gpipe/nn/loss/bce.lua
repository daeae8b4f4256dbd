-- lua/gpipe/nn/loss/bce.lua - `nn.BCELoss`, `nn.BCEWithLogitsLoss`: binary cross entropy, yes or no
-- for each element.

local core = require "gpipe.core"
local ElementwiseLoss = require "gpipe.nn.loss.elementwise"
local beside = require "gpipe.tensor.methods.beside"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local bce = {}

local NUMBERS = { type = { "tensor", "table", "number" } }

-- Make a tensor from a number, a list or a tensor; nil stays nil. Errors: numbers below 0, if the
-- values are known.
local function constant(who, name, given)
  if given == nil then return nil end
  local t = is_tensor(given) and given or core.tensor(given, "f64")
  if t.device == "traced" or t:ge(0):all():item() then return t end
  errors.raise("%s: %s has numbers that are negative or NaN, expected >= 0", who, name)
end

-- Multiply each loss by a weight, which broadcasts over the rows.
local function weighed(self, output, losses)
  if not self.weight then return losses end
  return losses * beside(output, self.weight:to(losses.dtype))
end

---@class nn.BCEOptions
---@field weight? gpipe.Tensor|number[]|number of each element's loss, broadcast over the rows
---@field reduction? "mean"|"sum"|"none"

---@class nn.BCELoss: nn.ElementwiseLoss
local BCELoss = class.new("BCELoss", ElementwiseLoss, true)
bce.BCELoss = BCELoss

--- The mean (or sum) over all elements of -(t log(p) + (1 - t) log(1 - p)) for a probability p, the
--- output, and a target t from 0 to 1; "none" returns them one by one, for eager use. Logarithms
--- are at least -100, so that the loss is finite where p is 0 or 1.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Units: nats. A p outside of 0 .. 1 gives NaN.
--- Errors: shapes or dtypes that differ.
--- ```lua
--- local loss = nn.BCELoss()(gp.full({2}, 0.5), gp.tensor {0, 1})
--- assert(math.abs(loss:item() - math.log(2)) < 1e-6)
--- ```
---@param opts? nn.BCEOptions
function BCELoss:init(opts)
  ElementwiseLoss.init(self, opts, { weight = NUMBERS })
  self.weight = constant("nn.BCELoss", "weight", self.weight)
end

function BCELoss:each(output, target) return weighed(self, output, core.bce(output, target)) end

---@class nn.BCEWithLogitsLoss: nn.ElementwiseLoss
local BCEWithLogitsLoss = class.new("BCEWithLogitsLoss", ElementwiseLoss, true)
bce.BCEWithLogitsLoss = BCEWithLogitsLoss

---@class nn.BCEWithLogitsOptions
---@field weight? gpipe.Tensor|number[]|number of each element's loss, broadcast over the rows
---@field pos_weight? gpipe.Tensor|number[]|number of the term for targets of 1, likewise
---@field reduction? "mean"|"sum"|"none"

--- nn.BCELoss of sigmoid(output), computed from the scores themselves, so it is exact for large
--- scores too.
---
--- Shapes: output and target of the same shape and dtype -> scalar.
--- Units: nats.
--- Errors: shapes or dtypes that differ.
--- ```lua
--- local loss = nn.BCEWithLogitsLoss()(gp.zeros {2}, gp.tensor {0, 1})
--- assert(math.abs(loss:item() - math.log(2)) < 1e-6)
--- ```
---@param opts? nn.BCEWithLogitsOptions
function BCEWithLogitsLoss:init(opts)
  ElementwiseLoss.init(self, opts, { weight = NUMBERS, pos_weight = NUMBERS })
  self.weight = constant("nn.BCEWithLogitsLoss", "weight", self.weight)
  self.pos_weight = constant("nn.BCEWithLogitsLoss", "pos_weight", self.pos_weight)
end

function BCEWithLogitsLoss:each(output, target)
  local losses = core.bce_logits(output, target)
  if self.pos_weight then
    local more = beside(output, self.pos_weight:to(output.dtype) - 1)
    losses = losses + target * more * core.bce_logits(output, target * 0 + 1)
  end
  return weighed(self, output, losses)
end

return bce
