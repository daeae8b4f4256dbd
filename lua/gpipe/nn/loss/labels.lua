-- lua/gpipe/nn/loss/labels.lua - losses on scores and one or several right classes:
-- `nn.MultiMarginLoss`, `nn.MultiLabelMarginLoss`, `nn.MultiLabelSoftMarginLoss`.
--
-- The classes are the last dimension. Formulas are PyTorch's; ids count from 0.

local Loss = require "gpipe.nn.loss.loss"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

local labels = {}

-- ---- the base class --------------------------------------------------------------------------

-- A loss that gives one number for each row of scores.
---@class nn.LabelsLoss: nn.Loss
local LabelsLoss = class.new("LabelsLoss", Loss, true)

local function weights(value)
  local t = is_tensor(value) and value or core.tensor(value, "f32")
  if #t.shape ~= 1 then return "a number for each class" end
end

local function set_up(self, opts, spec)
  spec.weight = { type = { "tensor", "table" }, check = weights }
  spec.reduction = { choices = { "mean", "sum", "none" }, default = "mean" }
  local checked = options.check(class.of(self).shown, opts, spec)
  for name, value in pairs(checked) do self[name] = value end
  local weight = self.weight
  if weight and not is_tensor(weight) then self.weight = core.tensor(weight, "f32") end
end

local function weight_for(self, scores)
  if not self.weight then return nil end
  local classes = scores.shape[#scores.shape]
  if self.weight.shape[1] ~= classes then
    errors.raise_as("shape", "%s: there are weights of %d classes, expected %d as the output has",
      scope.label(self), self.weight.shape[1], classes)
  end
  return beside(scores, self.weight:to(scores.dtype))
end

-- Check that the target has the sizes of the scores, without the last `without` dimensions.
local function check_target(self, scores, target, without)
  local shape = input.tensor(self, scores, "output").shape
  local wanted = table.move(shape, 1, #shape - without, 1, {})
  local have = input.tensor(self, target, "target").shape
  if #shape == 0 or check.shape_text(have) ~= check.shape_text(wanted) then
    errors.raise_as("shape", "%s: output is %s and target is %s, expected %s", scope.label(self),
      check.shape_text(shape), check.shape_text(have), check.shape_text(wanted))
  end
end

local IDS = { i64 = true, i32 = true, u8 = true }

local function check_ids(self, target, least, classes)
  if not IDS[target.dtype] then
    errors.raise('%s: target is %s, expected class ids of i64 (convert with target:to("i64"))',
      scope.label(self), target.dtype)
  end
  if core.tracing() or target:numel() == 0 then return end
  local low, high = target:amin():item(), target:amax():item()
  if low < least or high >= classes then
    errors.raise("%s: ids are %d to %d, expected %d to %d", scope.label(self), low, high, least,
      classes - 1)
  end
end

function LabelsLoss:terms(scores, target)
  if self.reduction == "none" then
    errors.raise('%s: reduction is "none", expected "mean" or "sum" where a loss is one number',
      scope.label(self))
  end
  local rows = self:rows(scores, target)
  return rows:sum(), self.reduction == "mean" and rows:numel() or nil
end

function LabelsLoss:forward(scores, target)
  if self.reduction == "none" then return self:rows(scores, target) end
  return Loss.forward(self, scores, target)
end

-- [.., n, classes]: true where the class is the id at [.., n].
local function is_class(ids, classes)
  local numbers = beside(ids, core.arange(0, classes - 1, 1, "i64"))
  return ids:to("i64"):unsqueeze(-1):eq(numbers)
end

-- ---- one class -------------------------------------------------------------------------------

---@class nn.MultiMarginLoss: nn.LabelsLoss
---@field p integer
---@field margin number
local MultiMarginLoss = class.new("MultiMarginLoss", LabelsLoss, true)
labels.MultiMarginLoss = MultiMarginLoss

local function one_or_two(p)
  if p ~= 1 and p ~= 2 then return "1 or 2" end
end

--- The score of the right class shall exceed each other score by a margin. The loss is the sum over
--- the other classes of max(0, margin - right + other)^p / classes, times the weight of the right
--- class. Shapes: [.., classes], ids [..] from 0.
--- Errors: shapes that do not fit; ids that are not classes (eager).
--- ```lua
--- local scores = gp.tensor {{0.1, 0.2, 0.4, 0.8}}
--- local loss = nn.MultiMarginLoss()(scores, gp.tensor({3}, {dtype = "i64"}))
--- assert(math.abs(loss:item() - 0.325) < 1e-6)
--- ```
---@param opts? {p?: integer, margin?: number, weight?: gpipe.Tensor|number[], reduction?: string}
--- 1, 1, none, "mean"
function MultiMarginLoss:init(opts)
  set_up(self, opts, {
    p = { type = "number", check = one_or_two, default = 1 },
    margin = { type = "number", default = 1 },
  })
end

function MultiMarginLoss:rows(scores, target)
  check_target(self, scores, target, 1)
  local classes, weight = scores.shape[#scores.shape], weight_for(self, scores)
  check_ids(self, target, 0, classes)
  local right = is_class(target, classes):to(scores.dtype)
  local above = (self.margin - (scores * right):sum(-1, true) + scores):relu()
  if self.p == 2 then above = above:square() end
  if weight then above = above * (right * weight):sum(-1, true) end
  return (above * (1 - right)):sum(-1) / classes
end

-- ---- several classes -------------------------------------------------------------------------

---@class nn.MultiLabelMarginLoss: nn.LabelsLoss
local MultiLabelMarginLoss = class.new("MultiLabelMarginLoss", LabelsLoss, true)
labels.MultiLabelMarginLoss = MultiLabelMarginLoss

--- The score of each right class shall exceed that of each other class by 1. The loss is the sum
--- over the pairs of max(0, 1 - right + other) / classes. Shapes: [.., classes], ids of the same
--- shape; the ids of a row end at its first -1.
--- Errors: shapes that do not fit; ids that are not classes (eager).
--- ```lua
--- local scores = gp.tensor {{0.1, 0.2, 0.4, 0.8}}
--- local loss = nn.MultiLabelMarginLoss()(scores, gp.tensor({{3, 0, -1, 1}}, {dtype = "i64"}))
--- assert(math.abs(loss:item() - 0.85) < 1e-6)
--- ```
---@param opts? {reduction?: "mean"|"sum"|"none"}
function MultiLabelMarginLoss:init(opts)
  set_up(self, opts, {})
  if self.weight then errors.raise "MultiLabelMarginLoss: unknown option 'weight'" end
end

function MultiLabelMarginLoss:rows(scores, target)
  check_target(self, scores, target, 0)
  local classes = scores.shape[#scores.shape]
  check_ids(self, target, -1, classes)
  local counts = target:ge(0):to(scores.dtype):cumprod(-1) -- 1 in front of the first -1
  local is = is_class(target, classes):to(scores.dtype) * counts:unsqueeze(-1)
  local right = (is * scores:unsqueeze(-2)):sum(-1)
  local other = 1 - is:amax(-2)
  local pairs_of = (1 - right:unsqueeze(-1) + scores:unsqueeze(-2)):relu()
  return (pairs_of * counts:unsqueeze(-1) * other:unsqueeze(-2)):sum(-1):sum(-1) / classes
end

---@class nn.MultiLabelSoftMarginLoss: nn.LabelsLoss
local MultiLabelSoftMarginLoss = class.new("MultiLabelSoftMarginLoss", LabelsLoss, true)
labels.MultiLabelSoftMarginLoss = MultiLabelSoftMarginLoss

--- Treat each class separately, with a target of 1 or 0. The loss is the mean over the classes of
--- -weight * (target * log(sigmoid(x)) + (1 - target) * log(sigmoid(-x))). Shapes: [.., classes],
--- targets of the same shape.
--- Errors: shapes that do not fit.
--- ```lua
--- local loss = nn.MultiLabelSoftMarginLoss()(gp.zeros {1, 2}, gp.tensor {{1, 0}})
--- assert(math.abs(loss:item() - math.log(2)) < 1e-6)
--- ```
---@param opts? {weight?: gpipe.Tensor|number[], reduction?: "mean"|"sum"|"none"}
function MultiLabelSoftMarginLoss:init(opts) set_up(self, opts, {}) end

function MultiLabelSoftMarginLoss:rows(scores, target)
  check_target(self, scores, target, 0)
  target = target:to(scores.dtype)
  local each = -(target * scores:log_sigmoid() + (1 - target) * (-scores):log_sigmoid())
  local weight = weight_for(self, scores)
  return (weight and each * weight or each):mean(-1)
end

return labels
