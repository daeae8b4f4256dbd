-- lua/gpipe/nn/loss/cross_entropy.lua - `nn.CrossEntropyLoss`: scores against class ids.
--
-- The class scores are the last dimension, so [B, T, V] goes with ids [B, T] without reshaping.
-- Source: PyTorch nn.CrossEntropyLoss for ignore_index, label_smoothing, weight and the mean over
-- valid ids.

local beside = require "gpipe.tensor.methods.beside"
local class = require "gpipe.nn.class"
local classes = require "gpipe.nn.loss.classes"
local core = require "gpipe.core"

---@class nn.CrossEntropyLoss: nn.ClassLoss
---@field label_smoothing number
local CrossEntropyLoss = class.new("CrossEntropyLoss", classes.Loss, true)

local OPTIONS = { label_smoothing = { type = "number", default = 0, min = 0, max = 1 } }

---@class nn.CrossEntropyOptions
---@field weight? gpipe.Tensor|number[] a number for each class
---@field ignore_index? integer
---@field label_smoothing? number 0
---@field reduction? "mean"|"sum"|"none"

--- Minus the log of the probability that softmax(output) gives to the target id.
---
--- Shapes: output [.., V] (f32 or f64), target [..] (i64, i32 or u8; ids from 0) -> scalar.
--- Units: nats. The mean is over the ids that are not ignored; if all are ignored it is 0. With
--- `weight`, a number for each class, the sum is divided by the sum of the weights of these ids.
--- "none" returns the losses one by one, for eager use.
--- Errors: shapes that do not fit; a target that is not of an integer dtype; an id outside 0 ..
--- V-1.
--- ```lua
--- local loss = nn.CrossEntropyLoss {label_smoothing = 0.1}
--- local value = loss(gp.zeros {2, 10}, gp.tensor({3, 9}, {dtype = "i64"}))
--- assert(math.abs(value:item() - math.log(10)) < 1e-5)
--- ```
---@param opts? nn.CrossEntropyOptions
function CrossEntropyLoss:init(opts) classes.Loss.init(self, opts, OPTIONS) end

-- With weights, label smoothing is computed separately: each class has its own weight in it.
function CrossEntropyLoss:losses(output, target)
  local smoothing = self.weights and 0 or self.label_smoothing
  return core.cross_entropy(output, target, self.ignore_index, smoothing)
end

function CrossEntropyLoss:weigh(losses, output, target, in_units)
  local weighed = classes.Loss.weigh(self, losses, output, target, in_units)
  if self.label_smoothing == 0 then return weighed end
  local of_classes = self.weights[in_units and "units" or "plain"]:to(losses.dtype)
  local spread = -(output:to(losses.dtype):log_softmax(-1) * beside(output, of_classes)):sum(-1)
  if self.ignore_index then
    spread = core.where(target:to("i64"):eq(self.ignore_index), 0, spread)
  end
  return weighed * (1 - self.label_smoothing)
    + spread * (self.label_smoothing / self.weights.number)
end

return CrossEntropyLoss
