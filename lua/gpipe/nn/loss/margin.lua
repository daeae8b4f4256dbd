-- lua/gpipe/nn/loss/margin.lua - losses that require a margin between tensors, or between similar
-- and dissimilar pairs.
--
-- Targets are 1 or -1. Losses on several outputs take the outputs before the target, as models that
-- return several tensors produce them.

local core = require "gpipe.core"
local ElementwiseLoss = require "gpipe.nn.loss.elementwise"
local Loss = require "gpipe.nn.loss.loss"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

local margin = {}

-- ---- of one output ---------------------------------------------------------------------------

---@class nn.HingeEmbeddingLoss: nn.ElementwiseLoss
---@field margin number
local HingeEmbeddingLoss = class.new("HingeEmbeddingLoss", ElementwiseLoss, true)
margin.HingeEmbeddingLoss = HingeEmbeddingLoss

--- The mean (or sum) of x where the target is 1, and of max(0, margin - x) where it is -1; "none"
--- returns them one by one, for eager use.
--- Errors: shapes that differ.
--- ```lua
--- assert(nn.HingeEmbeddingLoss()(gp.tensor {2, 0.5}, gp.tensor {1, -1}):item() == 1.25)
--- ```
---@param opts? {margin?: number, reduction?: "mean"|"sum"|"none"} margin: 1
function HingeEmbeddingLoss:init(opts)
  ElementwiseLoss.init(self, opts, { margin = { type = "number", default = 1 } })
end

function HingeEmbeddingLoss:each(output, target)
  return core.where(target:eq(1), output, (self.margin - output):relu())
end

---@class nn.SoftMarginLoss: nn.ElementwiseLoss
local SoftMarginLoss = class.new("SoftMarginLoss", ElementwiseLoss, true)
margin.SoftMarginLoss = SoftMarginLoss

--- The mean (or sum) of log(1 + exp(-target * x)), for targets of 1 or -1; "none" returns them one
--- by one, for eager use.
--- Errors: shapes that differ.
--- ```lua
--- assert(nn.SoftMarginLoss()(gp.zeros {2}, gp.tensor {1, -1}):item() > 0.69)
--- ```
---@param opts? {reduction?: "mean"|"sum"|"none"}
function SoftMarginLoss:init(opts) ElementwiseLoss.init(self, opts) end

function SoftMarginLoss.each(_, output, target) return -(target * output):log_sigmoid() end

---@class nn.PoissonNLLLoss: nn.ElementwiseLoss
---@field log_input boolean
---@field full boolean
local PoissonNLLLoss = class.new("PoissonNLLLoss", ElementwiseLoss, true)
margin.PoissonNLLLoss = PoissonNLLLoss

---@class nn.PoissonNLLOptions
---@field log_input? boolean true
---@field full? boolean false
---@field eps? number 1e-8
---@field reduction? "mean"|"sum"|"none"

--- The mean (or sum) of exp(x) - target * x, for counts, where the output x is the logarithm of the
--- rate; with log_input = false it is that of x - target * log(x + eps). `full` adds the constant
--- term, by Stirling's formula for targets above 1. "none" returns the losses one by one.
--- Errors: shapes that differ.
--- ```lua
--- assert(nn.PoissonNLLLoss()(gp.zeros {2}, gp.ones {2}):item() == 1)
--- ```
---@param opts? nn.PoissonNLLOptions
function PoissonNLLLoss:init(opts)
  ElementwiseLoss.init(self, opts, {
    log_input = { type = "boolean", default = true }, full = { type = "boolean", default = false },
    eps = { type = "number", default = 1e-8, above = 0 },
  })
end

-- Stirling's approximation of the logarithm of the factorial.
local function stirling(target)
  local large = target:gt(1)
  local t = core.where(large, target, 1)
  return core.where(large, t * t:log() - t + (t * (2 * math.pi)):log() * 0.5, 0)
end

function PoissonNLLLoss:each(output, target)
  local each = self.log_input and output:exp() - target * output
    or output - target * (output + self.eps):log()
  return self.full and each + stirling(target) or each
end

-- ---- of several outputs ----------------------------------------------------------------------

-- A loss on several tensors, which returns one number for each row.
---@class nn.RowsLoss: nn.Loss
local RowsLoss = class.new("RowsLoss", Loss, true)

local NAMES = { "the first input", "the second input", "the third input" }

local function set_up(self, opts, spec)
  spec.reduction = { choices = { "mean", "sum", "none" }, default = "mean" }
  for name, value in pairs(options.check(class.of(self).shown, opts, spec)) do
    self[name] = value
  end
end

function RowsLoss:rows(...)
  for i = 1, 3 do input.tensor(self, (select(i, ...)), NAMES[i]) end
  return self:losses(...)
end

function RowsLoss:terms(...)
  if self.reduction == "none" then
    errors.raise('%s: reduction is "none", expected "mean" or "sum" where a loss is one number',
      scope.label(self))
  end
  local rows = self:rows(...)
  return rows:sum(), self.reduction == "mean" and rows:numel() or nil
end

function RowsLoss:forward(...)
  if self.reduction == "none" then return self:rows(...) end
  return Loss.forward(self, ...)
end

function RowsLoss:describe() return ("margin %g"):format(self.margin) end

---@class nn.MarginRankingLoss: nn.RowsLoss
---@field margin number
local MarginRankingLoss = class.new("MarginRankingLoss", RowsLoss, true)
margin.MarginRankingLoss = MarginRankingLoss

--- The mean (or sum) of max(0, -target * (a - b) + margin): a shall be above b where the target is
--- 1, and below it where it is -1. Shapes: three tensors of one shape.
--- ```lua
--- local loss = nn.MarginRankingLoss()
--- assert(loss(gp.tensor {1}, gp.tensor {3}, gp.tensor {1}):item() == 2)
--- ```
---@param opts? {margin?: number, reduction?: "mean"|"sum"|"none"} margin: 0
function MarginRankingLoss:init(opts)
  set_up(self, opts, { margin = { type = "number", default = 0 } })
end

function MarginRankingLoss:losses(a, b, target) return (self.margin - target * (a - b)):relu() end

---@class nn.CosineEmbeddingLoss: nn.RowsLoss
---@field margin number
local CosineEmbeddingLoss = class.new("CosineEmbeddingLoss", RowsLoss, true)
margin.CosineEmbeddingLoss = CosineEmbeddingLoss

--- The mean (or sum) of 1 - cos(a, b) where the target is 1, and of max(0, cos(a, b) - margin)
--- where it is -1. Shapes: [N, n], [N, n], [N].
--- ```lua
--- local a = gp.ones {1, 2}
--- assert(nn.CosineEmbeddingLoss()(a, a, gp.tensor {-1}):item() > 0.99)
--- ```
---@param opts? {margin?: number, reduction?: "mean"|"sum"|"none"} margin: 0
function CosineEmbeddingLoss:init(opts)
  set_up(self, opts, { margin = { type = "number", default = 0, min = -1, max = 1 } })
end

local LEAST = 1e-12 -- the least squared length to divide by

function CosineEmbeddingLoss:losses(a, b, target)
  local lengths = (((a * a):sum(-1) + LEAST) * ((b * b):sum(-1) + LEAST)):sqrt()
  local cosine = (a * b):sum(-1) / lengths
  return core.where(target:eq(1), 1 - cosine, (cosine - self.margin):relu())
end

---@class nn.TripletMarginLoss: nn.RowsLoss
---@field margin number
---@field p number
local TripletMarginLoss = class.new("TripletMarginLoss", RowsLoss, true)
margin.TripletMarginLoss = TripletMarginLoss

--- The mean (or sum) of max(0, |a - p| - |a - n| + margin): an anchor, a positive and a negative
--- example, each [N, n]; distances are p-norms of differences with eps added. `swap` takes
--- |p - n| where it is less than |a - n|.
--- ```lua
--- local loss = nn.TripletMarginLoss()
--- assert(loss(gp.zeros {1, 2}, gp.zeros {1, 2}, gp.ones {1, 2}):item() == 0)
--- ```
---@param opts? nn.TripletOptions
function TripletMarginLoss:init(opts)
  set_up(self, opts, {
    margin = { type = "number", default = 1, above = 0 },
    p = { type = "number", default = 2, above = 0 },
    eps = { type = "number", default = 1e-6 }, swap = { type = "boolean", default = false },
  })
end

---@class nn.TripletOptions
---@field margin? number 1
---@field p? number 2
---@field eps? number 1e-6
---@field swap? boolean
---@field reduction? "mean"|"sum"|"none"

function TripletMarginLoss:losses(anchor, positive, negative)
  local function distance(a, b) return (a - b + self.eps):norm(self.p, -1) end
  local far = distance(anchor, negative)
  if self.swap then far = far:minimum(distance(positive, negative)) end
  return (distance(anchor, positive) - far + self.margin):relu()
end

return margin
