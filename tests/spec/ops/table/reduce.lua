-- tests/spec/ops/table/reduce.lua - sums, means, largest elements and their positions.

local array = require "tests.support.array"
local inputs = require "tests.support.inputs"

local x, any = inputs.float, inputs.any

local ALL = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }
local FLOATS = { f32 = true, f64 = true, bf16 = true, f16 = true }

local function dims_of(dim) return type(dim) == "number" and { dim } or dim end

-- ---- sum -------------------------------------------------------------------------------------

local function total(list)
  local sum = 0
  for _, v in ipairs(list) do sum = sum + v end
  return sum
end

local function mean(list) return total(list) / #list end

local sum = {
  op = "sum", covers = { "sum_rows_dw" }, tolerance = "sum", gradient = true,
  dtypes = { "f32", "f64", "i64", "i32", "u8", "bool" },
  result = { function(dtype) return FLOATS[dtype] and dtype or "i64" end },
  call = function(o, a) return a[o.mean and "mean" or "sum"](a, o.dim, o.keep) end,
  reference = function(o, a) return array.fold(a, dims_of(o.dim), o.keep,
    o.mean and mean or total) end,
  cases = {
    { any { 2, 3 } },
    { any { 2, 3 }, o = { keep = true } },
    { any {} },
    { any { 1, 1 }, o = { dim = 1 } },
    { any { 0 } },
    { any { 0, 3 }, o = { dim = 1 } },
    { any { 2, 0 }, o = { dim = 1 } },
    { any { 2, 3, 4 }, o = { dim = 2 } },
    { any { 2, 3, 4 }, o = { dim = { 1, 3 } } },
    { any { 2, 3, 4 }, o = { dim = { -1, 1 }, keep = true } },
    { any { 2, 3, 4 }, o = { dim = { 3, 2, 1 } } },
    { any { 2, 1, 3, 1, 2 }, o = { dim = { 2, 4 } } },
    { any { 2, 3, 2, 3 }, o = { dim = { 1, 3 }, keep = true } },
    { any { 300 } },
    { any { 5, 130 }, o = { dim = -1 } },
    { any { 70, 3 }, o = { dim = 1 } },
    { any { 130, 5 }, o = { dim = 2 } },
    { any { 3, 270 }, o = { dim = 1 } },
    { any { 4, 3, layout = "transposed" }, o = { dim = 1 } },
    { any { 4, 3, layout = "narrowed" }, o = { dim = 2 } },
    { any { 4, 3, layout = "spaced" } },
    { any { 4, 3, layout = "expanded" }, o = { dim = 1 } },
    { x { 2, 3 }, o = { mean = true }, dtypes = "f32 f64" },
    { x { 2, 3, 4 }, o = { mean = true, dim = { 1, 3 }, keep = true }, dtypes = "f32 f64" },
    { x { 70, 3, layout = "transposed" }, o = { mean = true, dim = 1 }, dtypes = "f32 f64" },
    { inputs.ids { 3, values = { math.maxinteger - 2, 1, 1 } }, dtypes = "i64" },
  },
  refuses = {
    { x { 2, 3 }, o = { dim = 3 }, error = "sum: dim is 3, expected 1..2 or -2..-1" },
    { x { 2, 3 }, o = { dim = 0 }, error = "sum: dim is 0, expected 1..2" },
    { x { 2, 3 }, o = { dim = { 1, -2 } }, error = "a dimension is given twice" },
    { x { 2, 3 }, o = { dim = {} }, error = "sum: dim is an empty list" },
    { x {}, o = { dim = 1 }, error = "it has no dimensions" },
    { inputs.ids { 2, below = 3 }, o = { mean = true },
      error = 'mean: the tensor is i64, expected a float one' },
  },
}

-- ---- max, argmax -----------------------------------------------------------------------------

-- Returns the first of the largest; NaN is larger than all.
local function position(list)
  local best = 1
  for i, v in ipairs(list) do
    if v > list[best] or (v ~= v and list[best] == list[best]) then best = i end
  end
  return best
end

local function largest(list) return list[position(list)] end

local function extreme_cases(dim_all)
  local broken = { 1.0, 0 / 0, 3.0, -math.huge, -math.huge, -math.huge, math.huge, 2.0, 0 / 0 }
  return {
    { any { 2, 3 }, o = dim_all },
    { any { 2, 3 }, o = { dim = 1 } },
    { any { 2, 3 }, o = { dim = 2, keep = true } },
    { any { 2, 3, 4 }, o = { dim = 2 } },
    { any { 2, 3, 4 }, o = { dim = -3, keep = true } },
    { any { 1 }, o = { dim = 1 } },
    { any {}, o = {} },
    { any { 0, 3 }, o = { dim = 2 } },
    { any { 3, 0, 2 }, o = { dim = 1 } },
    { any { 300 }, o = { dim = 1 } },
    { any { 70, 5 }, o = { dim = 1 } },
    { any { 130, 5 }, o = { dim = 2 } },
    { any { 3, 130 }, o = { dim = 1 } },
    { any { 4, 5, layout = "transposed" }, o = { dim = 1 } },
    { any { 4, 5, layout = "narrowed" }, o = { dim = 2 } },
    { any { 4, 5, layout = "spaced" }, o = {} },
    { any { 4, 5, layout = "expanded", fixed = true }, o = { dim = 2 } },
    { x { 6, values = { 2.0, 3.0, 3.0, 1.0, 3.0, 3.0 }, fixed = true }, o = { dim = 1 },
      dtypes = "f32 f64 f16" },
    { x { 3, 3, values = broken, fixed = true }, o = { dim = 2 }, dtypes = "f32 f64 f16 bf16" },
    { x { 3, 3, values = broken, fixed = true }, o = { dim = 1 }, dtypes = "f32 f64 f16 bf16" },
  }
end

local function refusals(name)
  return {
    { x { 2, 3 }, o = { dim = 3 }, error = name .. ": dim is 3, expected 1..2 or -2..-1" },
    { x { 2, 3 }, o = { dim = "row" }, error = name .. ": dim is \"row\" (string)" },
    { x { 2, 0 }, o = { dim = 2 },
      error = name .. ": dimension 2 is empty and has no largest element" },
    { x { 0 }, o = {}, error = "is empty and has no largest element" },
    { x {}, o = { dim = 1 }, error = "it has no dimensions" },
  }
end

local max = {
  op = "max", covers = { "max_dx" }, tolerance = "exact", gradient = true, dtypes = ALL,
  result = { "like", "i64" },
  call = function(o, a) return a:max(o.dim, o.keep) end,
  reference = function(o, a)
    if not o.dim then return array.fold(a, nil, false, largest) end
    local dims = { o.dim }
    return array.fold(a, dims, o.keep, largest), array.fold(a, dims, o.keep, position)
  end,
  cases = extreme_cases {}, refuses = refusals "max",
}

local argmax = {
  op = "argmax", tolerance = "exact", gradient = false, dtypes = ALL, result = { "i64" },
  call = function(o, a) return a:argmax(o.dim, o.keep) end,
  reference = function(o, a) return array.fold(a, dims_of(o.dim), o.dim and o.keep, position) end,
  cases = extreme_cases {}, refuses = refusals "argmax",
}

return { sum, max, argmax }
