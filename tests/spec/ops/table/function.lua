-- tests/spec/ops/table/function.lua - exponentials, logarithms, roots, waves, steps.

local assert = require "luassert"
local gp = require "gpipe"
local elementwise = require "tests.support.elementwise"
local special = require "tests.support.special"

local formula, steps, unary = elementwise.formula, elementwise.steps, elementwise.unary

local function sign(v) return v > 0 and 1 or v < 0 and -1 or 0 end

-- Infinities and NaN are whole enough.
local function whole(f)
  return function(v)
    if v - v ~= 0 or math.abs(v) > 2 ^ 60 then return v end
    return f(v) + 0.0
  end
end

-- To the even one of two that are as near.
local function round(v)
  local low = math.floor(v)
  local rest = v - low
  return (rest > 0.5 or rest == 0.5 and low % 2 == 1) and low + 1 or low
end

-- For small v by the series, which math.exp(v) - 1 has not the digits of.
local function expm1(v)
  return math.abs(v) < 1e-5 and v + v * v / 2 or math.exp(v) - 1
end

local function log1p(v)
  return math.abs(v) < 1e-5 and v - v * v / 2 + v ^ 3 / 3 or math.log(1 + v)
end

local function erf(v) return v ~= v and v or 1 - special.erfc(v) end

-- ---- what numbers alone do not show ------------------------------------------------------------

local ODD = { "floor", "ceil", "round", "sin", "erf", "expm1", "log1p", "reciprocal" }

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
  formula("erf", erf, "activation", { low = -4, high = 4 }),
  abs_row,
  steps("sign", sign),
  steps("floor", whole(math.floor)),
  steps("ceil", whole(math.ceil)),
  steps("round", whole(round), { values = { 0.5, 1.5, 2.5, -0.5, -2.5, 0.25 } }),
}
