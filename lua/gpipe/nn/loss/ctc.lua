-- lua/gpipe/nn/loss/ctc.lua - `nn.CTCLoss`: sequences of labels whose positions in time are
-- unknown.
-- Source: Graves et al. 2006, "Connectionist temporal classification", section 4.1.
--
-- Paths go through the labels, with blanks between them, along time: at each step a path stays,
-- moves on by one, or skips a blank between labels that differ. The sum over all paths is computed
-- from logarithms; autograd through these steps gives its gradient.

local Loss = require "gpipe.nn.loss.loss"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

---@class nn.CTCLoss: nn.Loss
---@field blank integer
---@field zero_infinity boolean
local CTCLoss = class.new("CTCLoss", Loss, true)

local NEVER = -1e30 -- the logarithm of an impossible path: finite, so that gradients are finite

--- Minus the logarithm of the total probability of all paths that read the targets off the outputs,
--- with `blank` between labels and labels held for several steps. The mean first divides the loss
--- of each row by its number of labels. "none" returns the losses row by row, for eager use.
---
--- Shapes: log_probs [N, T, classes] (PyTorch has T first), logarithms as nn.LogSoftmax returns
--- them; targets [N, S] of ids from 0, padded at the end by any class, or, in eager use, all rows
--- one after the other in one dimension; input_lengths and target_lengths [N], or lists of them. In
--- a pipeline the targets are {targets, input_lengths, target_lengths}. A row whose labels do not
--- fit into its time has an infinite loss, or 0 with `zero_infinity`.
--- Errors: shapes that do not fit; lengths above T or S; labels that are not classes (eager).
--- ```lua
--- local log_probs = gp.full({1, 3, 2}, math.log(0.5))
--- local ids = gp.tensor({{1}}, {dtype = "i64"})
--- local loss = nn.CTCLoss()(log_probs, ids, {3}, {1})
--- assert(math.abs(loss:item() + math.log(6 / 8)) < 1e-6)
--- ```
---@param opts? {blank?: integer, reduction?: "mean"|"sum"|"none", zero_infinity?: boolean} blank: 0
function CTCLoss:init(opts)
  local spec = {
    blank = { type = "integer", min = 0, default = 0 },
    zero_infinity = { type = "boolean", default = false },
    reduction = { choices = { "mean", "sum", "none" }, default = "mean" },
  }
  for name, value in pairs(options.check("CTCLoss", opts, spec)) do self[name] = value end
end

-- ---- arguments -------------------------------------------------------------------------------

local function lengths_of(self, what, given, rows, most)
  local t = is_tensor(given) and given or type(given) == "table" and core.tensor(given, "i64")
  if not t or #t.shape ~= 1 or t.shape[1] ~= rows or t.dtype ~= "i64" and t.dtype ~= "i32" then
    errors.raise("%s: %s are %s, expected %d integers", scope.label(self), what,
      t and ("%s %s"):format(t.dtype, check.shape_text(t.shape)) or errors.show(given), rows)
  end
  if not core.tracing() and rows > 0 then
    local low, high = t:amin():item(), t:amax():item()
    if low < 0 or high > most then
      errors.raise("%s: %s are %d to %d, expected 0 to %d", scope.label(self), what, low, high,
        most)
    end
  end
  return t:to "i64"
end

-- Unpack targets that lie one after the other, row by row.
local function unpacked(self, targets, lengths, blank)
  local list, sizes = targets:totable(), is_tensor(lengths) and lengths:totable() or lengths
  local at, longest, rows = 0, 1, {}
  for _, size in ipairs(sizes) do longest = math.max(longest, size) end
  for n, size in ipairs(sizes) do
    rows[n] = {}
    for s = 1, longest do rows[n][s] = s <= size and list[at + s] or blank end
    at = at + size
  end
  if at ~= #list then
    errors.raise("%s: target_lengths add up to %d, expected %d as there are targets",
      scope.label(self), at, #list)
  end
  return create.tensor(rows, { dtype = "i64" })
end

local function check_targets(self, targets, rows, classes)
  local shape = input.tensor(self, targets, "targets").shape
  if #shape ~= 2 or shape[1] ~= rows or targets.dtype ~= "i64" and targets.dtype ~= "i32" then
    errors.raise("%s: targets are %s %s, expected i64 %dx?", scope.label(self), targets.dtype,
      check.shape_text(shape), rows)
  end
  if not core.tracing() and targets:numel() > 0 then
    local low, high = targets:amin():item(), targets:amax():item()
    if low < 0 or high >= classes then
      errors.raise("%s: labels are %d to %d, expected 0 to %d", scope.label(self), low, high,
        classes - 1)
    end
  end
  return targets:to "i64"
end

-- ---- paths -----------------------------------------------------------------------------------

-- The labels with a blank before, between and after them: [N, 2 S + 1].
local function with_blanks(targets, blank)
  local n, s = targets.shape[1], targets.shape[2]
  local blanks = beside(targets, create.full({ n, s, 1 }, blank, { dtype = "i64" }))
  local both = core.concat({ blanks, targets:unsqueeze(-1) }, 3):reshape { n, 2 * s }
  return core.concat({ both, blanks:narrow(2, 1, 1):reshape { n, 1 } }, 2)
end

-- The value `by` places before, along the last dimension.
local function shifted(x, by)
  local n, places = x.shape[1], x.shape[2]
  if places <= by then return x * 0 + NEVER end
  local front = beside(x, create.full({ n, by }, NEVER, { dtype = x.dtype }))
  return core.concat({ front, x:narrow(2, 1, places - by) }, 2)
end

-- [N, 2 S + 1]: whether a path may come here from two places before. It may not to a blank, nor
-- between equal labels.
local function may_skip(labels, blank)
  local n, places = labels.shape[1], labels.shape[2]
  if places < 3 then return labels:lt(0) end
  local head = beside(labels, create.full({ n, 2 }, blank, { dtype = "i64" }))
  local before = core.concat({ head, labels:narrow(2, 1, places - 2) }, 2)
  return labels:ne(before):logical_and(labels:ne(blank))
end

-- The logarithm of the sum of the numbers whose logarithms these are.
local function added(list)
  for i, t in ipairs(list) do list[i] = t:unsqueeze(3) end
  return core.concat(list, 3):logsumexp(3)
end

-- The logarithms of the sums over paths at the end of each row's time: [N, 2 S + 1].
local function walk(log_probs, labels, input_lengths, blank)
  local n, time, places = log_probs.shape[1], log_probs.shape[2], labels.shape[2]
  local at = (labels + 1):unsqueeze(2):expand { n, time, places }
  local each, skips = log_probs:gather(3, at), may_skip(labels, blank)
  local first = beside(log_probs, core.arange(1, places, 1, "i64")):le(2):unsqueeze(1)
  local sums = core.where(first, each:select(2, 1), NEVER)
  for t = 2, time do
    local skipped = core.where(skips, shifted(sums, 2), NEVER)
    local moved = added { sums, shifted(sums, 1), skipped } + each:select(2, t)
    sums = core.where(input_lengths:ge(t):unsqueeze(2), moved, sums)
  end
  return sums
end

-- The loss of each row: paths end at the last label, or at the blank after it.
local function rows_of(self, log_probs, targets, input_lengths, target_lengths)
  local labels = with_blanks(targets, self.blank)
  local sums = walk(log_probs, labels, input_lengths, self.blank)
  local last = (target_lengths * 2 + 1):unsqueeze(2)
  local behind = sums:gather(2, last)
  local label = sums:gather(2, (last - 1):clamp { min = 1 })
  local has_label = target_lengths:gt(0):unsqueeze(2)
  local total = added { behind, core.where(has_label, label, NEVER) }:squeeze(2)
  -- A row without time steps can only have no labels.
  total = core.where(input_lengths:gt(0), total, core.where(target_lengths:gt(0), NEVER, total * 0))
  local impossible = total:lt(NEVER / 10)
  return core.where(impossible, self.zero_infinity and 0 or math.huge, -total)
end

function CTCLoss:rows(log_probs, targets, input_lengths, target_lengths)
  local shape = input.tensor(self, log_probs, "log_probs").shape
  if #shape ~= 3 or shape[2] == 0 then
    errors.raise("%s: log_probs are %s, expected ?x?x? (rows, time, classes)", scope.label(self),
      check.shape_text(shape))
  end
  local rows, time, classes = shape[1], shape[2], shape[3]
  if self.blank >= classes then
    errors.raise("%s: blank is %d, expected 0 to %d", scope.label(self), self.blank, classes - 1)
  end
  input_lengths = lengths_of(self, "input_lengths", input_lengths, rows, time)
  if is_tensor(targets) and #targets.shape == 1 and not core.tracing() then
    lengths_of(self, "target_lengths", target_lengths, rows, targets.shape[1])
    targets = unpacked(self, targets, target_lengths, self.blank)
  end
  targets = check_targets(self, targets, rows, classes)
  target_lengths = lengths_of(self, "target_lengths", target_lengths, rows, targets.shape[2])
  return rows_of(self, log_probs, targets, beside(log_probs, input_lengths),
    beside(log_probs, target_lengths)), beside(log_probs, target_lengths)
end

function CTCLoss:terms(...)
  if self.reduction == "none" then
    errors.raise('%s: reduction is "none", expected "mean" or "sum" where a loss is one number',
      scope.label(self))
  end
  local rows, lengths = self:rows(...)
  if self.reduction == "sum" then return rows:sum(), nil end
  return (rows / lengths:clamp({ min = 1 }):to(rows.dtype)):sum(), rows.shape[1]
end

function CTCLoss:forward(log_probs, targets, input_lengths, target_lengths)
  if self.reduction == "none" then
    return (self:rows(log_probs, targets, input_lengths, target_lengths))
  end
  return Loss.forward(self, log_probs, targets, input_lengths, target_lengths)
end

return CTCLoss
