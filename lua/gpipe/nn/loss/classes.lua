-- lua/gpipe/nn/loss/classes.lua - the base of losses on class ids, and their checks: [.., V]
-- against ids [..].

local Loss = require "gpipe.nn.loss.loss"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"
local weights = require "gpipe.nn.loss.weights"

local classes = {}

local IDS = { i64 = true, i32 = true, u8 = true }

-- Check that the target has the output's shape without the last dimension.
local function check_shapes(self, output, target)
  local scores, ids = output.shape, target.shape
  local fits = #scores == #ids + 1
  for d = 1, #ids do fits = fits and scores[d] == ids[d] end
  if fits then return end
  local wanted = #scores == 0 and "" or
    (", expected a target of " .. check.shape_text(table.move(scores, 1, #scores - 1, 1, {})))
  errors.raise_as("shape",
    "%s: output is %s and target is %s%s (the class scores are the last dimension)",
    scope.label(self), check.shape_text(scores), check.shape_text(ids), wanted)
end

local function check_types(self, output, target)
  input.tensor(self, output, "output")
  input.tensor(self, target, "target")
  if not IDS[target.dtype] then
    errors.raise('%s: target is %s, expected class ids of dtype i64, i32 or u8 (convert with '
      .. 'target:to("i64"))', scope.label(self), target.dtype)
  end
end

local function check_weights(self, output)
  local number = self.weights and self.weights.number
  local scores = output.shape[#output.shape]
  if number and number ~= scores then
    errors.raise_as("shape", "%s: there are weights of %d classes, expected %d as the output has",
      scope.label(self), number, scores)
  end
end

-- ---- the base class --------------------------------------------------------------------------

--- A loss on class ids. A subclass defines `losses`: the loss of each row, not weighted.
---@class nn.ClassLoss: nn.Loss
---@field ignore_index? integer
---@field weights? gpipe.ClassWeights
local ClassLoss = class.new("ClassLoss", Loss, true)
classes.Loss = ClassLoss

local OPTIONS = {
  weight = { type = { "tensor", "table" } },
  ignore_index = { type = "integer" },
  reduction = { choices = { "mean", "sum", "none" }, default = "mean" },
}

-- more: options of the subclass.
function ClassLoss:init(opts, more)
  local who, spec = class.of(self).shown, {}
  for name, rule in pairs(OPTIONS) do spec[name] = rule end
  for name, rule in pairs(more or {}) do spec[name] = rule end
  opts = options.check(who, opts, spec)
  self.weights = weights.new(who, opts.weight)
  opts.weight = nil
  for name, value in pairs(opts) do self[name] = value end
end

--- The loss of each row; weighted by units if a mean is to be computed.
function ClassLoss:rows(output, target)
  check_types(self, output, target)
  check_shapes(self, output, target)
  check_weights(self, output)
  local losses = self:losses(output, target)
  if not self.weights then return losses end
  return self:weigh(losses, output, target, self.reduction == "mean")
end

function ClassLoss:weigh(losses, _, target, in_units)
  return losses * self.weights:of_rows(target, self.ignore_index, losses, in_units)
end

function ClassLoss:terms(output, target)
  if self.reduction == "none" then
    errors.raise('%s: reduction is "none", expected "mean" or "sum" where a loss is one number',
      scope.label(self))
  end
  local sum = self:rows(output, target):sum()
  if self.reduction == "sum" then return sum, nil end
  if self.weights then return sum, self.weights:count(target, self.ignore_index) end
  return sum, core.cross_entropy_count(target, self.ignore_index)
end

function ClassLoss:forward(output, target)
  if self.reduction == "none" then return self:rows(output, target) end
  return Loss.forward(self, output, target)
end

function ClassLoss:describe()
  local parts = {}
  if self.weights then parts[1] = ("weights of %d classes"):format(self.weights.number) end
  if self.ignore_index then parts[#parts + 1] = ("ignore %d"):format(self.ignore_index) end
  if (self.label_smoothing or 0) > 0 then
    parts[#parts + 1] = ("smoothing %g"):format(self.label_smoothing)
  end
  if self.reduction ~= "mean" then parts[#parts + 1] = self.reduction end
  return table.concat(parts, ", ")
end

return classes
