-- tests/spec/ops/table/index.lua - elements by position, sums by position, sorting, sums and
-- products along a line.

local array = require "tests.support.array"
local inputs = require "tests.support.inputs"

local x, any = inputs.float, inputs.any

local ALL = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }

-- Makes positions, from 1, which need no gradient.
local function at(fields)
  fields.dtype = "i64"
  return inputs.ids(fields)
end

local function moved(index, dim, to)
  local there = { table.unpack(index) }
  there[dim] = to
  return there
end

-- ---- gather, scatter_add ---------------------------------------------------------------------

local gather = {
  op = "gather", tolerance = "exact", gradient = true, dtypes = ALL,
  call = function(o, a, positions) return a:gather(o.dim, positions) end,
  reference = function(o, a, positions)
    local dim = o.dim < 0 and #a.shape + 1 + o.dim or o.dim
    return array.build(positions.shape, function(i, flat)
      return array.at(a, moved(i, dim, positions[flat]))
    end)
  end,
  cases = {
    { any { 3 }, at { 5, values = { 3, 1, 1, 2, 3 } }, o = { dim = 1 } },
    { any { 2, 3 }, at { 2, 2, values = { 3, 3, 1, 2 } }, o = { dim = 2 } },
    { any { 2, 3 }, at { 3, 3, values = { 1, 2, 1, 2, 1, 1, 1, 2, 2 } }, o = { dim = 1 } },
    { any { 2, 3, layout = "transposed" }, at { 2, 1, values = { 2, 3 } }, o = { dim = -1 } },
    { any { 3, 4, layout = "narrowed" }, at { 2, 2, values = { 4, 1, 2, 2 } }, o = { dim = 2 } },
    { any { 0 }, at { 0, values = {} }, o = { dim = 1 } },
    { any { 3 }, at { 0, values = {} }, o = { dim = 1 } },
  },
  refuses = {
    { x { 3 }, at { 2, values = { 1, 4 } }, o = { dim = 1 },
      error = "position 4 at row 2 is outside 1..3" },
    { x { 3 }, at { 1, values = { 0 } }, o = { dim = 1 },
      error = "position 0 at row 1 is outside 1..3" },
    { x { 0 }, at { 1, values = { 1 } }, o = { dim = 1 }, error = "dimension 1 has size 0" },
    { x { 2, 3 }, at { 2, values = { 1, 1 } }, o = { dim = 1 },
      error = "gather: the positions have 1 dimensions, expected 2" },
    { x { 2, 3 }, at { 3, 1, values = { 1, 1, 1 } }, o = { dim = 2 },
      error = "size 3 in dimension 1, expected at most 2" },
    { x { 2 }, x { 2 }, o = { dim = 1 }, error = "gather: the positions are f32, expected" },
  },
}

local scatter = {
  op = "scatter_sum", tolerance = "sum", gradient = true, dtypes = { "f32", "f64", "i64", "i32" },
  call = function(o, a, positions, source) return a:scatter_add(o.dim, positions, source) end,
  reference = function(o, a, positions, source)
    local sums = array.map(function(v) return v end, a)
    local function flat_of(index)
      local flat = 0
      for d, size in ipairs(a.shape) do flat = flat * size + index[d] - 1 end
      return flat + 1
    end
    array.build(positions.shape, function(i, flat)
      local to = flat_of(moved(i, o.dim, positions[flat]))
      sums[to] = sums[to] + array.at(source, i)
      return 0
    end)
    return sums
  end,
  cases = {
    { any { 3 }, at { 5, values = { 3, 1, 1, 3, 3 } }, any { 5 }, o = { dim = 1 } },
    { any { 2, 3 }, at { 2, 2, values = { 3, 3, 1, 2 } }, any { 2, 2 }, o = { dim = 2 } },
    { any { 2, 3 }, at { 3, 2, values = { 1, 2, 1, 2, 1, 1 } }, any { 3, 3 }, o = { dim = 1 } },
    { any { 3, 4, layout = "transposed" }, at { 1, 2, values = { 4, 1 } },
      any { 2, 3, layout = "transposed" }, o = { dim = 2 } },
    { any { 3 }, at { 0, values = {} }, any { 0 }, o = { dim = 1 } },
  },
  refuses = {
    { x { 3 }, at { 2, values = { 1, 4 } }, x { 2 }, o = { dim = 1 },
      error = "position 4 at row 2 is outside 1..3" },
    { x { 3 }, at { 2, values = { 1, 2 } }, x { 1 }, o = { dim = 1 },
      error = "size 2 in dimension 1, expected at most 1" },
  },
}

-- ---- sort ------------------------------------------------------------------------------------

-- Returns the positions of a list in order: of equals the first comes first, NaN is the greatest.
local function order_of(list, descending)
  local order = {}
  for i = 1, #list do order[i] = i end
  local function less(a, b) return a < b or (b ~= b and a == a) end
  table.sort(order, function(i, j)
    local a, b = list[i], list[j]
    if descending then a, b = b, a end
    if less(a, b) then return true end
    if less(b, a) then return false end
    return i < j
  end)
  return order
end

local sort = {
  op = "sort", tolerance = "exact", gradient = true, dtypes = ALL, result = { "like", "i64" },
  call = function(o, a) return a:sort(o.dim, { descending = o.descending }) end,
  reference = function(o, a)
    local function values(list)
      local sorted = {}
      for i, from in ipairs(order_of(list, o.descending)) do sorted[i] = list[from] end
      return sorted
    end
    local function positions(list) return order_of(list, o.descending) end
    return array.lines(a, values, o.dim), array.lines(a, positions, o.dim)
  end,
  cases = {
    { any { 7 }, o = {} },
    { any { 33, fixed = true }, o = { descending = true } },
    { any { 3, 5 }, o = { dim = 1 } },
    { any { 2, 7, 3 }, o = { dim = 2, descending = true } },
    { any { 4, 3, layout = "transposed" }, o = { dim = 1 } },
    { any { 4, 3, layout = "spaced" }, o = { dim = 2 } },
    { any { 0 }, o = { dim = 1 } },
    { any { 300, fixed = true }, o = {} },
    { x { 6, values = { 1.0, 0 / 0, -0.0, 0.0, -math.huge, math.huge }, fixed = true }, o = {},
      dtypes = "f32 f64 bf16 f16" },
    { x { 6, values = { 1.0, 0 / 0, -0.0, 0.0, -math.huge, math.huge }, fixed = true },
      o = { descending = true }, dtypes = "f32 f64 bf16 f16" },
  },
  refuses = {
    { x { 2, 3 }, o = { dim = 3 }, error = "sort: dim is 3, expected 1..2 or -2..-1" },
  },
}

-- ---- cumsum, prod ----------------------------------------------------------------------------

local function running(list)
  local sums, sum = {}, 0
  for i, v in ipairs(list) do
    sum = sum + v
    sums[i] = sum
  end
  return sums
end

local cumsum = {
  op = "cumsum", tolerance = "sum", gradient = true, dtypes = { "f32", "f64", "i64", "i32", "u8" },
  result = { function(dtype) return dtype:sub(1, 1) == "f" and dtype or "i64" end },
  call = function(o, a) return a:cumsum(o.dim) end,
  reference = function(o, a) return array.lines(a, running, o.dim) end,
  cases = {
    { any { 7 }, o = { dim = 1 } },
    { any { 3, 70 }, o = { dim = 2 } },
    { any { 5, 3 }, o = { dim = 1 } },
    { any { 2, 5, 33 }, o = { dim = 2 } },
    { any { 4, 3, layout = "transposed" }, o = { dim = -1 } },
    { any { 0, 3 }, o = { dim = 1 } },
  },
  refuses = { { x { 2 }, o = { dim = 2 }, error = "cumsum: dim is 2, expected 1..1 or -1..-1" } },
}

local function product(list)
  local value = 1
  for _, v in ipairs(list) do value = value * v end
  return value
end

local prod = {
  op = "prod", covers = { "prod_dx" }, tolerance = "sum", gradient = true,
  dtypes = { "f32", "f64", "i64", "i32" },
  result = { function(dtype) return dtype:sub(1, 1) == "f" and dtype or "i64" end },
  call = function(o, a) return a:prod(o.dim, o.keep) end,
  reference = function(o, a) return array.fold(a, o.dim and { o.dim }, o.keep, product) end,
  cases = {
    { any { 2, 3 }, o = {} },
    { any { 2, 3 }, o = { dim = 2 } },
    { any { 5, 3 }, o = { dim = 1, keep = true } },
    { any { 2, 4, 33 }, o = { dim = 2 } },
    { any { 4, 3, layout = "transposed" }, o = { dim = 2 } },
    { any {}, o = {} },
    { any { 0, 2 }, o = { dim = 1 } },
    { x { 3, 3, values = { 2.0, 0.0, 3.0, 0.0, 0.0, 4.0, 1.0, 2.0, 3.0 } }, o = { dim = 2 },
      dtypes = "f32 f64" },
  },
  refuses = { { x { 2 }, o = { dim = 2 }, error = "prod: dim is 2, expected 1..1 or -1..-1" } },
}

return { gather, scatter, sort, cumsum, prod }
