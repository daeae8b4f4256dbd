-- lua/gpipe/tensor/methods/products.lua - products of matrices and vectors with torch's names, and
-- products added to a tensor.

local check = require "gpipe.tensor.methods.check"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

local Tensor = {}

local FACTORS = {
  alpha = { type = "number", default = 1 }, beta = { type = "number", default = 1 },
}

-- Check that these have the given numbers of dimensions.
local function check_dims(who, list)
  for _, item in ipairs(list) do
    local t, dims, name = item[1], item[2], item[3]
    if not is_tensor(t) or t:dim() ~= dims then
      errors.raise("%s: %s %s, expected a tensor of %d dimensions", who, name,
        is_tensor(t) and ("has %d dimensions"):format(t:dim()) or "is " .. errors.show(t), dims)
    end
  end
end

-- beta * base + alpha * product. With a beta of 0 base does not count, not even its NaN.
local function joined(who, base, product, opts)
  local o = options.check(who, opts, FACTORS)
  if o.alpha ~= 1 then product = product * o.alpha end
  if o.beta == 0 then return product end
  return (o.beta == 1 and base or base * o.beta) + product
end

--- The product of two matrices, [m, k] and [k, n]. `gp.ones({2, 3}):mm(gp.ones {3, 4})[1][1] == 3`
--- Errors: other numbers of dimensions (matmul takes any).
---@param other gpipe.Tensor
---@return gpipe.Tensor [m, n]
function Tensor:mm(other)
  check_dims("mm", { { self, 2, "the tensor" }, { other, 2, "the other" } })
  return self:matmul(other)
end

--- The products of two batches of matrices, [b, m, k] and [b, k, n].
--- `gp.ones({5, 2, 3}):bmm(gp.ones {5, 3, 4}).shape[3] == 4`
--- Errors: other numbers of dimensions; another b.
---@param other gpipe.Tensor
---@return gpipe.Tensor [b, m, n]
function Tensor:bmm(other)
  check_dims("bmm", { { self, 3, "the tensor" }, { other, 3, "the other" } })
  if self.shape[1] ~= other.shape[1] then
    errors.raise("bmm: there are %d and %d matrices, expected as many", self.shape[1],
      other.shape[1])
  end
  return self:matmul(other)
end

--- beta * t + alpha * a b, for matrices.
--- `gp.ones({1, 1}):addmm(gp.ones {1, 3}, gp.ones {3, 1})[1][1] == 4`
---@param a gpipe.Tensor [m, k]
---@param b gpipe.Tensor [k, n]
---@param opts? {alpha?: number, beta?: number} 1, 1
---@return gpipe.Tensor [m, n]
function Tensor:addmm(a, b, opts)
  check_dims("addmm", { { a, 2, "the first factor" }, { b, 2, "the second factor" } })
  return joined("addmm", self, a:matmul(b), opts)
end

--- beta * t + alpha * a b, for batches of matrices.
--- `gp.ones({1, 1, 1}):baddbmm(gp.ones {1, 1, 3}, gp.ones {1, 3, 1}):item() == 4`
---@param a gpipe.Tensor [b, m, k]
---@param b gpipe.Tensor [b, k, n]
---@param opts? {alpha?: number, beta?: number} 1, 1
---@return gpipe.Tensor [b, m, n]
function Tensor:baddbmm(a, b, opts)
  check_dims("baddbmm", { { a, 3, "the first factor" }, { b, 3, "the second factor" } })
  return joined("baddbmm", self, a:bmm(b), opts)
end

--- beta * t + alpha * the sum of the products of two batches of matrices.
--- `gp.ones({1, 1}):addbmm(gp.ones {2, 1, 3}, gp.ones {2, 3, 1}):item() == 7`
---@param a gpipe.Tensor [b, m, k]
---@param b gpipe.Tensor [b, k, n]
---@param opts? {alpha?: number, beta?: number} 1, 1
---@return gpipe.Tensor [m, n]
function Tensor:addbmm(a, b, opts)
  check_dims("addbmm", { { a, 3, "the first factor" }, { b, 3, "the second factor" } })
  return joined("addbmm", self, a:bmm(b):sum(1), opts)
end

--- beta * t + alpha * a v, for a matrix and a vector.
--- `gp.ones({2}):addmv(gp.ones {2, 3}, gp.ones {3})[1] == 4`
---@param a gpipe.Tensor [m, k]
---@param v gpipe.Tensor [k]
---@param opts? {alpha?: number, beta?: number} 1, 1
---@return gpipe.Tensor [m]
function Tensor:addmv(a, v, opts)
  check_dims("addmv", { { a, 2, "the matrix" }, { v, 1, "the vector" } })
  return joined("addmv", self, a:matmul(v), opts)
end

--- beta * t + alpha * the outer product of two vectors.
--- `gp.ones({2, 2}):addr(gp.ones {2}, gp.ones {2})[1][1] == 2`
---@param a gpipe.Tensor [m]
---@param b gpipe.Tensor [n]
---@param opts? {alpha?: number, beta?: number} 1, 1
---@return gpipe.Tensor [m, n]
function Tensor:addr(a, b, opts)
  check_dims("addr", { { a, 1, "the first vector" }, { b, 1, "the second vector" } })
  return joined("addr", self, a:outer(b), opts)
end

-- Split the dimensions of one side into those that are summed, from 1, and the others.
local function split_dims(who, t, list)
  local meant, others = {}, {}
  for i, d in ipairs(list) do
    list[i] = check.dim(who, d, t:dim())
    if meant[list[i]] then errors.raise("%s: dimension %d is given twice", who, list[i]) end
    meant[list[i]] = true
  end
  for d = 1, t:dim() do
    if not meant[d] then others[#others + 1] = d end
  end
  return list, others
end

local function pick(shape, dims)
  local sizes, count = {}, 1
  for i, d in ipairs(dims) do sizes[i], count = shape[d], count * shape[d] end
  return sizes, count
end

--- Sums of products over dimensions of both: over the last n of this tensor and the first n of the
--- other, or over two lists of dimensions.
--- `gp.ones({2, 3, 4}):tensordot(gp.ones {3, 4, 5}, 2)[1][1] == 12`
--- Errors: sizes that differ.
---@param other gpipe.Tensor
---@param dims? integer|integer[][] 2
---@return gpipe.Tensor with the remaining dimensions of this tensor, then those of the other
function Tensor:tensordot(other, dims)
  local who = "tensordot"
  check.tensor(who, other)
  local mine, its = {}, {}
  if type(dims) == "table" then
    if type(dims[1]) ~= "table" or type(dims[2]) ~= "table" or #dims[1] ~= #dims[2] then
      errors.raise("%s: dims are %s, expected two lists of as many, {{2, 3}, {1, 2}}", who,
        errors.show(dims))
    end
    table.move(dims[1], 1, #dims[1], 1, mine)
    table.move(dims[2], 1, #dims[2], 1, its)
  else
    local n = check.count(who .. ": dims", dims or 2, 0)
    if n > math.min(self:dim(), other:dim()) then
      errors.raise("%s: dims is %d, the tensors have %d and %d dimensions: expected no more", who,
        n, self:dim(), other:dim())
    end
    for i = 1, n do mine[i], its[i] = self:dim() - n + i, i end
  end
  local summed, left = split_dims(who, self, mine)
  local also, right = split_dims(who, other, its)
  for i, d in ipairs(summed) do
    if self.shape[d] ~= other.shape[also[i]] then
      errors.raise("%s: dimensions %d and %d have %d and %d elements, expected as many", who, d,
        also[i], self.shape[d], other.shape[also[i]])
    end
  end
  local shape, m = pick(self.shape, left)
  local more, n = pick(other.shape, right)
  local _, k = pick(self.shape, summed)
  local order = table.move(summed, 1, #summed, #left + 1, table.move(left, 1, #left, 1, {}))
  local turned = table.move(right, 1, #right, #also + 1, table.move(also, 1, #also, 1, {}))
  local a = (#order > 0 and self:permute(order) or self):reshape { m, k }
  local b = (#turned > 0 and other:permute(turned) or other):reshape { k, n }
  return a:matmul(b):reshape(table.move(more, 1, #more, #shape + 1, shape))
end

--- Sums of products over the last dimension of both.
--- `gp.ones({2, 3}):inner(gp.ones {4, 3})[1][1] == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:inner(other)
  check.tensor("inner", other)
  if self:dim() == 0 or other:dim() == 0 then return self * other end
  return self:tensordot(other, { { -1 }, { -1 } })
end

--- The sum of the products of two vectors' elements: dot.
--- `gp.ones({3}):vdot(gp.ones {3}):item() == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:vdot(other) return self:dot(check.tensor("vdot", other)) end

return Tensor
