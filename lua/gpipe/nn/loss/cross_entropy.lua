-- lua/gpipe/nn/loss/cross_entropy.lua - `nn.CrossEntropyLoss`: scores against class ids.
--
-- The class scores are the last dimension, so [B, T, V] goes with ids [B, T] and no reshaping.
-- Source: PyTorch nn.CrossEntropyLoss for ignore_index, label_smoothing and the mean over valid
-- ids.

local core = require "gpipe.core"
local Loss = require "gpipe.nn.loss.loss"
local class = require "gpipe.nn.class"
local classes = require "gpipe.nn.loss.classes"
local options = require "gpipe.options"

---@class nn.CrossEntropyLoss: nn.Loss
---@field ignore_index? integer
---@field label_smoothing number
local CrossEntropyLoss = class.new("CrossEntropyLoss", Loss, true)

local OPTIONS = {
  ignore_index = { type = "integer" },
  label_smoothing = { type = "number", default = 0, min = 0, max = 1 },
  reduction = { choices = { "mean", "sum" }, default = "mean" },
}

--- Minus the log of the probability that softmax(output) gives to the target id.
---
--- Shapes: output [.., V] (f32 or f64), target [..] (i64, i32 or u8; ids from 0) -> scalar.
--- Units: nats. The mean is over the ids that are not ignored; none of them gives 0.
--- Errors: shapes that do not fit; a target that is not of an integer dtype; an id outside 0 ..
--- V-1.
--- ```lua
--- local loss = nn.CrossEntropyLoss {label_smoothing = 0.1}
--- local value = loss(gp.zeros {2, 10}, gp.tensor({3, 9}, {dtype = "i64"}))
--- assert(math.abs(value:item() - math.log(10)) < 1e-5)
--- ```
---@param opts? {ignore_index?: integer, label_smoothing?: number, reduction?: "mean"|"sum"}
function CrossEntropyLoss:init(opts)
  opts = options.check("nn.CrossEntropyLoss", opts, OPTIONS)
  self.ignore_index, self.label_smoothing = opts.ignore_index, opts.label_smoothing
  self.reduction = opts.reduction
end

function CrossEntropyLoss:terms(output, target)
  classes.check(self, output, target)
  local rows = core.cross_entropy(output, target, self.ignore_index, self.label_smoothing)
  local count = self.reduction == "mean" and core.cross_entropy_count(target, self.ignore_index)
  return rows:sum(), count or nil
end

function CrossEntropyLoss:describe()
  local parts = {}
  if self.ignore_index then parts[1] = ("ignore %d"):format(self.ignore_index) end
  if self.label_smoothing > 0 then
    parts[#parts + 1] = ("smoothing %g"):format(self.label_smoothing)
  end
  if self.reduction ~= "mean" then parts[#parts + 1] = self.reduction end
  return table.concat(parts, ", ")
end

return CrossEntropyLoss
