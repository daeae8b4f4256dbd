-- tests/spec/ops/table/norm.lua - layer_norm, softmax, log_softmax.

local core = require "gpipe.core"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"

local x, ids = inputs.float, inputs.ids

-- ---- layer_norm ------------------------------------------------------------------------------

local function normalised(eps)
  return function(row)
    local mean, variance, out = 0.0, 0.0, {}
    for _, v in ipairs(row) do mean = mean + v / #row end
    for _, v in ipairs(row) do variance = variance + (v - mean) ^ 2 / #row end
    for i, v in ipairs(row) do out[i] = (v - mean) / math.sqrt(variance + eps) end
    return out
  end
end

local layer_norm = {
  op = "layer_norm", covers = { "layer_norm_dx", "layer_norm_dw", "layer_norm_bias_dw",
    "layer_norm_parts_dx", "layer_norm_parts_dw", "sum_rows_dw" },
  tolerance = "norm", gradient = true,
  call = function(o, a, w, b) return core.layer_norm(a, w, b, o.eps or 1e-5) end,
  reference = function(o, a, w, b)
    return array.map(function(h, p, q) return h * p + q end,
      array.lines(a, normalised(o.eps or 1e-5)), w, b)
  end,
  cases = {
    { x { 3, 5 }, x { 5 }, x { 5 } },
    { x { 3, 5 }, x { 5 }, x { 5 }, o = { eps = 0.5 } },
    { x { 5 }, x { 5 }, x { 5 } },
    { x { 2, 3, 4 }, x { 4 }, x { 4 } },
    { x { 3, 1 }, x { 1 }, x { 1 }, o = { eps = 1 } },
    { x { 2, 130 }, x { 130 }, x { 130 } },
    { x { 70, 3 }, x { 3 }, x { 3 }, o = { eps = 0.1 } },
    { x { 0, 3 }, x { 3 }, x { 3 } },
    { x { 3, 0 }, x { 0 }, x { 0 } },
    { x { 3, 5, layout = "transposed" }, x { 5, layout = "spaced" }, x { 5, layout = "narrowed" } },
    { x { 3, 5, layout = "expanded" }, x { 5 }, x { 5 } },
    { x { 3, 5, fixed = true }, x { 5 }, x { 5 } },
    { x { 3, 5 }, x { 5, fixed = true }, x { 5, fixed = true } },
  },
  refuses = {
    { x { 3, 5 }, x { 4 }, x { 5 }, error = "layer_norm: weight is 4, expected 5 (input is 3x5)" },
    { x { 3, 5 }, x { 5 }, x { 3, 5 },
      error = "layer_norm: bias is 3x5, expected 5 (input is 3x5)" },
    { x {}, x { 1 }, x { 1 },
      error = "layer_norm: input is scalar, expected at least 1 dimension" },
    { x { 3, 5 }, x { 5, dtype = "f64" }, x { 5 },
      error = "layer_norm: weight is f64, expected f32" },
    { ids { 3, 5, below = 2 }, x { 5 }, x { 5 },
      error = "layer_norm: input is i64, expected f32 or f64" },
  },
}

-- ---- softmax ---------------------------------------------------------------------------------

local function log_softmax(row)
  local top, sum, out = -math.huge, 0.0, {}
  for _, v in ipairs(row) do top = math.max(top, v) end
  for _, v in ipairs(row) do sum = sum + math.exp(v - top) end
  for i, v in ipairs(row) do out[i] = v - top - math.log(sum) end
  return out
end

local function softmax(row)
  local out = log_softmax(row)
  for i, v in ipairs(out) do out[i] = math.exp(v) end
  return out
end

local function row_of(op, f)
  return {
    op = op, covers = { op .. "_dx" }, tolerance = "softmax", gradient = true,
    call = function(o, a) return a[op](a, o.dim) end,
    reference = function(o, a) return array.lines(a, f, o.dim) end,
    cases = {
      { x { 3, 5 } },
      { x { 3, 5 }, o = { dim = 1 } },
      { x { 2, 3, 4 }, o = { dim = 2 } },
      { x { 2, 3, 4 }, o = { dim = -3 } },
      { x { 2, 3, 2, 3 }, o = { dim = 2 } },
      { x { 5 }, o = { dim = 1 } },
      { x { 1, 1 } },
      { x { 4, 1 } },
      { x { 2, 130 } },
      { x { 70, 3 } },
      { x { 0, 3 } },
      { x { 3, 0 } },
      { x { 3, 0 }, o = { dim = 1 } },
      { x { 2, 3, low = 500, high = 900 } },
      { x { 2, 3, low = -900, high = -500 } },
      { x { 1, 3, values = { 0.0, -math.huge, 1.0 }, fixed = true }, o = {} },
      { x { 3, 5, layout = "transposed" } },
      { x { 3, 5, layout = "transposed" }, o = { dim = 1 } },
      { x { 3, 5, layout = "narrowed" } },
      { x { 3, 5, layout = "spaced" }, o = { dim = 1 } },
      { x { 3, 5, layout = "expanded" } },
    },
    refuses = {
      { x { 2, 3 }, o = { dim = 3 }, error = op .. ": dim is 3, expected 1..2 or -2..-1" },
      { x {}, error = "it has no dimensions" },
      { ids { 2, 3, below = 2 }, error = op .. ": input is i64, expected f32 or f64" },
    },
  }
end

return { layer_norm, row_of("softmax", softmax), row_of("log_softmax", log_softmax) }
