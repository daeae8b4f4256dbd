-- tests/spec/ops/table/function.lua - exponentials, logarithms, roots, waves, steps.

local assert = require "luassert"
local gp = require "gpipe"
local array = require "tests.support.array"
local elementwise = require "tests.support.elementwise"
local inputs = require "tests.support.inputs"
local special = require "tests.support.special"

local formula, steps, unary = elementwise.formula, elementwise.steps, elementwise.unary

local function sign(v) return v > 0 and 1 or v < 0 and -1 or 0 end

-- Rounds with f; infinities and NaN stay as they are.
local function whole(f)
  return function(v)
    if v - v ~= 0 or math.abs(v) > 2 ^ 60 then return v end
    return f(v) + 0.0
  end
end

-- Rounds to the nearest, ties to even.
local function round(v)
  local low = math.floor(v)
  local rest = v - low
  return (rest > 0.5 or rest == 0.5 and low % 2 == 1) and low + 1 or low
end

-- For small v the series is exact, while math.exp(v) - 1 loses digits.
local function expm1(v)
  return math.abs(v) < 1e-5 and v + v * v / 2 or math.exp(v) - 1
end

local function log1p(v)
  return math.abs(v) < 1e-5 and v - v * v / 2 + v ^ 3 / 3 or math.log(1 + v)
end

local function sinh(v)
  if math.abs(v) < 1e-5 then return v + v ^ 3 / 6 end
  return (math.exp(v) - math.exp(-v)) / 2
end

local function cosh(v) return (math.exp(v) + math.exp(-v)) / 2 end

-- For small v the series is used.
local function asinh(v)
  local size = math.abs(v)
  if size < 1e-5 then return v end
  if size == math.huge then return v end
  local y = size > 1e9 and math.log(size) + math.log(2)
    or log1p(size + size * size / (1 + math.sqrt(size * size + 1)))
  return v < 0 and -y or y
end

local function acosh(v)
  if v < 1 then return 0 / 0 end
  if v > 1e9 then return math.log(v) + math.log(2) end
  return math.log(v + math.sqrt(v * v - 1))
end

local function atanh(v)
  return math.abs(v) < 1e-5 and v or (math.log(1 + v) - math.log(1 - v)) / 2
end

local function erfc(v) return v ~= v and v or special.erfc(v) end
local function erf(v) return v ~= v and v or 1 - special.erfc(v) end

-- ---- what numbers alone do not show ------------------------------------------------------------

local ODD = {
  "floor", "ceil", "round", "sin", "erf", "expm1", "log1p", "reciprocal", "asin", "atan", "sinh",
  "asinh", "atanh",
}

local function check_zeros()
  for _, op in ipairs(ODD) do
    for _, dtype in ipairs { "f32", "f64" } do
      local t = gp.full({ 40 }, -0.0, { dtype = dtype })
      local y = t[op](t)[40]
      assert.are.equal(-math.huge, op == "reciprocal" and y or 1 / y, op)
    end
  end
  assert.are.equal(math.huge, 1 / gp.full({ 1 }, -0.0):abs()[1])
end

local function check_flat_gradients()
  for _, op in ipairs { "sign", "floor", "ceil", "round" } do
    assert.same({ 0, 0 }, elementwise.slopes(function(t) return t[op](t) end, { 0.3, -1.5 }, "f64"))
  end
  assert.same({ 1, 0, -1 }, elementwise.slopes(function(t) return t:abs() end, { 2, 0, -2 }, "f64"))
end

-- Points in all quadrants and on the axes.
local atan2_row = elementwise.arithmetic("atan2", nil, "exponential", { signed = true })
atan2_row.call = function(o, a, b) return a:atan2(o.right or b) end
atan2_row.reference = function(o, a, b)
  return array.map(math.atan, a, o.right and array.scalar(o.right) or b)
end
for i = #atan2_row.cases, 1, -1 do
  if (atan2_row.cases[i].o or {}).left then table.remove(atan2_row.cases, i) end
end
table.insert(atan2_row.cases, {
  inputs.float { 10, values = elementwise.BROKEN, fixed = true },
  inputs.float { 10, 1, values = elementwise.BROKEN, fixed = true }, dtypes = "f32 f64",
})
elementwise.covering(atan2_row, "atan2_dx")

local abs_row = formula("abs", math.abs, "exact", { signed = true })
abs_row.also = {
  { "keeps the sign of zero where PyTorch does", check_zeros },
  { "has slope 0 at 0, as steps have everywhere", check_flat_gradients },
}

return {
  unary("exp", math.exp, "exponential"),
  formula("expm1", expm1, "exponential", { low = -4, high = 4 }),
  unary("log", math.log, "exponential", { low = 0.25, high = 9 }),
  formula("log1p", log1p, "exponential", { low = -0.5, high = 9 }),
  unary("sqrt", math.sqrt, "rounded", { low = 0.25, high = 9 }),
  unary("rsqrt", function(v) return 1 / math.sqrt(v) end, "twice", { low = 0.25, high = 9 }),
  formula("square", function(v) return v * v end, "rounded"),
  formula("reciprocal", function(v) return 1 / v end, "rounded", { signed = true }),
  formula("sin", math.sin, "exponential", { low = -9, high = 9 }),
  formula("cos", math.cos, "exponential", { low = -9, high = 9 }),
  formula("asin", math.asin, "exponential", { low = -0.9, high = 0.9 }),
  formula("acos", math.acos, "exponential", { low = -0.9, high = 0.9 }),
  formula("atan", math.atan, "exponential", { low = -9, high = 9 }),
  atan2_row,
  formula("sinh", sinh, "exponential", { low = -4, high = 4 }),
  formula("cosh", cosh, "exponential", { low = -4, high = 4 }),
  formula("asinh", asinh, "exponential", { low = -9, high = 9 }),
  formula("acosh", acosh, "exponential", { low = 1.25, high = 9 }),
  formula("atanh", atanh, "exponential", { low = -0.9, high = 0.9 }),
  formula("erf", erf, "activation", { low = -4, high = 4 }),
  formula("erfc", erfc, "activation", { low = -4, high = 4 }),
  abs_row,
  steps("sign", sign),
  steps("floor", whole(math.floor)),
  steps("ceil", whole(math.ceil)),
  steps("round", whole(round), { values = { 0.5, 1.5, 2.5, -0.5, -2.5, 0.25 } }),
}
