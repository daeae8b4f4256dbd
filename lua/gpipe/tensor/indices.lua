-- lua/gpipe/tensor/indices.lua - tensors of positions and of ids: tril_indices, triu_indices,
-- searchsorted, one_hot.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"

local indices = {}

local FARTHEST = 1 << 53 -- diagonal of a matrix

-- ---- positions, from 1 -----------------------------------------------------------------------

-- Rows and columns, from 1, of a triangle of an m x n matrix: column - row >= low and <= high.
local function triangle(who, m, n, low, high)
  m, n = check.count(who .. ": rows", m, 0), check.count(who .. ": columns", n, 0)
  local rows, columns = {}, {}
  for i = 1, m do
    for j = math.max(1, i + low), math.min(n, i + high) do
      rows[#rows + 1], columns[#columns + 1] = i, j
    end
  end
  if #rows == 0 then return core.full(who, { 2, 0 }, 0, "i64") end
  return core.tensor({ rows, columns }, "i64")
end

--- Where the elements of the lower triangle of an m x n matrix stand, up to diagonal k.
--- ```lua
--- assert(gp.tril_indices(2, 2)[1][3] == 2)
--- ```
---@param m integer
---@param n integer
---@param k? integer 0
---@return gpipe.Tensor i64 [2, count], rows and columns from 1
function indices.tril_indices(m, n, k)
  k = check.count("gp.tril_indices: k", k or 0, -FARTHEST)
  return triangle("gp.tril_indices", m, n, -FARTHEST, k)
end

--- Where the elements of the upper triangle of an m x n matrix stand, from diagonal k on.
--- ```lua
--- assert(gp.triu_indices(2, 2)[2][2] == 2)
--- ```
---@param m integer
---@param n integer
---@param k? integer 0
---@return gpipe.Tensor i64 [2, count], rows and columns from 1
function indices.triu_indices(m, n, k)
  k = check.count("gp.triu_indices: k", k or 0, -FARTHEST)
  return triangle("gp.triu_indices", m, n, k, FARTHEST)
end

--- Where values would stand in a sorted vector: the first position whose element is not less, or
--- the position after the last if all are less; with `right` the first whose element is greater.
--- ```lua
--- assert(gp.searchsorted(gp.tensor {1, 3, 5}, gp.tensor {3, 4})[2] == 3)
--- ```
---@param sorted gpipe.Tensor of one dimension, ascending
---@param values gpipe.Tensor of the same dtype
---@param opts? {right?: boolean}
---@return gpipe.Tensor i64 positions from 1, in the shape of the values
function indices.searchsorted(sorted, values, opts)
  local o = options.check("gp.searchsorted", opts,
    { right = { type = "boolean", default = false } })
  check.tensors("gp.searchsorted", sorted, values)
  if sorted:dim() ~= 1 then
    errors.raise("gp.searchsorted: the sorted tensor has %d dimensions, expected 1", sorted:dim())
  end
  local each = values:unsqueeze(-1)
  return (o.right and sorted:le(each) or sorted:lt(each)):sum(-1) + 1
end

-- ---- ids, from 0 -----------------------------------------------------------------------------

local WHOLE = { i64 = true, i32 = true, u8 = true }

-- Check that all ids are in 0 .. n - 1.
local function check_ids(who, ids, n)
  local outside = ids:lt(0):logical_or(ids:ge(n))
  if ids:numel() == 0 or not outside:any():item() then return end
  local at = outside:reshape(-1):to("f32"):argmax():item()
  errors.raise("%s: id %d at position %d is outside 0..%d", who,
    ids:reshape(-1):narrow(1, at, 1):item(), at, n - 1)
end

--- For each id (from 0) a row of n with a one at the place of the id; i64.
--- ```lua
--- local rows = gp.one_hot(gp.tensor({2, 0}, {dtype = "i64"}), 3)
--- assert(rows[1][3] == 1 and rows[2][1] == 1)
--- ```
--- Errors: an id outside of 0 .. n - 1, named with its place; in a trace such a row is all zeros.
---@param ids gpipe.Tensor of integers
---@param n integer
---@return gpipe.Tensor i64 [.., n]
function indices.one_hot(ids, n)
  if getmetatable(ids) ~= "gpipe.Tensor" then
    errors.raise("gp.one_hot: the ids are %s, expected a tensor", errors.show(ids))
  end
  if not WHOLE[ids.dtype] then
    errors.raise("gp.one_hot: the ids are %s, expected integers (convert with to(\"i64\"))",
      ids.dtype)
  end
  n = check.count("gp.one_hot: n", n, 1)
  ids = ids:to "i64"
  if not core.tracing() then check_ids("gp.one_hot", ids, n) end
  local range = beside(ids, core.arange(0, n - 1, 1, "i64"))
  return ids:unsqueeze(-1):eq(range):to "i64"
end

return indices
