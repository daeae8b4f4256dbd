-- tests/spec/ops/table/choice.lua - comparisons, logic, where, the larger and the smaller of two.

local assert = require "luassert"
local gp = require "gpipe"
local array = require "tests.support.array"
local elementwise = require "tests.support.elementwise"
local inputs = require "tests.support.inputs"

local x, any, bools = inputs.float, inputs.any, inputs.bools

local ALL = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }

-- ---- comparisons -----------------------------------------------------------------------------

local function comparison(op, f)
  local cases = elementwise.two_inputs(any, { low = -1, high = 1 })
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
    refuses = elementwise.MISMATCH,
  }
end

-- ---- logic -----------------------------------------------------------------------------------

local MIXED = { 0, 1, 1, 0, 0, 1, 0, 1 }
local BROKEN = { math.huge, -math.huge, 0 / 0, 0.0, -0.0, 1.0 }

-- Makes a row of an op that asks about one element or two; f says for numbers what is true.
local function question(op, f, cases, refuses)
  return {
    op = op, tolerance = "exact", gradient = false, dtypes = ALL, result = { "bool" },
    cases = cases, refuses = refuses or {},
    call = function(o, a, b) return a[op](a, o.right or b) end,
    reference = function(o, a, b)
      b = o.right and array.scalar(o.right) or b
      return array.map(function(p, q) return f(p, q) and 1 or 0 end, a, b)
    end,
  }
end

local function logic(op, f)
  return question(op, function(p, q) return f(p ~= 0, q ~= 0) end, {
    { any { 2, 4, values = MIXED }, any { 4, values = MIXED } },
    { any { 2, 2, layout = "transposed", values = MIXED }, any { 2, 2, values = MIXED } },
    { any { 0, 4 }, any { 4 } },
    { x { 6, values = BROKEN }, x { 6, 1, values = BROKEN }, dtypes = "f32 f64 f16 bf16" },
    { any { 2, 3, values = MIXED }, o = { right = 1 } },
  }, elementwise.MISMATCH)
end

local function about_one(op, f)
  return question(op, f, {
    { any { 2, 4, values = MIXED } }, { any { 0, 4 } }, { any {} }, { any { 300, low = 0, high = 1 } },
    { any { 3, 2, layout = "spaced" } },
    { x { 6, values = BROKEN }, dtypes = "f32 f64 f16 bf16" },
  })
end

-- ---- the larger and the smaller of two -----------------------------------------------------------

local function extreme(op, f)
  local row = {
    op = op, tolerance = "exact", gradient = true, dtypes = { "f32", "f64", "i64", "i32" },
    cases = elementwise.few_pairs(any, {}),
    call = function(o, a, b) return a[op](a, o.right or b) end,
    reference = function(o, a, b)
      b = o.right and array.scalar(o.right) or b
      return array.map(function(p, q) return p ~= p and p or q ~= q and q or f(p, q) end, a, b)
    end,
    refuses = {
      { x { 2, 3 }, x { 4 }, error = "shapes 2x3 and 4 do not broadcast" },
      { bools { 2 }, bools { 2 }, error = op .. ": input is bool, expected f32, f64, i64 or i32" },
    },
    covers = op == "maximum" and { "maximum_dx" } or nil,
  }
  table.insert(row.cases, { any { 3, 4 }, o = { right = 1 } })
  local broken = x { 10, values = elementwise.BROKEN, fixed = true }
  local column = x { 10, 1, values = elementwise.BROKEN, fixed = true }
  table.insert(row.cases, { broken, column, dtypes = "f32 f64" })
  return row
end

local maximum_row = extreme("maximum", math.max)
maximum_row.also = { { "gives each of two equal ones half of the gradient", function()
  for _, op in ipairs { "maximum", "minimum" } do
    local larger = op == "maximum" and 1 or 0
    assert.same({ larger, 0.5, 1 - larger }, elementwise.slopes(function(t)
      return t[op](t, gp.ones({ 3 }, { dtype = "f64" }))
    end, { 2, 1, 0 }, "f64"))
    assert.same({ 1, 1 }, elementwise.slopes(function(t) return t[op](t, t) end, { 2, -1 }, "f64"))
  end
end } }

local function nearest(v, o)
  if v ~= v then return v end
  return math.min(math.max(v, o.min or -math.huge), o.max or math.huge)
end

local clamp_row = elementwise.formula("clamp", nil, "exact", {})
for _, list in ipairs { clamp_row.cases, clamp_row.refuses } do
  for _, case in ipairs(list) do case.o = case.o or { min = -math.huge } end
end
clamp_row.call = function(o, a)
  if o.by_position then return a:clamp(o.min, o.max) end
  return a:clamp(o)
end
clamp_row.reference = function(o, a)
  return array.map(function(v) return nearest(v, o) end, a)
end
for _, o in ipairs {
  { min = -0.5, max = 0.75 }, { min = -0.625 }, { max = 1 }, { min = 1, max = -1 },
  { max = 0.25, by_position = true },
} do
  table.insert(clamp_row.cases, { x { 3, 50 }, o = o, dtypes = "f32 f64" })
end
table.insert(clamp_row.cases, { any { 300 }, o = { min = -20, max = 30 } })
table.insert(clamp_row.cases, { any { 300 }, o = { min = -2.0 ^ 70, max = 2.0 ^ 70 } })
table.insert(clamp_row.refuses,
  { inputs.ids { 2, below = 3 }, o = { min = 0.5 }, error = "clamp: min is 0.5, expected an integer" })
table.insert(clamp_row.refuses, { x { 2 }, o = { least = 0 }, error = "there is no option least" })
clamp_row.also = { { "lets the gradient of what lies on a bound pass", function()
  assert.same({ 0, 1, 1, 1, 0 }, elementwise.slopes(function(t) return t:clamp(-1, 1) end,
    { -2, -1, 0, 1, 2 }, "f64"))
end } }

-- ---- where -----------------------------------------------------------------------------------

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

return {
  comparison("eq", function(a, b) return a == b end),
  comparison("ne", function(a, b) return a ~= b end),
  comparison("lt", function(a, b) return a < b end),
  comparison("le", function(a, b) return a <= b end),
  comparison("gt", function(a, b) return a > b end),
  comparison("ge", function(a, b) return a >= b end),
  logic("logical_and", function(a, b) return a and b end),
  logic("logical_or", function(a, b) return a or b end),
  logic("logical_xor", function(a, b) return a ~= b end),
  about_one("logical_not", function(v) return v == 0 end),
  about_one("isnan", function(v) return v ~= v end),
  about_one("isinf", function(v) return math.abs(v) == math.huge end),
  about_one("isfinite", function(v) return v - v == 0 end),
  maximum_row,
  extreme("minimum", math.min),
  clamp_row,
  where_row,
}
