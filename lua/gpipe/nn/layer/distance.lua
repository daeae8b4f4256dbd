-- lua/gpipe/nn/layer/distance.lua - layers of two tensors: `nn.CosineSimilarity`,
-- `nn.PairwiseDistance`, `nn.Bilinear`; and `nn.EmbeddingBag`, `nn.LocalResponseNorm`.

local core = require "gpipe.core"
local Embedding = require "gpipe.nn.layer.embedding"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"
local together = require "gpipe.tensor.join"

local layers = {}

-- ---- of two ----------------------------------------------------------------------------------

---@class nn.CosineSimilarity: nn.Module
local CosineSimilarity = class.new("CosineSimilarity", Module, true)
layers.CosineSimilarity = CosineSimilarity

--- The cosine of the angle between two tensors' vectors along a dimension.
---
--- Shapes: both [.., n, ..], broadcast -> without that dimension. Lengths are at least eps.
--- Errors: dim 0 or no integer; an eps that is not above 0.
--- ```lua
--- assert(nn.CosineSimilarity()(gp.ones {1, 4}, gp.ones {1, 4})[1] == 1)
--- ```
---@param dim? integer 2
---@param eps? number 1e-8
function CosineSimilarity:init(dim, eps)
  self.over = check.integer("nn.CosineSimilarity", "dim", dim == nil and 2 or dim)
  if self.over == 0 then check.fail("nn.CosineSimilarity", "dim", 0, "1 or more, or negative") end
  self.eps = check.number("nn.CosineSimilarity", "eps", eps == nil and 1e-8 or eps)
end

function CosineSimilarity:forward(a, b)
  input.tensor(self, a)
  input.tensor(self, b, "the second input")
  if table.concat(a.shape, "x") ~= table.concat(b.shape, "x") then
    a, b = together.broadcast_tensors(a, b)
  end
  local lengths = a:norm(2, self.over):clamp(self.eps) * b:norm(2, self.over):clamp(self.eps)
  return (a * b):sum(self.over) / lengths
end

function CosineSimilarity:describe() return tostring(self.over) end

---@class nn.PairwiseDistance: nn.Module
local PairwiseDistance = class.new("PairwiseDistance", Module, true)
layers.PairwiseDistance = PairwiseDistance

--- The p-norm of the differences of rows, each with eps added: [.., n] and [.., n] -> [..].
--- Errors: a p that is not above 0.
--- ```lua
--- assert(nn.PairwiseDistance(1)(gp.ones {1, 2}, gp.zeros {1, 2})[1] > 1.9)
--- ```
---@param p? number 2
---@param eps? number 1e-6
function PairwiseDistance:init(p, eps)
  self.p = check.number("nn.PairwiseDistance", "p", p == nil and 2 or p)
  if self.p <= 0 then check.fail("nn.PairwiseDistance", "p", p, "a number above 0") end
  self.eps = check.number("nn.PairwiseDistance", "eps", eps == nil and 1e-6 or eps)
end

function PairwiseDistance:forward(a, b)
  input.tensor(self, a)
  return (a - input.tensor(self, b, "the second input") + self.eps):norm(self.p, -1)
end

function PairwiseDistance:describe() return ("%g"):format(self.p) end

---@class nn.Bilinear: nn.Module
---@field weight gpipe.Tensor [out, first, second]
---@field bias? gpipe.Tensor [out]
local Bilinear = class.new("Bilinear", Module, true)
layers.Bilinear = Bilinear

--- a' W[k] b + bias[k] for every output k. Shapes: [.., first] and [.., second] -> [.., out].
--- Errors: sizes that are not positive integers.
--- Source: PyTorch nn.Bilinear, and its first values.
--- ```lua
--- assert(nn.Bilinear(3, 4, 5)(gp.ones {2, 3}, gp.ones {2, 4}).shape[2] == 5)
--- ```
---@param first integer
---@param second integer
---@param out integer
---@param opts? {bias?: boolean, dtype?: "f32"|"f64"}
function Bilinear:init(first, second, out, opts)
  opts = options.check("nn.Bilinear", opts, {
    bias = { type = "boolean", default = true }, dtype = { choices = { "f32", "f64" } },
  })
  self.first = check.size("nn.Bilinear", "first", first)
  self.second = check.size("nn.Bilinear", "second", second)
  self.out = check.size("nn.Bilinear", "out", out)
  local init = initial.uniform(-1 / math.sqrt(first), 1 / math.sqrt(first))
  local of = { dtype = opts.dtype }
  self.weight = parameter.Parameter({ self.out, self.first, self.second }, init, of)
  if opts.bias then self.bias = parameter.Parameter({ self.out }, init, of) end
end

function Bilinear:forward(a, b)
  local shape = input.tensor(self, a).shape
  input.tensor(self, b, "the second input")
  if shape[#shape] ~= self.first or b.shape[#b.shape] ~= self.second then
    errors.raise("%s: inputs are %s and %s, expected ..x%d and ..x%d", scope.label(self),
      check.shape_text(shape), check.shape_text(b.shape), self.first, self.second)
  end
  local flat = self.weight:permute { 2, 1, 3 }:reshape { self.first, self.out * self.second }
  shape[#shape], shape[#shape + 1] = self.out, self.second
  local y = (a:matmul(flat):reshape(shape) * b:unsqueeze(-2)):sum(-1)
  return self.bias and y + self.bias or y
end

function Bilinear:describe()
  return ("%d, %d -> %d"):format(self.first, self.second, self.out)
end

-- ---- others ----------------------------------------------------------------------------------

---@class nn.EmbeddingBag: nn.Module
---@field weight gpipe.Tensor [n, dim]
local EmbeddingBag = class.new("EmbeddingBag", Module, true)
layers.EmbeddingBag = EmbeddingBag

--- The mean (or sum, or maximum) of the vectors of the ids of each row.
---
--- Shapes: ids [B, L] (i64, i32 or u8, from 0) -> [B, dim].
--- Errors: those of nn.Embedding; when called, ids of another rank.
--- ```lua
--- local ids = gp.tensor({{0, 3}}, {dtype = "i64"})
--- assert(nn.EmbeddingBag(4, 2, {mode = "sum"})(ids).shape[2] == 2)
--- ```
---@param n integer
---@param dim integer
---@param opts? {mode?: "mean"|"sum"|"max"}
function EmbeddingBag:init(n, dim, opts)
  opts = options.check("nn.EmbeddingBag", opts, {
    mode = { choices = { "mean", "sum", "max" }, default = "mean" },
  })
  self.n = check.size("nn.EmbeddingBag", "n", n)
  self.dim = check.size("nn.EmbeddingBag", "dim", dim)
  self.mode = opts.mode
  self.weight = parameter.Parameter({ self.n, self.dim }, initial.normal(0, 1))
end

function EmbeddingBag:forward(ids)
  if #input.tensor(self, ids, "ids").shape ~= 2 then
    errors.raise("%s: ids are %s, expected ?x?", scope.label(self), check.shape_text(ids.shape))
  end
  local vectors = core.embedding(ids, self.weight)
  return (vectors[self.mode](vectors, 2))
end

function EmbeddingBag:describe() return Embedding.describe(self) .. ", " .. self.mode end

---@class nn.LocalResponseNorm: nn.Module
local LocalResponseNorm = class.new("LocalResponseNorm", Module, true)
layers.LocalResponseNorm = LocalResponseNorm

--- x / (k + alpha / size * sum of the squares of `size` channels around)^beta.
---
--- Shapes: [N, C, ..], the same. Source: Krizhevsky et al. 2012; PyTorch nn.LocalResponseNorm.
--- Errors: a size that is no positive integer.
--- ```lua
--- assert(nn.LocalResponseNorm(5)(gp.ones {1, 3, 2, 2}).shape[2] == 3)
--- ```
---@param size integer
---@param opts? {alpha?: number, beta?: number, k?: number} 1e-4, 0.75, 1
function LocalResponseNorm:init(size, opts)
  self.size = check.size("nn.LocalResponseNorm", "size", size)
  opts = options.check("nn.LocalResponseNorm", opts, {
    alpha = { type = "number", default = 1e-4 }, beta = { type = "number", default = 0.75 },
    k = { type = "number", default = 1 },
  })
  self.alpha, self.beta, self.k = opts.alpha, opts.beta, opts.k
end

function LocalResponseNorm:forward(x)
  local rank, pads = input.tensor(self, x):dim(), {}
  if rank < 2 then
    errors.raise("%s: input is %s, expected rows and channels", scope.label(self),
      check.shape_text(x.shape))
  end
  local channels, before = x:size(2), self.size // 2
  if channels == 0 then return x end
  -- Of the places in the window those that some channel is in; all others add zeros.
  local first = math.max(1, before - channels + 2)
  local last = math.min(self.size, before + channels)
  for i = 1, 2 * (rank - 2) do pads[i] = 0 end
  pads[#pads + 1], pads[#pads + 2] = before - first + 1, math.max(0, last - 1 - before)
  local squares, sum = (x * x):pad(pads), nil
  for i = 1, last - first + 1 do
    local part = squares:narrow(2, i, channels)
    sum = sum and sum + part or part
  end
  return x / (sum * (self.alpha / self.size) + self.k) ^ self.beta
end

function LocalResponseNorm:describe() return tostring(self.size) end

return layers
