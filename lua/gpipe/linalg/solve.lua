-- lua/gpipe/linalg/solve.lua - determinants, inverses, solutions and powers of square matrices.

local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local gradient = require "gpipe.gradient"
local is_tensor = require "gpipe.tensor.is"
local matrices = require "gpipe.linalg.matrices"
local options = require "gpipe.options"

local solve = {}

local transpose = matrices.transpose
local SINGULAR = "is singular: pivot # is 0, expected a matrix that has an inverse"

-- ---- determinants ------------------------------------------------------------------------------

local function determinants(who, a)
  matrices.check(who, "A", a, true)
  return matrices.compute(who, "det", "", { a },
    { matrices.room(a), matrices.room(a), matrices.room(a) })
end

-- The determinant of an orthogonal matrix: 1 or -1.
local function parity(q) return (determinants("gp.linalg.det", q):round()) end

-- The slopes of the determinant, which exist for singular matrices too: U diag(e) V^T, where e_i is
-- the product of the other singular values.
local function cofactors(a)
  local u, s, vh = require("gpipe.linalg.spectrum").svd(a:detach(), { full_matrices = false })
  local _, others = gradient.grad(function(x) return x:prod(-1):sum() end)(s)
  return matrices.scale(u, others * (parity(u) * parity(vh)):unsqueeze(-1)):matmul(vh)
end

--- The determinant of square matrices. Shapes: [.., n, n] -> [..].
--- Errors: not square.
--- ```lua
--- assert(gp.linalg.det(gp.tensor {{2, 0}, {0, 3}}):item() == 6)
--- ```
---@param a gpipe.Tensor
---@return gpipe.Tensor
function solve.det(a)
  local det = determinants("gp.linalg.det", a)
  if not a.requires_grad or a:numel() == 0 then return det end
  return det + (cofactors(a) * matrices.change(a)):sum { -2, -1 }
end

--- The sign of the determinant and the logarithm of its absolute value; for a determinant of 0 they
--- are 0 and -inf. Shapes: [.., n, n] -> [..], [..]. The sign has no gradient.
--- Errors: not square; singular if a gradient is asked for.
--- ```lua
--- local sign, size = gp.linalg.slogdet(gp.tensor {{-1, 0}, {0, 1}})
--- assert(sign:item() == -1 and size:item() == 0)
--- ```
---@param a gpipe.Tensor
---@return gpipe.Tensor sign
---@return gpipe.Tensor logabsdet
function solve.slogdet(a)
  local _, sign, size = determinants("gp.linalg.slogdet", a)
  if not a.requires_grad then return sign, size end
  local slope = transpose(solve.inv(a:detach()))
  return sign, size + (slope * matrices.change(a)):sum { -2, -1 }
end

-- ---- solutions ---------------------------------------------------------------------------------

-- The batch that two batches broadcast to, or nil.
local function broadcast(a, b)
  local joint, rank = {}, math.max(#a, #b)
  for d = 1, rank do
    local m, n = a[#a - rank + d] or 1, b[#b - rank + d] or 1
    if m ~= n and m ~= 1 and n ~= 1 then return nil end
    joint[d] = m == 1 and n or m
  end
  return joint
end

-- Return whether B holds one vector for each matrix, rather than matrices.
local function is_vectors(a, b)
  if b:dim() == 1 then return true end
  if b:dim() ~= a:dim() - 1 then return false end
  for d = 1, b:dim() do
    if b:size(d) ~= a:size(d) then return false end
  end
  return true
end

local function check_right(who, a, b)
  if not is_tensor(b) then errors.raise("%s: B is %s, expected a tensor", who, errors.show(b)) end
  matrices.check_alike(who, a, b)
  if b:dim() == 0 then errors.raise_as("shape", "%s: B is a scalar, expected [.., n, k]", who) end
end

-- Expand A [.., n, n] and B [.., n, k] to one batch.
local function as_batch(who, a, b)
  local joint = broadcast(matrices.batch_of(a), matrices.batch_of(b))
  if a:size(-1) ~= b:size(-2) or not joint then
    errors.raise_as("shape", "%s: A is %s and B is %s, expected as many rows, and batches that "
      .. "broadcast", who, matrices.shape_of(a), matrices.shape_of(b))
  end
  return a:expand(matrices.join(joint, a:size(-2), a:size(-1))),
    b:expand(matrices.join(joint, b:size(-2), b:size(-1)))
end

-- Solve A X = B for X.
local function solution(who, a, b)
  a, b = as_batch(who, a, b)
  local x = matrices.compute(who, "solve", SINGULAR, { a, b },
    { matrices.room(b, b:size(-2), b:size(-1)) })
  if not (a.requires_grad or b.requires_grad) then return x end
  local inverse = solve.inv(a:detach())
  return x + inverse:matmul(matrices.change(b) - matrices.change(a):matmul(x))
end

--- Solve A X = B for X, or X A = B if left is false. B holds matrices; it holds vectors if it has
--- one dimension less than A and the shape of A's rows. Leading dimensions
--- broadcast. Shapes: [.., n, n], [.., n, k] -> [.., n, k].
--- Errors: not square, singular, other shapes.
--- ```lua
--- local x = gp.linalg.solve(gp.tensor {{2, 0}, {0, 4}}, gp.tensor {2, 8})
--- assert(x[1] == 1 and x[2] == 2)
--- ```
---@param a gpipe.Tensor
---@param b gpipe.Tensor
---@param opts? {left?: boolean} true
---@return gpipe.Tensor
function solve.solve(a, b, opts)
  local who = "gp.linalg.solve"
  local o = options.check(who, opts, { left = { type = "boolean", default = true } })
  matrices.check(who, "A", a, true)
  check_right(who, a, b)
  if is_vectors(a, b) then
    if not o.left then
      errors.raise_as("shape", "%s: B is vectors (%s), expected matrices as left is false", who,
        matrices.shape_of(b))
    end
    return solution(who, a, b:unsqueeze(-1)):squeeze(-1)
  end
  if o.left then return solution(who, a, b) end
  return transpose(solution(who, transpose(a), transpose(b)))
end

--- The inverse of square matrices. Shapes: [.., n, n] -> the same. To solve equations, solve is
--- faster and more accurate.
--- Errors: not square, singular.
--- ```lua
--- assert(gp.linalg.inv(gp.tensor {{2, 0}, {0, 4}})[1][1] == 0.5)
--- ```
---@param a gpipe.Tensor
---@return gpipe.Tensor
function solve.inv(a)
  local who = "gp.linalg.inv"
  matrices.check(who, "A", a, true)
  local n = a:size(-1)
  local inverse = matrices.compute(who, "solve", SINGULAR,
    { a, matrices.eye(a, n):expand(a.shape) }, { matrices.room(a, n, n) })
  if not a.requires_grad then return inverse end
  return inverse - inverse:matmul(matrices.change(a)):matmul(inverse)
end

--- The n-th power of square matrices, by products; for negative n the power of the inverse. Shapes:
--- [.., n, n] -> the same.
--- Errors: not square; singular if n is negative.
--- ```lua
--- assert(gp.linalg.matrix_power(gp.tensor {{1, 1}, {0, 1}}, 5)[1][2] == 5)
--- ```
---@param a gpipe.Tensor
---@param n integer
---@return gpipe.Tensor
function solve.matrix_power(a, n)
  local who = "gp.linalg.matrix_power"
  matrices.check(who, "A", a, true)
  n = options.argument(who, "n", n, { type = "integer", required = true })
  local factor, power = n < 0 and solve.inv(a) or a, nil
  for bit = 0, 62 do
    if n == 0 then break end
    if bit > 0 then factor = factor:matmul(factor) end
    if math.abs(n) >> bit & 1 == 1 then power = power and power:matmul(factor) or factor end
    if math.abs(n) >> bit <= 1 then break end
  end
  return power and power + 0 or matrices.eye(a, a:size(-1)):expand(a.shape):clone()
end

-- ---- least squares -----------------------------------------------------------------------------

-- The sums of squared residuals, if there are more rows than columns and no matrix lacks rank.
local function residuals(a, b, x, rank)
  local m, n = a:size(-2), a:size(-1)
  if m <= n or not rank:eq(n):all():item() then
    return create.zeros({ 0 }, { dtype = a.dtype, device = a.device })
  end
  local rest = a:matmul(x) - b
  return (rest * rest):sum(-2)
end

--- The X that minimizes |A X - B|; if there are several, the smallest one. Singular values below
--- rcond times the largest count as zero (rcond: the rounding of the dtype times the larger of m
--- and n). Shapes: [.., m, n], [.., m, k] -> [.., n, k]; residuals [.., k], or empty if m <= n or a
--- matrix lacks rank; rank [..], i64; singular values [.., min(m, n)].
--- ```lua
--- local a = gp.tensor {{1, 0}, {1, 1}, {1, 2}}
--- local x = gp.linalg.lstsq(a, gp.tensor {{1}, {3}, {5}})
--- assert(math.abs(x[2][1] - 2) < 1e-5)
--- ```
---@param a gpipe.Tensor
---@param b gpipe.Tensor
---@param opts? {rcond?: number}
---@return gpipe.Tensor solution
---@return gpipe.Tensor residuals
---@return gpipe.Tensor rank
---@return gpipe.Tensor singular_values
function solve.lstsq(a, b, opts)
  local who = "gp.linalg.lstsq"
  local o = options.check(who, opts, { rcond = { type = "number", min = 0 } })
  matrices.check(who, "A", a)
  check_right(who, a, b)
  local vectors = is_vectors(a, b)
  if vectors then b = b:unsqueeze(-1) end
  if a:size(-2) ~= b:size(-2) or not broadcast(matrices.batch_of(a), matrices.batch_of(b)) then
    errors.raise_as("shape", "%s: A is %s and B is %s, expected as many rows, and batches that "
      .. "broadcast", who, matrices.shape_of(a), matrices.shape_of(b))
  end
  local spectrum = require "gpipe.linalg.spectrum"
  local inverse, rank, s = spectrum.inverse_of_rank(who, a, { rtol = o.rcond, atol = 0 })
  local x = inverse:matmul(b)
  local rest = residuals(a:detach(), b:detach(), x:detach(), rank)
  return vectors and x:squeeze(-1) or x, rest, rank, s
end

return solve
