-- lua/gpipe/nn/loss/nll.lua - `nn.NLLLoss`: logarithms of probabilities against class ids.

local class = require "gpipe.nn.class"
local classes = require "gpipe.nn.loss.classes"
local core = require "gpipe.core"

---@class nn.NLLOptions
---@field weight? gpipe.Tensor|number[] a number for each class
---@field ignore_index? integer
---@field reduction? "mean"|"sum"|"none"

---@class nn.NLLLoss: nn.ClassLoss
local NLLLoss = class.new("NLLLoss", classes.Loss, true)

--- Minus the output at the target's id, where the output holds logarithms of probabilities, as
--- nn.LogSoftmax returns them. nn.CrossEntropyLoss takes scores and needs no such layer. "none"
--- returns the losses one by one, for eager use.
---
--- Shapes: output [.., V] (the classes are the last dimension), target [..] (i64, i32 or u8; ids
--- from 0) -> scalar.
--- Units: nats. The mean is over the ids that are not ignored; if all are ignored it is 0. With
--- `weight`, a number for each class, the sum is divided by the sum of the weights of these ids.
--- Errors: shapes that do not fit; a target that is not of an integer dtype; an id outside 0 ..
--- V-1.
--- ```lua
--- local y = nn.LogSoftmax()(gp.zeros {2, 10})
--- local value = nn.NLLLoss()(y, gp.tensor({3, 9}, {dtype = "i64"}))
--- assert(math.abs(value:item() - math.log(10)) < 1e-5)
--- ```
---@param opts? nn.NLLOptions
function NLLLoss:init(opts) classes.Loss.init(self, opts) end

function NLLLoss:losses(output, target) return core.nll(output, target, self.ignore_index) end

return NLLLoss
