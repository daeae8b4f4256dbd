-- tests/spec/ops/table/fused.lua - ops that pipelines make of neighbours in a layer
-- (runtime/graph/fuse.c).
--
-- No script calls them: a row calls the neighbours, which are one op in a pipeline and two ops
-- eagerly, with the same bits on a CPU. Some widths are multiples of eight, because a GPU's library
-- fuses such work only there.

local core = require "gpipe.core"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"
local linear = require "tests.support.linear"
local special = require "tests.support.special"

local x = inputs.float

-- ---- references ------------------------------------------------------------------------------

local function gelu(a)
  return array.map(function(v)
    return 0.5 * v * (1 + special.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ^ 3)))
  end, a)
end

local function centred(row)
  local mean, variance, out = 0.0, 0.0, {}
  for _, v in ipairs(row) do mean = mean + v / #row end
  for _, v in ipairs(row) do variance = variance + (v - mean) ^ 2 / #row end
  for i, v in ipairs(row) do out[i] = (v - mean) / math.sqrt(variance + 0.5) end
  return out
end

-- ---- rows ------------------------------------------------------------------------------------

local perceptron = {
  op = "linear_gelu", covers = { "linear_gelu_dx" }, tolerance = "layers", gradient = true,
  call = function(_, a, w, v, b) return core.linear(core.linear(a, w, b):gelu "tanh", v) end,
  reference = function(_, a, w, v, b) return linear(gelu(linear(a, w, b)), v) end,
  cases = {
    { x { 3, 4 }, x { 8, 4 }, x { 5, 8 }, x { 8 } },
    { x { 3, 4 }, x { 8, 4 }, x { 5, 8 } },
    { x { 3, 4 }, x { 6, 4 }, x { 5, 6 }, x { 6 } },
    { x { 4 }, x { 16, 4 }, x { 5, 16 }, x { 16 } },
    { x { 2, 3, 4 }, x { 8, 4 }, x { 5, 8 }, x { 8 } },
    { x { 66, 3 }, x { 8, 3 }, x { 2, 8 }, x { 8 } },
    { x { 0, 4 }, x { 8, 4 }, x { 5, 8 }, x { 8 } },
    { x { 3, 0 }, x { 8, 0 }, x { 5, 8 }, x { 8 } },
    { x { 3, 4, layout = "transposed" }, x { 8, 4, layout = "transposed" }, x { 5, 8 },
      x { 8, layout = "spaced" } },
    { x { 3, 4 }, x { 8, 4, fixed = true }, x { 5, 8 }, x { 8, fixed = true } },
    { x { 3, 4, fixed = true }, x { 8, 4 }, x { 5, 8, fixed = true }, x { 8 } },
  },
  refuses = {
    { x { 3, 4 }, x { 8, 4 }, x { 5, 7 },
      error = "linear: input is 3x8, expected ?x7 (weight is 5x7)" },
  },
}

-- The residual around the norm and the linear layer, forward and backward.
local residual = {
  op = "linear_add", tolerance = "layers", gradient = true,
  call = function(_, a, g, h, w, b) return a + core.linear(core.layer_norm(a, g, h, 0.5), w, b) end,
  reference = function(_, a, g, h, w, b)
    local scaled = array.map(function(v, p, q) return v * p + q end, array.lines(a, centred), g, h)
    return array.map(function(p, q) return p + q end, a, linear(scaled, w, b))
  end,
  cases = {
    { x { 3, 4 }, x { 4 }, x { 4 }, x { 4, 4 }, x { 4 } },
    { x { 3, 4 }, x { 4 }, x { 4 }, x { 4, 4 } },
    { x { 8 }, x { 8 }, x { 8 }, x { 8, 8 }, x { 8 } },
    { x { 2, 3, 8 }, x { 8 }, x { 8 }, x { 8, 8 }, x { 8 } },
    { x { 66, 3 }, x { 3 }, x { 3 }, x { 3, 3 }, x { 3 } },
    { x { 3, 20 }, x { 20 }, x { 20 }, x { 20, 20 }, x { 20 } },
    { x { 0, 4 }, x { 4 }, x { 4 }, x { 4, 4 }, x { 4 } },
    { x { 3, 4, layout = "transposed" }, x { 4 }, x { 4 }, x { 4, 4, layout = "transposed" },
      x { 4 } },
    { x { 3, 4 }, x { 4, fixed = true }, x { 4 }, x { 4, 4, fixed = true }, x { 4, fixed = true } },
  },
  refuses = {
    { x { 3, 4 }, x { 4 }, x { 4 }, x { 5, 4 }, x { 5 },
      error = "add: shapes 3x4 and 3x5 do not broadcast" },
  },
}

return { perceptron, residual }
