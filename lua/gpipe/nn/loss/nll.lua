-- lua/gpipe/nn/loss/nll.lua - `nn.NLLLoss`: logarithms of probabilities against class ids.

local core = require "gpipe.core"
local Loss = require "gpipe.nn.loss.loss"
local class = require "gpipe.nn.class"
local classes = require "gpipe.nn.loss.classes"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

---@class nn.NLLLoss: nn.Loss
---@field ignore_index? integer
local NLLLoss = class.new("NLLLoss", Loss, true)

local OPTIONS = {
  ignore_index = { type = "integer" },
  reduction = { choices = { "mean", "sum", "none" }, default = "mean" },
}

--- Minus the output at the target's id: the output holds logarithms of probabilities, as
--- nn.LogSoftmax gives them. nn.CrossEntropyLoss takes scores and needs no such layer. "none" gives
--- the losses one by one, which is for eager use.
---
--- Shapes: output [.., V] (the classes are the last dimension), target [..] (i64, i32 or u8; ids
--- from 0) -> scalar.
--- Units: nats. The mean is over the ids that are not ignored; none of them gives 0.
--- Errors: shapes that do not fit; a target that is not of an integer dtype; an id outside 0 ..
--- V-1.
--- ```lua
--- local y = nn.LogSoftmax()(gp.zeros {2, 10})
--- local value = nn.NLLLoss()(y, gp.tensor({3, 9}, {dtype = "i64"}))
--- assert(math.abs(value:item() - math.log(10)) < 1e-5)
--- ```
---@param opts? {ignore_index?: integer, reduction?: "mean"|"sum"|"none"}
function NLLLoss:init(opts)
  opts = options.check("nn.NLLLoss", opts, OPTIONS)
  self.ignore_index, self.reduction = opts.ignore_index, opts.reduction
end

function NLLLoss:rows(output, target)
  classes.check(self, output, target)
  return core.nll(output, target, self.ignore_index)
end

function NLLLoss:terms(output, target)
  if self.reduction == "none" then
    errors.raise('%s: reduction is "none", expected "mean" or "sum" where a loss is one number',
      scope.label(self))
  end
  local sum = self:rows(output, target):sum()
  if self.reduction == "sum" then return sum, nil end
  return sum, core.cross_entropy_count(target, self.ignore_index)
end

function NLLLoss:forward(output, target)
  if self.reduction == "none" then return self:rows(output, target) end
  return Loss.forward(self, output, target)
end

function NLLLoss:describe()
  local parts = {}
  if self.ignore_index then parts[1] = ("ignore %d"):format(self.ignore_index) end
  if self.reduction ~= "mean" then parts[#parts + 1] = self.reduction end
  return table.concat(parts, ", ")
end

return NLLLoss
