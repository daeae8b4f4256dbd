-- lua/gpipe/linalg/factor.lua - matrices as products of triangular and orthogonal factors.

local errors = require "gpipe.errors"
local matrices = require "gpipe.linalg.matrices"
local options = require "gpipe.options"

local factor = {}

local transpose = matrices.transpose

-- The lower triangle, with half of the diagonal.
local function lower_half(t) return (t:tril() + t:tril(-1)) / 2 end

-- The change of L that a change dA of a symmetric A causes: L lower_half(L^-1 dA L^-T).
local function cholesky_slope(l, change)
  local inverse = require("gpipe.linalg.solve").inv(l)
  local symmetric = (change + transpose(change)) / 2
  return l:matmul(lower_half(inverse:matmul(symmetric):matmul(transpose(inverse))))
end

--- The lower triangular L with A = L L^T, for a symmetric positive definite A, of which only the
--- lower half is read. With upper it is the transpose of L, and only the upper half is read.
--- Shapes: [.., n, n] -> the same.
--- Errors: not square, not positive definite.
--- ```lua
--- local l = gp.linalg.cholesky(gp.tensor {{4, 2}, {2, 2}})
--- assert(l[1][1] == 2 and l[2][1] == 1 and l[2][2] == 1 and l[1][2] == 0)
--- ```
---@param a gpipe.Tensor
---@param opts? {upper?: boolean} false
---@return gpipe.Tensor
function factor.cholesky(a, opts)
  local who = "gp.linalg.cholesky"
  local o = options.check(who, opts, { upper = { type = "boolean", default = false } })
  matrices.check(who, "A", a, true)
  local n, from = a:size(-1), o.upper and transpose(a) or a
  local l = matrices.compute(who, "cholesky",
    "is not positive definite: its leading minor of order # is not positive, expected one that is",
    { from }, { matrices.room(a, n, n) })
  if a.requires_grad then l = l + cholesky_slope(l, matrices.change(from)) end
  return o.upper and transpose(l) or l
end

-- ---- QR ----------------------------------------------------------------------------------------

-- The changes of Q and R in A = Q R, with R square: Q^T dA R^-1 is the sum of a skew matrix and the
-- upper triangular dR R^-1.
local function qr_slopes(q, r, change)
  local inverse = require("gpipe.linalg.solve").inv(r)
  local both = transpose(q):matmul(change):matmul(inverse)
  local dr = transpose(lower_half(both + transpose(both))):matmul(r)
  return (change - q:matmul(dr)):matmul(inverse), dr
end

--- The factors Q and R of A = Q R: Q has orthogonal columns, R is an upper triangle. "reduced": Q
--- has as many columns as A has rows or columns, whichever are fewer; "complete": Q is square; "r":
--- only R, as with "reduced". Shapes: [.., m, n] -> [.., m, k], [.., k, n].
--- Errors: a gradient is asked for in mode "complete", or for matrices with fewer rows than columns
--- or without full rank, where there is none.
--- ```lua
--- local q, r = gp.linalg.qr(gp.tensor {{3, 1}, {4, 2}})
--- assert(math.abs(q:matmul(r)[2][1] - 4) < 1e-5)
--- ```
---@param a gpipe.Tensor
---@param mode? "reduced"|"complete"|"r"
---@return gpipe.Tensor Q or, in mode "r", R
---@return gpipe.Tensor? R
function factor.qr(a, mode)
  local who = "gp.linalg.qr"
  mode = options.argument(who, "mode", mode, { choices = { "reduced", "complete", "r" } })
    or "reduced"
  matrices.check(who, "A", a)
  local m, n = a:size(-2), a:size(-1)
  local k = mode == "complete" and m or math.min(m, n)
  if a.requires_grad and (m < n or k > n) then
    errors.raise_as("unsupported",
      '%s: a gradient is asked for of A (%s) and mode "%s", expected at least as many rows as '
      .. 'columns and "reduced", or A:detach()', who, matrices.shape_of(a), mode)
  end
  local q, r = matrices.compute(who, "qr", "", { a },
    { matrices.room(a, m, k), matrices.room(a, k, n) })
  if a.requires_grad then
    local dq, dr = qr_slopes(q, r, matrices.change(a))
    q, r = q + dq, r + dr
  end
  if mode == "r" then return r end
  return q, r
end

return factor
