-- lua/gpipe/tensor/indices.lua - functions that make tensors, put together from those of create.lua.

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local random = require "gpipe.random"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local more = {}

local MOST_DRAWN = 1 << 53 -- integers that one draw of f64 tells apart

local common, drawn_rules = create.rules.common, create.rules.drawn
local integers = { device = drawn_rules.device, seed = drawn_rules.seed }

--- Tensors of one shape along a new dimension, the first unless said.
--- ```lua
--- assert(gp.stack({gp.ones {2}, gp.zeros {2}}).shape[1] == 2)
--- ```
---@param list gpipe.Tensor[]
---@param d? integer
---@return gpipe.Tensor
function more.stack(list, d)
  if type(list) ~= "table" or #list == 0 then
    errors.raise("gp.stack: the tensors are %s, expected a list of at least one", errors.show(list))
  end
  local parts = {}
  for i, t in ipairs(list) do
    if getmetatable(t) ~= "gpipe.Tensor" then
      errors.raise("gp.stack: element %d is %s, expected a tensor", i, errors.show(t))
    end
    local have, want = table.concat(t.shape, "x"), table.concat(list[1].shape, "x")
    if have ~= want then
      errors.raise("gp.stack: element %d is %s, expected %s as the first", i, have, want)
    end
  end
  d = check.dim("gp.stack", d or 1, list[1]:dim() + 1)
  for i, t in ipairs(list) do parts[i] = t:unsqueeze(d) end
  return core.concat(parts, d)
end

--- The identity: ones where row and column are equal.
--- ```lua
--- assert(gp.eye(3):sum():item() == 3)
--- ```
---@param n integer
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor [n, n]
function more.eye(n, opts)
  n = check.count("gp.eye: n", n, 1)
  local o = options.check("gp.eye", opts, common)
  local row = core.arange(1, n, 1, "i64")
  local t = create.full({ n, n }, 0, o)
  return core.where(row:reshape(n, 1):eq(row), 1, t)
end

--- n numbers from a to b, both included, equally far apart.
--- ```lua
--- assert(gp.linspace(0, 1, 5)[2] == 0.25)
--- ```
---@param a number
---@param b number
---@param n integer
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function more.linspace(a, b, n, opts)
  n = check.count("gp.linspace: n", n, 1)
  local o = options.check("gp.linspace", opts, common)
  if not math.type(a) or not math.type(b) then
    errors.raise("gp.linspace: the range is %s to %s, expected numbers", errors.show(a),
      errors.show(b))
  end
  local values = {}
  for i = 1, n do values[i] = n == 1 and a or a + (b - a) * ((i - 1) / (n - 1)) end
  if n > 1 then values[n] = b end
  return create.tensor(values, o)
end

--- Whole numbers from low to high - 1, each as likely, i64.
--- ```lua
--- assert(gp.randint(3, 4, {2})[1] == 3)
--- ```
---@param low integer
---@param high integer excluded; at most 2^53 above low
---@param shape integer[]
---@param opts? {seed?: integer, device?: string}
---@return gpipe.Tensor i64
function more.randint(low, high, shape, opts)
  low = check.count("gp.randint: low", low, math.mininteger)
  high = check.count("gp.randint: high", high, low < math.maxinteger and low + 1 or low)
  if high - low <= 0 or high - low > MOST_DRAWN then
    errors.raise("gp.randint: from %d to %d are %s, expected at most 2^53", low, high,
      high == low and "no integers" or "too many integers")
  end
  local o = options.check("gp.randint", opts, integers)
  local drawn = create.rand(shape, { dtype = "f64", seed = o.seed, device = o.device })
  return (drawn * (high - low)):to "i64" + low
end

--- The positions 1 .. n in random order, i64.
--- ```lua
--- assert(gp.randperm(4):sum():item() == 10)
--- ```
---@param n integer
---@param opts? {seed?: integer}
---@return gpipe.Tensor i64
function more.randperm(n, opts)
  n = check.count("gp.randperm: n", n, 0)
  local o = options.check("gp.randperm", opts, { seed = drawn_rules.seed })
  return core.permutation(n, random.next(o.seed))
end

--- One with probability p, else zero.
--- ```lua
--- assert(gp.bernoulli(1, {3}):sum():item() == 3)
--- ```
---@param p number
---@param shape integer[]
---@param opts? {dtype?: gpipe.dtype, seed?: integer, device?: string}
---@return gpipe.Tensor
function more.bernoulli(p, shape, opts)
  if not math.type(p) or not (p >= 0 and p <= 1) then -- NaN is neither
    errors.raise("gp.bernoulli: p is %s, expected a number from 0 to 1", errors.show(p))
  end
  local o = options.check("gp.bernoulli", opts, drawn_rules)
  local drawn = create.rand(shape, { seed = o.seed, device = o.device })
  return drawn:lt(p):to(o.dtype)
end

local WHOLE = { i64 = true, i32 = true, u8 = true }

-- Ids that are known must be of 0 .. n - 1.
local function check_ids(who, ids, n)
  local outside = ids:lt(0):logical_or(ids:ge(n))
  if ids:numel() == 0 or not outside:any():item() then return end
  local at = outside:reshape(-1):to("f32"):argmax():item()
  errors.raise("%s: id %d at position %d is outside 0..%d", who,
    ids:reshape(-1):narrow(1, at, 1):item(), at, n - 1)
end

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
function more.tril_indices(m, n, k)
  k = check.count("gp.tril_indices: k", k or 0, -MOST_DRAWN)
  return triangle("gp.tril_indices", m, n, -MOST_DRAWN, k)
end

--- Where the elements of the upper triangle of an m x n matrix stand, from diagonal k on.
--- ```lua
--- assert(gp.triu_indices(2, 2)[2][2] == 2)
--- ```
---@param m integer
---@param n integer
---@param k? integer 0
---@return gpipe.Tensor i64 [2, count], rows and columns from 1
function more.triu_indices(m, n, k)
  k = check.count("gp.triu_indices: k", k or 0, -MOST_DRAWN)
  return triangle("gp.triu_indices", m, n, k, MOST_DRAWN)
end

--- For ids (from 0) rows of n with a one where the id is; i64.
--- ```lua
--- local rows = gp.one_hot(gp.tensor({2, 0}, {dtype = "i64"}), 3)
--- assert(rows[1][3] == 1 and rows[2][1] == 1)
--- ```
--- Errors: an id outside of 0 .. n - 1, named with its place; in a trace such a row is all zeros.
---@param ids gpipe.Tensor of integers
---@param n integer
---@return gpipe.Tensor i64 [.., n]
function more.one_hot(ids, n)
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

--- What `t:bytes()` of a tensor of this shape and dtype gave.
---
--- Errors: another number of bytes; a byte of bool that is neither 0 nor 1.
--- ```lua
--- local t = gp.randn {2, 3}
--- assert(gp.equal(t, gp.frombytes(t:bytes(), {2, 3}, "f32")))
--- ```
---@param s string
---@param shape integer[]
---@param dtype gpipe.dtype
---@return gpipe.Tensor
function more.frombytes(s, shape, dtype)
  if type(s) ~= "string" then
    errors.raise("gp.frombytes: the first argument is %s, expected a string", errors.show(s))
  end
  return core.frombytes(s, shape, dtype)
end

--- The coordinates of the points of a grid: for n vectors n tensors of n dimensions, of which the
--- k-th has vector k along dimension k. `indexing = "xy"` exchanges the first two dimensions.
--- Views.
--- ```lua
--- local y, x = gp.meshgrid(gp.arange(1, 2), gp.arange(1, 3))
--- assert(y[2][3] == 2 and x[2][3] == 3)
--- ```
---@param first gpipe.Tensor of one dimension, as the others
---@param ... gpipe.Tensor|{indexing?: "ij"|"xy"} options come last
---@return gpipe.Tensor ...
function more.meshgrid(first, ...)
  local list = { first, ... }
  local opts = type(list[#list]) == "table" and table.remove(list) or nil
  local o = options.check("gp.meshgrid", opts, {
    indexing = { type = "string", default = "ij", choices = { "ij", "xy" } },
  })
  local shape = {}
  for d, t in ipairs(list) do
    if not is_tensor(t) or t:dim() > 1 then
      errors.raise("gp.meshgrid: argument %d is %s, expected a tensor of one dimension", d,
        is_tensor(t) and ("one of %d dimensions"):format(t:dim()) or errors.show(t))
    end
    if t:dim() == 0 then list[d] = t:reshape { 1 } end
    shape[d] = t:numel()
  end
  if #list == 0 then errors.raise "gp.meshgrid: there are no tensors, expected at least one" end
  for d, t in ipairs(list) do
    local line = {}
    for i = 1, #shape do line[i] = i == d and shape[d] or 1 end
    list[d] = t:reshape(line):expand(shape)
    if o.indexing == "xy" and #shape > 1 then list[d] = list[d]:transpose(1, 2) end
  end
  return table.unpack(list)
end

return more
