-- tests/spec/ops/table/activation.lua - activations and their gradients.

local assert = require "luassert"
local array = require "tests.support.array"
local elementwise = require "tests.support.elementwise"
local inputs = require "tests.support.inputs"
local special = require "tests.support.special"

local x = inputs.float
local covering, formula, unary = elementwise.covering, elementwise.formula, elementwise.unary

-- ---- gelu, softplus ----------------------------------------------------------------------------

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
  cases = elementwise.one_input(x, { low = -4, high = 4 }),
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

-- softplus has a kink where it becomes x itself, so values stay away from there where gradients are
-- compared.
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

-- ---- pieces ------------------------------------------------------------------------------------

-- Makes a row of t:op(value of the attribute) with f(v, value), and the default where it is left
-- out.
local function with_attribute(op, name, default, f, range)
  local row = formula(op, function(v) return f(v, default) end, "activation", range)
  row.call = function(o, a) return a[op](a, next(o) and o or nil) end
  row.reference = function(o, a)
    return array.map(function(v) return f(v, o[name] or default) end, a)
  end
  table.insert(row.cases, { x { 7, signed = true }, o = { [name] = 2.5 } })
  table.insert(row.cases, { x { 7, 3, layout = "narrowed", signed = true }, o = { [name] = -0.5 } })
  table.insert(row.refuses, { x { 2 }, o = { [name] = 0 / 0 }, error = name })
  return row
end

local function relu6(v) return v ~= v and v or math.min(math.max(v, 0.0), 6.0) end

local function leaky(v, slope) return v > 0 and v or v * slope end
local function elu(v, alpha)
  return v ~= v and v or v > 0 and v or alpha * (math.exp(v) - 1)
end

-- Checks slopes at the ends of pieces, where differences do not say which side counts.
local function check_ends()
  local function slopes(op, list)
    return elementwise.slopes(function(t) return t[op](t) end, list, "f64")
  end
  assert.same({ 0, 0 }, slopes("relu6", { 0, 6 }))
  assert.same({ 0, 0 }, slopes("hardsigmoid", { -3, 3 }))
  assert.same({ 0.01 }, slopes("leaky_relu", { 0 }))
  assert.same({ 1 }, slopes("elu", { 0 }))
  assert.same({ 0, 1 }, slopes("hardswish", { -3, 3 }))
end

local relu6_row = formula("relu6", relu6, "exact", { low = -3.75, high = 9.25 })
relu6_row.also = { { "has PyTorch's slopes at the ends of pieces", check_ends } }

return {
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
  relu6_row,
  with_attribute("leaky_relu", "slope", 0.01, leaky, { signed = true }),
  with_attribute("elu", "alpha", 1, elu, { signed = true }),
  formula("hardsigmoid", function(v) return relu6(v + 3) / 6 end, "activation",
    { low = -4.5, high = 4.5 }),
}
