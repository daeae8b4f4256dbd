-- lua/gpipe/linalg/norm.lua - norms of vectors and matrices.

local check = require "gpipe.tensor.methods.check"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local matrices = require "gpipe.linalg.matrices"
local options = require "gpipe.options"
local root = require "gpipe.tensor.methods.root"
local spectrum = require "gpipe.linalg.spectrum"

local who = "gp.linalg.norm"

local function size_of(x) return x:abs() end

-- ---- of vectors --------------------------------------------------------------------------------

local function of_vectors(x, order, dims, keep)
  if order > 0 then return root.norm(x, order, dims, keep) end
  if order == -math.huge then return size_of(x):amin(dims, keep) end
  if order == 0 then return x:ne(0):to(x.dtype):sum(dims, keep) end
  return (size_of(x) ^ order):sum(dims, keep) ^ (1 / order)
end

-- ---- of matrices -------------------------------------------------------------------------------

local function singular_values(x)
  local _, s = spectrum.svd(x, { full_matrices = false })
  return s
end

-- Matrix norms over the last two dimensions.
local ORDERS = {
  fro = function(x) return of_vectors(x, 2, { -2, -1 }) end,
  nuc = function(x) return singular_values(x):sum(-1) end,
  [1] = function(x) return (size_of(x):sum(-2):max({ -1 })) end,
  [-1] = function(x) return (size_of(x):sum(-2):min({ -1 })) end,
  [2] = function(x) return singular_values(x):select(-1, 1) end,
  [-2] = function(x) return singular_values(x):select(-1, -1) end,
  [math.huge] = function(x) return (size_of(x):sum(-1):max({ -1 })) end,
  [-math.huge] = function(x) return (size_of(x):sum(-1):min({ -1 })) end,
}

local function of_matrices(x, order, rows, columns, keep)
  local f = ORDERS[order] or errors.raise('%s: ord is %s, expected "fro", "nuc", 1, -1, 2, -2, '
    .. "math.huge or -math.huge of matrices", who, errors.show(order))
  local list, others = {}, {}
  for d = 1, x:dim() do
    if d ~= rows and d ~= columns then others[#others + 1] = d end
  end
  table.move(others, 1, #others, 1, list)
  list[#list + 1], list[#list + 2] = rows, columns
  local y = f(x:permute(list))
  if not keep then return y end
  local shape = x.shape
  shape[rows], shape[columns] = 1, 1
  return y:reshape(shape)
end

-- ---- choice of the norm ------------------------------------------------------------------------

-- The dimensions in the order in which they are given.
local function dimensions(x, dim)
  check.dims(who .. ": dim", dim, x.shape)
  local list = {}
  for i, d in ipairs(type(dim) == "table" and dim or { dim }) do
    list[i] = check.dim(who .. ": dim", d, x:dim())
  end
  return list
end

-- Resolve the dimensions: if an order is given without dim, A must be one vector or matrix.
local function meant(x, order, dim)
  if dim ~= nil then
    local list = dimensions(x, dim)
    if #list ~= 1 and #list ~= 2 then
      errors.raise_as("shape", "%s: dim has %d dimensions, expected 1 or 2", who, #list)
    end
    return list
  end
  if x:dim() ~= 1 and x:dim() ~= 2 then
    errors.raise_as("shape", "%s: A has %d dimensions and ord is %s, expected 1 or 2, or dim", who,
      x:dim(), errors.show(order))
  end
  return x:dim() == 1 and { 1 } or { 1, 2 }
end

local function check_order(order)
  if order == nil or order == "fro" or order == "nuc" then return end
  if math.type(order) and order == order then return end
  errors.raise('%s: ord is %s, expected a number, "fro" or "nuc"', who, errors.show(order))
end

--- The norm of vectors along one dimension, or of matrices over two. Without ord it is the 2-norm
--- of all elements (of those along dim). For vectors ord is any number: 0 counts the elements that
--- are not zero, math.huge and -math.huge are the largest and the smallest absolute value. For
--- matrices it is "fro", "nuc" (the sum of the singular values), 2 and -2 (the largest and the
--- smallest of them), 1 and -1 (the largest and the smallest sum of absolute values in a column),
--- math.huge and -math.huge (in a row).
--- Errors: another ord; ord without dim if A is neither a vector nor a matrix.
--- ```lua
--- assert(gp.linalg.norm(gp.tensor {3, 4}):item() == 5)
--- assert(gp.linalg.norm(gp.tensor {{1, 2}, {3, 4}}, 1):item() == 6)
--- ```
---@param a gpipe.Tensor f32 or f64
---@param ord? number|"fro"|"nuc"
---@param dim? integer|integer[]
---@param keep? boolean keep the dimensions with size 1
---@return gpipe.Tensor
local function norm(a, ord, dim, keep)
  if not is_tensor(a) then errors.raise("%s: A is %s, expected a tensor", who, errors.show(a)) end
  if not matrices.is_float(a) then
    errors.raise_as("dtype", '%s: A is %s, expected f32 or f64 (convert with to("f32"))', who,
      a.dtype)
  end
  check_order(ord)
  keep = options.argument(who, "keep", keep, { type = "boolean" })
  if ord == nil then
    return of_vectors(a, 2, dim ~= nil and dimensions(a, dim) or nil, keep)
  end
  local list = meant(a, ord, dim)
  if #list == 2 then return of_matrices(a, ord, list[1], list[2], keep) end
  if type(ord) == "string" then
    errors.raise('%s: ord is "%s" of vectors, expected a number', who, ord)
  end
  return of_vectors(a, ord, list, keep)
end

return norm
