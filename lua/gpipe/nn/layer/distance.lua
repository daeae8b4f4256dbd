-- lua/gpipe/nn/layer/distance.lua - `nn.CosineSimilarity`, `nn.PairwiseDistance`: how near the
-- vectors of two tensors are.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local join = require "gpipe.tensor.join"

---@class nn.CosineSimilarity: nn.Module
local CosineSimilarity = class.new("CosineSimilarity", Module, true)

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
    a, b = join.broadcast_tensors(a, b)
  end
  local lengths = a:norm(2, self.over):clamp(self.eps) * b:norm(2, self.over):clamp(self.eps)
  return (a * b):sum(self.over) / lengths
end

function CosineSimilarity:describe() return tostring(self.over) end

---@class nn.PairwiseDistance: nn.Module
local PairwiseDistance = class.new("PairwiseDistance", Module, true)

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

return { CosineSimilarity = CosineSimilarity, PairwiseDistance = PairwiseDistance }
