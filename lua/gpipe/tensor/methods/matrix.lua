-- lua/gpipe/tensor/methods/matrix.lua - products of vectors, and the diagonals of matrices.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

-- Check that both are vectors, with `same` of one size.
local function check_vectors(who, a, b, same)
  if not is_tensor(b) then
    errors.raise("%s: the right operand is %s, expected a tensor", who, errors.show(b))
  end
  if a:dim() ~= 1 or b:dim() ~= 1 then
    errors.raise("%s: the operands have %d and %d dimensions, expected 1 each", who, a:dim(),
      b:dim())
  end
  if same and a:size(1) ~= b:size(1) then
    errors.raise("%s: the operands have %d and %d elements, expected as many", who, a:size(1),
      b:size(1))
  end
end

--- The sum of the products of two vectors' elements, a scalar.
--- `gp.tensor({1, 2}):dot(gp.tensor {3, 4}):item() == 11`
---@param other gpipe.Tensor of one dimension and the same size
---@return gpipe.Tensor
function Tensor:dot(other)
  check_vectors("dot", self, other, true)
  return (self * other):sum()
end

--- The product of each element of one vector with each element of another, [m, n].
--- `gp.tensor({1, 2}):outer(gp.tensor {3, 4, 5})[2][3] == 10`
---@param other gpipe.Tensor of one dimension
---@return gpipe.Tensor
function Tensor:outer(other)
  check_vectors("outer", self, other)
  return self:reshape { self:size(1), 1 } * other:reshape { 1, other:size(1) }
end

--- The product of a matrix [m, n] and a vector [n]. `gp.ones({2, 3}):mv(gp.ones {3})[1] == 3`
--- Errors: other numbers of dimensions (matmul takes any).
---@param vector gpipe.Tensor
---@return gpipe.Tensor [m]
function Tensor:mv(vector)
  if not is_tensor(vector) or self:dim() ~= 2 or vector:dim() ~= 1 then
    errors.raise("mv: the operands have %d and %s dimensions, expected a matrix and a vector",
      self:dim(), is_tensor(vector) and vector:dim() or errors.show(vector))
  end
  return self:matmul(vector)
end

-- Put a vector on diagonal k of a square matrix with zeros elsewhere: element i is in row i if k >=
-- 0, else in column i.
local function spread(vector, k)
  local n = vector:size(1) + math.abs(k)
  if k ~= 0 then
    local pad = beside(vector, core.full("diag", { math.abs(k) }, 0, vector.dtype))
    vector = core.concat({ vector, pad }, 1)
  end
  local at = core.arange(1, math.max(n, 1), 1, "i64"):narrow(1, 1, n)
  local is_diagonal = (at:reshape { 1, n } - at:reshape { n, 1 }):eq(k)
  return core.where(beside(vector, is_diagonal), vector:reshape(k < 0 and { 1, n } or { n, 1 }), 0)
end

--- Diagonal k of a matrix, as a vector; for a vector, the square matrix with it on diagonal k and
--- zeros elsewhere. `gp.tensor({{1, 2}, {3, 4}}):diag()[2] == 4`,
--- `gp.tensor({1, 2}):diag()[2][2] == 2`
---@param k? integer 0 is the main diagonal, above it positive, below it negative
---@return gpipe.Tensor
function Tensor:diag(k)
  k = k == nil and 0 or check.count("diag: k", k, math.mininteger)
  if self:dim() == 1 then return spread(self, k) end
  if self:dim() ~= 2 then
    errors.raise("diag: the tensor has %d dimensions, expected 1 or 2", self:dim())
  end
  local m, n = self:size(1), self:size(2)
  local count = math.min(m + math.min(k, 0), n - math.max(k, 0))
  local flat = self:reshape { m * n }
  if count <= 0 then return flat:narrow(1, 1, 0) end
  return core.every(flat, 1, 1 + math.max(k, 0) + math.max(-k, 0) * n, count, n + 1)
end

--- The sum of the main diagonal of a matrix. `gp.tensor({{1, 2}, {3, 4}}):trace():item() == 5`
---@return gpipe.Tensor
function Tensor:trace()
  if self:dim() ~= 2 then
    errors.raise("trace: the tensor has %d dimensions, expected 2", self:dim())
  end
  return self:diag():sum()
end

return Tensor
