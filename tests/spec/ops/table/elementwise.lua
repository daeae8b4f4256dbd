-- tests/spec/ops/table/elementwise.lua - arithmetic, functions, comparisons, where.

local gp = require "gpipe"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"
local special = require "tests.support.special"

local x, any, bools = inputs.float, inputs.any, inputs.bools

local ALL = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }

-- ---- shapes ----------------------------------------------------------------------------------

-- {2, 3, layout = ...} with the values of a range.
local function filled(make, range, fields)
  local spec = make(fields)
  for key, value in pairs(range) do spec[key] = value end
  return spec
end

-- Layouts and sizes of one input: every way in which the walk over memory can go.
local function one_input(make, range)
  local cases = {}
  for i, fields in ipairs {
    { 2, 3 }, {}, { 1 }, { 1, 1, 1 }, { 7 }, { 0, 3 }, { 2, 0 }, { 300 }, { 70, 5 }, { 2, 3, 4, 5 },
    { 3, 4, layout = "transposed" }, { 2, 3, 4, layout = "swapped" }, { 3, 5, layout = "narrowed" },
    { 4, 5, layout = "spaced" }, { 6, 3, layout = "expanded" },
  } do
    cases[i] = { filled(make, range, fields) }
  end
  return cases
end

-- Pairs that broadcast in every direction, in every layout.
local PAIRS = {
  { { 2, 3 }, { 2, 3 } }, { { 2, 3 }, { 3 } }, { { 3 }, { 2, 3 } }, { { 2, 3 }, {} }, { {}, { 4 } },
  { {}, {} }, { { 4, 1 }, { 1, 5 } }, { { 2, 1, 3 }, { 4, 1 } }, { { 1, 1 }, { 5 } },
  { { 0, 3 }, { 3 } },
  { { 2, 1 }, { 2, 0 } }, { { 70, 5 }, { 70, 5 } }, { { 300 }, { 300 } }, { { 70, 5 }, { 70, 1 } },
  { { 3, 4, layout = "transposed" }, { 3, 4 } }, { { 3, 4 }, { 3, 4, layout = "narrowed" } },
  { { 3, 4, layout = "spaced" }, { 4, layout = "spaced" } },
  { { 5, 4, layout = "expanded" }, { 5, 4, layout = "transposed" } },
  { { 2, 3, 4, layout = "swapped" }, { 3, 1, layout = "narrowed" } },
}

local function two_inputs(make, first, second)
  local cases = {}
  for i, pair in ipairs(PAIRS) do
    cases[i] = { filled(make, first, pair[1]), filled(make, second or first, pair[2]) }
  end
  return cases
end

local function with_numbers(cases, first, second)
  cases[#cases + 1] = { filled(x, first, { 3, 4 }), o = { right = 1.5 } }
  cases[#cases + 1] = { filled(x, second, { 3, 4, layout = "narrowed" }), o = { left = 1.5 } }
  return cases
end

-- ---- rows ------------------------------------------------------------------------------------

local MISMATCH = {
  { x { 2, 3 }, x { 4 }, error = "shapes 2x3 and 4 do not broadcast" },
  { x { 2, 3 }, x { 3, 2 }, error = "shapes 2x3 and 3x2 do not broadcast" },
  { x { 2 }, x { 2, dtype = "f64" }, error = "f32 and f64 differ" },
  { x { 2 }, inputs.ids { 2, below = 3 },
    error = 'f32 and i64 differ; convert one with :to("f32")' },
  { x { 2 }, x { 2, dtype = "bf16" }, error = "f32 and bf16 differ" },
}

local function refusals(own)
  return table.move(own, 1, #own, #MISMATCH + 1, table.move(MISMATCH, 1, #MISMATCH, 1, {}))
end

-- Ops that integers compute with, and what the others (or narrower dtypes) are told.
local NUMBERS = { add = true, sub = true, mul = true, neg = true }

local function refused(op)
  local dtype = NUMBERS[op] and "u8" or "i64"
  local wanted = NUMBERS[op] and "f32, f64, i64 or i32" or "f32 or f64"
  return dtype, wanted
end

-- a op b as method and operator; f may take numbers on either side.
local function arithmetic(op, f, tolerance, first, second)
  second = second or first
  local integer, wanted = refused(op)
  return {
    op = op,
    call = function(o, a, b)
      if o.right then return f(a, o.right) end
      if o.left then return f(o.left, a) end
      return a[op](a, b)
    end,
    reference = function(o, a, b)
      if o.right then b = array.scalar(o.right) end
      if o.left then a, b = array.scalar(o.left), a end
      return array.map(f, a, b)
    end,
    tolerance = tolerance, gradient = true,
    cases = with_numbers(two_inputs(x, first, second), first, second),
    refuses = refusals {
      { x { 2, dtype = integer }, x { 2, dtype = integer },
        error = ("%s: input is %s, expected %s"):format(op, integer,
        wanted) },
      { bools { 2 }, bools { 2 }, error = op .. ": input is bool, expected " .. wanted },
    },
  }
end

-- t:op() with the function that it is.
local function unary(op, f, tolerance, range)
  local integer, wanted = refused(op)
  return {
    op = op, tolerance = tolerance, gradient = true,
    call = function(_, a) return a[op](a) end,
    reference = function(_, a) return array.map(f, a) end,
    cases = one_input(x, range or {}),
    refuses = {
      { x { 2, dtype = integer },
        error = ("%s: input is %s, expected %s"):format(op, integer, wanted) },
      { bools { 2 }, error = 'convert it with :to("f32")' },
    },
  }
end

local function covering(row, ...)
  row.covers = { ... }
  return row
end

local function comparison(op, f)
  local cases = two_inputs(any, { low = -1, high = 1 })
  local broken = { math.huge, -math.huge, 0 / 0, 0.0, -0.0, 1.0 }
  cases[#cases + 1] = { x { 6, values = broken }, x { 6, 1, values = broken },
    dtypes = "f32 f64 f16 bf16" }
  cases[#cases + 1] = { any { 2, 3 }, o = { right = 1 } }
  return {
    op = op, tolerance = "exact", gradient = false, dtypes = ALL, result = { "bool" },
    cases = cases,
    call = function(o, a, b) return a[op](a, o.right or b) end,
    reference = function(o, a, b)
      b = o.right and array.scalar(o.right) or b
      return array.map(function(p, q) return f(p, q) and 1 or 0 end, a, b)
    end,
    refuses = MISMATCH,
  }
end

-- ---- functions -------------------------------------------------------------------------------

local function gelu(form, v)
  if form == "tanh" then
    return 0.5 * v * (1 + special.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ^ 3)))
  end
  return v * special.normal(v)
end

local gelu_row = {
  op = "gelu", covers = { "gelu_dx" }, tolerance = "activation", gradient = true,
  call = function(o, a) return a:gelu(o.mode) end,
  reference = function(o, a) return array.map(function(v) return gelu(o.mode, v) end, a) end,
  cases = one_input(x, { low = -4, high = 4 }),
  refuses = {
    { x { 2 }, o = { mode = "exact" }, error = '"erf" or "tanh"' },
    { x { 2, dtype = "i64" }, error = "gelu: input is i64, expected f32 or f64" },
  },
}
for _, mode in ipairs { "tanh", "erf" } do
  for _, layout in ipairs { false, "transposed", "spaced" } do
    local input = x { 9, 4, layout = layout or nil, low = -6, high = 6 }
    table.insert(gelu_row.cases, { input, o = { mode = mode } })
  end
  local far = x { 6, values = { -200.0, -30.0, -12.0, 0.0, 30.0, 200.0 } }
  table.insert(gelu_row.cases, { far, o = { mode = mode } })
end

-- ---- where -----------------------------------------------------------------------------------

-- The bound of x itself is steep, so values stay away from it where the gradient is taken.
local softplus_row = covering(unary("softplus", nil, "activation", { low = -9, high = 9 }),
  "softplus_dx")
softplus_row.call = function(o, a) return a:softplus(next(o) and o or nil) end
softplus_row.reference = function(o, a)
  local beta, threshold = o.beta or 1, o.threshold or 20
  return array.map(function(v)
    return v * beta > threshold and v or math.log(1 + math.exp(v * beta)) / beta
  end, a)
end
for _, case in ipairs {
  { x { 7, low = -9, high = 9 }, o = { beta = 2.5 } },
  { x { 7, low = 1, high = 9 }, o = { beta = 2, threshold = 1 } },
  { x { 3, values = { 30.0, 800.0, -800.0 } }, dtypes = "f32 f64 bf16" },
} do
  table.insert(softplus_row.cases, case)
end

local where_row = {
  op = "where", tolerance = "exact", gradient = true, dtypes = ALL,
  call = function(o, c, a, b) return gp.where(c, o.a or a, o.b or o.a and a or b) end,
  reference = function(o, c, a, b)
    b = o.b and array.scalar(o.b) or o.a and a or b
    a = o.a and array.scalar(o.a) or a
    return array.map(function(p, q, r) return p ~= 0 and q or r end, c, a, b)
  end,
  cases = {
    { bools { 2, 3 }, any { 2, 3 }, any { 2, 3 } },
    { bools { 2, 3 }, any { 3 }, any {} },
    { bools {}, any { 4 }, any { 2, 4 } },
    { bools { 3, 1 }, any { 1, 4 }, any { 2, 1, 1 } },
    { bools { 70, 5 }, any { 70, 5 }, any { 70, 5 } },
    { bools { 0, 2 }, any { 2 }, any { 0, 1 } },
    { bools { 3, 4, layout = "transposed" }, any { 3, 4 }, any { 3, 4, layout = "narrowed" } },
    { bools { 3, 4, layout = "expanded" }, any { 3, 4, layout = "spaced" },
      any { 4, layout = "spaced" } },
    { bools { 2, 3 }, any { 2, 3 }, o = { b = 1 } },
    { bools { 2, 3 }, any { 2, 3 }, o = { a = 1 } },
    { bools { 2, 3 }, o = { a = 1, b = 0 }, dtypes = "f32" },
  },
  refuses = {
    { x { 2 }, x { 2 }, x { 2 }, error = "where: condition is f32, expected bool" },
    { bools { 2 }, x { 2 }, x { 2, dtype = "f64" }, error = "f32 and f64 differ" },
    { bools { 2 }, x { 3 }, x { 3 }, error = "shapes 2 and 3 do not broadcast" },
  },
}

-- Squares and cubes of both signs, and the corners where the formulas of the gradient have 0 *
-- infinity.
local pow_row = arithmetic("pow", function(a, b) return a ^ b end, "power",
  { low = 0.25, high = 2 },
  { low = 0.25, high = 3 })
for _, case in ipairs {
  { x { 70, 5 }, o = { right = 2 } },
  { x { 3, 4, layout = "transposed" }, o = { right = 2.0 } },
  { x { 3, 4, signed = true }, o = { right = 3 } },
  { x { 3, 4, signed = true }, o = { right = -1 } },
  { x { 3, values = { 0.0, -1.0, 2.0 } }, o = { right = 2 } },
  { x { 3, values = { 0.0, -1.0, 2.0 } }, o = { right = 1 } },
  { x { 3, values = { 0.0, -1.0, 2.0 } }, o = { right = 0 } },
  { x { 3, 4 }, x { 1, values = { 2.0 }, fixed = true } },
  { x { 4 }, x { 4, values = { 2.0, 0.0, 3.0, 1.0 }, fixed = true } },
  { x { 2, values = { 0.0, 2.0 }, fixed = true }, x { 2, low = 0.5, high = 2 } },
} do
  table.insert(pow_row.cases, case)
end

return {
  arithmetic("add", function(a, b) return a + b end, "rounded", {}),
  arithmetic("sub", function(a, b) return a - b end, "rounded", {}),
  arithmetic("mul", function(a, b) return a * b end, "rounded", {}),
  arithmetic("div", function(a, b) return a / b end, "rounded", {}, { signed = true }),
  pow_row,
  unary("neg", function(v) return -v end, "exact"),
  unary("exp", math.exp, "exponential"),
  unary("log", math.log, "exponential", { low = 0.25, high = 9 }),
  unary("sqrt", math.sqrt, "rounded", { low = 0.25, high = 9 }),
  unary("rsqrt", function(v) return 1 / math.sqrt(v) end, "twice", { low = 0.25, high = 9 }),
  covering(unary("tanh", special.tanh, "exponential", { low = -4, high = 4 }), "tanh_dx"),
  covering(unary("sigmoid", special.sigmoid, "exponential", { low = -9, high = 9 }), "sigmoid_dx"),
  covering(unary("relu", function(v) return v > 0 and v or 0.0 end, "exact", { signed = true }),
    "relu_dx"),
  gelu_row,
  covering(unary("silu", function(v) return v * special.sigmoid(v) end, "activation",
    { low = -9, high = 9 }),
    "silu_dx"),
  covering(unary("hardswish", function(v) return v * math.max(0.0, math.min(6.0, v + 3)) / 6 end,
    "activation",
    { low = -4.5, high = 4.5 }), "hardswish_dx"),
  softplus_row,
  comparison("eq", function(a, b) return a == b end),
  comparison("ne", function(a, b) return a ~= b end),
  comparison("lt", function(a, b) return a < b end),
  comparison("le", function(a, b) return a <= b end),
  comparison("gt", function(a, b) return a > b end),
  comparison("ge", function(a, b) return a >= b end),
  where_row,
}
