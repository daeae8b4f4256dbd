-- lua/gpipe/linalg/spectrum.lua - singular values, eigenvalues, pseudo-inverse and rank.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local matrices = require "gpipe.linalg.matrices"
local options = require "gpipe.options"

local spectrum = {}

local transpose, scale = matrices.transpose, matrices.scale

-- 1 / (values_j - values_i) at [i, j]; 0 where they are equal.
local function inverse_gaps(values)
  return matrices.inverse_or_zero(values:unsqueeze(-2) - values:unsqueeze(-1))
end

-- ---- singular values ---------------------------------------------------------------------------

-- The part of dA V S^-1 that the columns of U do not span.
local function outside(u, change)
  return change - u:matmul(transpose(u):matmul(change))
end

-- The changes of U, S and V in A = U S V^T, with as many columns as singular values.
local function svd_slopes(u, s, vh, change)
  local v, gaps = transpose(vh), inverse_gaps(s * s)
  local inner = transpose(u):matmul(change):matmul(v)
  local turned = transpose(inner)
  local inverse = matrices.inverse_or_zero(s)
  local du = u:matmul(gaps * (scale(inner, s) + transpose(scale(inner, s))))
    + scale(outside(u, change:matmul(v)), inverse)
  local dv = v:matmul(gaps * (transpose(scale(turned, s)) + scale(turned, s)))
    + scale(outside(v, transpose(change):matmul(u)), inverse)
  return du, inner:diagonal(), transpose(dv)
end

--- The factors of A = U diag(S) V^T: U has orthogonal columns, V^T orthogonal rows, and the
--- singular values descend. With full_matrices U and V are square, else they have min(m, n)
--- columns. Shapes: [.., m, n] -> [.., m, m], [.., min(m, n)], [.., n, n]. The signs of the vectors
--- are LAPACK's choice. Between vectors of equal singular values the gradient is taken as 0.
--- Errors: elements that are not finite; a gradient is asked for with full_matrices and an A that
--- is not square.
--- ```lua
--- local _, s = gp.linalg.svd(gp.tensor {{3, 0}, {0, -4}})
--- assert(math.abs(s[1] - 4) < 1e-6 and math.abs(s[2] - 3) < 1e-6)
--- ```
---@param a gpipe.Tensor
---@param opts? {full_matrices?: boolean} true
---@return gpipe.Tensor U
---@return gpipe.Tensor S
---@return gpipe.Tensor Vh
function spectrum.svd(a, opts)
  local who = "gp.linalg.svd"
  local o = options.check(who, opts, { full_matrices = { type = "boolean", default = true } })
  matrices.check(who, "A", a)
  local m, n = a:size(-2), a:size(-1)
  local least = math.min(m, n)
  if a.requires_grad and o.full_matrices and m ~= n then
    errors.raise_as("unsupported", "%s: a gradient is asked for of A (%s) and full matrices, "
      .. "expected full_matrices = false, or A:detach()", who, matrices.shape_of(a))
  end
  if least == 0 then
    errors.raise_as("shape", "%s: A is %s, expected at least one row and one column", who,
      matrices.shape_of(a))
  end
  local columns, rows = o.full_matrices and m or least, o.full_matrices and n or least
  local u, s, vh = matrices.compute(who, "svd", "has singular values that LAPACK did not find (#), "
    .. "expected a matrix whose iteration converges", { a },
    { matrices.room(a, m, columns), matrices.room(a, least), matrices.room(a, rows, n) })
  if not a.requires_grad then return u, s, vh end
  local du, ds, dvh = svd_slopes(u, s, vh, matrices.change(a))
  return u + du, s + ds, vh + dvh
end

-- ---- eigenvalues -------------------------------------------------------------------------------

--- Ascending eigenvalues, and eigenvectors (as columns), of symmetric matrices. Only one half is
--- read: the lower one ("L") or the upper one ("U"). Shapes: [.., n, n] -> [.., n], [.., n, n]. The
--- signs of the vectors are LAPACK's choice. Between vectors of equal eigenvalues the gradient is
--- taken as 0.
--- Errors: not square, elements that are not finite.
--- ```lua
--- local w = gp.linalg.eigh(gp.tensor {{2, 1}, {1, 2}})
--- assert(math.abs(w[1] - 1) < 1e-6 and math.abs(w[2] - 3) < 1e-6)
--- ```
---@param a gpipe.Tensor
---@param half? "L"|"U"
---@return gpipe.Tensor eigenvalues
---@return gpipe.Tensor eigenvectors
function spectrum.eigh(a, half)
  local who = "gp.linalg.eigh"
  half = options.argument(who, "half", half, { choices = { "L", "U" } })
  matrices.check(who, "A", a, true)
  local n, from = a:size(-1), half == "U" and transpose(a) or a
  local w, v = matrices.compute(who, "eigh", "has eigenvalues that LAPACK did not find (#), "
    .. "expected a matrix whose iteration converges", { from },
    { matrices.room(a, n), matrices.room(a, n, n) })
  if not a.requires_grad then return w, v end
  local inner = transpose(v):matmul(matrices.change(from)):matmul(v)
  return w + inner:diagonal(), v + v:matmul(inverse_gaps(w) * inner)
end

-- ---- rank --------------------------------------------------------------------------------------

local ROUNDING = { f32 = 0x1p-23, f64 = 0x1p-52 }
local TOLERANCES = {
  rtol = { type = "number", min = 0 }, atol = { type = "number", min = 0, default = 0 },
}

-- Which singular values count as nonzero: those above both atol and rtol times the largest.
local function counting(a, s, o)
  local larger = math.max(a:size(-2), a:size(-1))
  local rtol = o.rtol or (o.atol > 0 and 0 or larger * ROUNDING[a.dtype])
  return s:gt((s:narrow(-1, 1, 1) * rtol):maximum(o.atol))
end

-- The change of the pseudo-inverse A^+ that a change of A causes; A^+ A and A A^+ are projections.
local function inverse_slope(a, inverse, change)
  local left = inverse:matmul(inverse:transpose(-2, -1)):matmul(transpose(change))
  local right = transpose(change):matmul(transpose(inverse)):matmul(inverse)
  return left - left:matmul(a):matmul(inverse) + right - inverse:matmul(a):matmul(right)
    - inverse:matmul(change):matmul(inverse)
end

--- The pseudo-inverse of matrices, how many singular values counted, and all of them.
---@param who string
---@param a gpipe.Tensor
---@param o {rtol?: number, atol: number}
function spectrum.inverse_of_rank(who, a, o)
  matrices.check(who, "A", a)
  local fixed = a:detach()
  local u, s, vh = spectrum.svd(fixed, { full_matrices = false })
  local counts = counting(fixed, s, o)
  local factors = core.where(counts, matrices.inverse_or_zero(s), 0)
  local inverse = scale(transpose(vh), factors):matmul(transpose(u))
  if a.requires_grad then
    inverse = inverse + inverse_slope(fixed, inverse, matrices.change(a))
  end
  return inverse, counts:to "i64":sum(-1), s
end

--- The pseudo-inverse (Moore and Penrose): the matrix X that minimizes |A X - 1|. Singular values
--- that are not above the larger of atol and rtol times the largest count as zero (rtol: if atol is
--- 0, the rounding of the dtype times the larger of m and n). Shapes: [.., m, n] -> [.., n, m].
--- ```lua
--- local p = gp.linalg.pinv(gp.tensor {{2, 0}, {0, 4}, {0, 0}})
--- assert(math.abs(p[2][2] - 0.25) < 1e-6)
--- ```
---@param a gpipe.Tensor
---@param opts? {rtol?: number, atol?: number}
---@return gpipe.Tensor
function spectrum.pinv(a, opts)
  local o = options.check("gp.linalg.pinv", opts, TOLERANCES)
  return (spectrum.inverse_of_rank("gp.linalg.pinv", a, o))
end

--- The number of singular values that are not zero, by the bounds of pinv. Shapes: [.., m, n] ->
--- [..], i64.
--- ```lua
--- assert(gp.linalg.matrix_rank(gp.tensor {{1, 2}, {2, 4}}):item() == 1)
--- ```
---@param a gpipe.Tensor
---@param opts? {rtol?: number, atol?: number}
---@return gpipe.Tensor
function spectrum.matrix_rank(a, opts)
  local o = options.check("gp.linalg.matrix_rank", opts, TOLERANCES)
  matrices.check("gp.linalg.matrix_rank", "A", a)
  local fixed = a:detach()
  local _, s = spectrum.svd(fixed, { full_matrices = false })
  return counting(fixed, s, o):to "i64":sum(-1)
end

return spectrum
