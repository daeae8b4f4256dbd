-- tests/spec/ops/table/image.lua - convolutions; images are N x C x H x W.

local core = require "gpipe.core"
local convolution = require "tests.support.convolution"
local inputs = require "tests.support.inputs"

local x, ids = inputs.float, inputs.ids

-- ---- conv2d ----------------------------------------------------------------------------------

local function call(op)
  return function(o, a, w, b)
    local options = {}
    for key, value in pairs(o) do options[key] = value end
    return core[op](a, w, b, options)
  end
end

local conv2d = {
  op = "conv2d", covers = { "conv2d_dw", "pack_conv2d" }, tolerance = "product", gradient = true,
  call = call "conv2d", reference = convolution.conv2d,
  cases = {
    { x { 2, 3, 5, 4 }, x { 4, 3, 3, 3 }, x { 4 } },
    { x { 2, 3, 5, 4 }, x { 4, 3, 3, 3 }, x { 4 }, o = { padding = { 1, 1, 1, 1 } } },
    { x { 1, 1, 1, 1 }, x { 1, 1, 1, 1 }, x { 1 } },
    { x { 1, 2, 7, 7 }, x { 3, 2, 1, 1 }, x { 3 } },
    { x { 2, 2, 7, 7 }, x { 3, 2, 1, 1 }, o = { stride = { 2, 2 } } },
    { x { 2, 3, 6, 7 }, x { 2, 3, 3, 2 }, o = { stride = { 2, 3 }, padding = { 0, 1, 2, 1 } } },
    { x { 1, 2, 7, 9 }, x { 2, 2, 3, 2 }, x { 2 },
      o = { dilation = { 2, 3 }, padding = { 1, 0, 3, 2 } } },
    { x { 1, 2, 9, 8 }, x { 2, 2, 3, 3 },
      o = { dilation = { 2, 3 }, stride = { 4, 2 }, padding = { 2, 2, 3, 3 } } },
    { x { 2, 4, 5, 5 }, x { 6, 2, 3, 3 }, x { 6 },
      o = { groups = 2, padding = { 1, 1, 1, 1 } } },
    { x { 1, 4, 5, 5 }, x { 4, 1, 3, 3 }, x { 4 },
      o = { groups = 4, stride = { 2, 2 }, padding = { 1, 1, 1, 1 } } },
    { x { 1, 2, 3, 3 }, x { 1, 2, 1, 1 }, o = { stride = { 3, 4 } } }, -- positions nobody meets
    { x { 1, 1, 2, 2 }, x { 1, 1, 3, 3 }, o = { padding = { 4, 0, 0, 4 } } },
    { x { 1, 3, 33, 7 }, x { 2, 3, 7, 3 }, o = { stride = { 2, 1 }, padding = { 3, 3, 1, 1 } },
      dtypes = "f32" },
    { x { 2, 3, 12, 12 }, x { 33, 3, 1, 1 }, x { 33 }, dtypes = "f32" },
    { x { 3, 2, 4, 4, layout = "transposed" }, x { 2, 2, 3, 3, layout = "transposed" },
      x { 2, layout = "spaced" } },
    { x { 2, 2, 4, 4, layout = "narrowed" }, x { 2, 2, 3, 3, layout = "narrowed" } },
    { x { 2, 2, 4, 4, layout = "expanded" }, x { 2, 2, 3, 3, layout = "expanded" } },
    { x { 0, 2, 4, 4 }, x { 3, 2, 3, 3 }, x { 3 } },
    { x { 2, 0, 4, 4 }, x { 3, 0, 3, 3 }, x { 3 } },
    { x { 2, 2, 4, 4 }, x { 0, 2, 3, 3 }, x { 0 } },
  },
  refuses = {
    { x { 2, 3, 5, 5 }, x { 4, 2, 3, 3 },
      error = "conv2d: input is 2x3x5x5, expected ?x2x?x? (weight is 4x2x3x3)" },
    { x { 3, 5, 5 }, x { 4, 3, 3, 3 }, error = "conv2d: input is 3x5x5, expected ?x?x?x?" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3 }, error = "conv2d: weight is 4x3x3, expected ?x?x?x?" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3, 3 }, x { 3 }, error = "conv2d: bias is 3, expected 4" },
    { x { 2, 3, 2, 5 }, x { 4, 3, 3, 3 },
      error = "conv2d: a window of 3 does not fit into the padded height of 2" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3, 3 }, o = { dilation = { 1, 3 } },
      error = "conv2d: a window of 7 does not fit into the padded width of 5" },
    { x { 2, 4, 5, 5 }, x { 3, 2, 3, 3 }, o = { groups = 2 },
      error = "conv2d: 3 outputs in 2 groups" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3, 3 }, o = { groups = 0 }, error = "conv2d: groups is 0" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3, 3 }, o = { stride = { 0, 1 } }, error = "conv2d: stride is 0" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3, 3 }, o = { stride = { 1 } },
      error = "conv2d: stride has 1 numbers, expected 2" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3, 3 }, o = { padding = { 1, 1, 1, -1 } },
      error = "conv2d: padding is -1" },
    { x { 2, 3, 5, 5 }, x { 4, 3, 3, 3, dtype = "f64" },
      error = "conv2d: weight is f64, expected f32" },
    { ids { 2, 3, 5, 5, below = 2 }, x { 4, 3, 3, 3 }, error = "conv2d: input is i64" },
  },
}

-- ---- conv_transpose2d ------------------------------------------------------------------------

local transposed = {
  op = "conv_transpose2d", tolerance = "product", gradient = true,
  call = call "conv_transpose2d", reference = convolution.transposed,
  cases = {
    { x { 2, 4, 3, 2 }, x { 4, 3, 3, 3 }, x { 3 }, o = { size = { 5, 4 } } },
    { x { 1, 1, 1, 1 }, x { 1, 1, 1, 1 }, x { 1 }, o = { size = { 1, 1 } } },
    { x { 2, 2, 3, 3 }, x { 2, 3, 2, 2 }, x { 3 }, o = { size = { 6, 6 }, stride = { 2, 2 } } },
    { x { 2, 2, 3, 3 }, x { 2, 3, 3, 3 }, x { 3 },
      o = { size = { 6, 5 }, stride = { 2, 2 }, padding = { 1, 1, 1, 1 } } },
    { x { 1, 4, 3, 3 }, x { 4, 2, 3, 3 }, x { 4 },
      o = { size = { 6, 6 }, stride = { 2, 2 }, padding = { 1, 1, 1, 1 }, groups = 2 } },
    { x { 1, 2, 3, 2 }, x { 2, 2, 3, 2 }, x { 2 },
      o = { size = { 10, 9 }, stride = { 3, 4 }, padding = { 0, 1, 2, 0 }, dilation = { 2, 5 } } },
    { x { 1, 2, 2, 2 }, x { 2, 1, 1, 1 }, x { 1 }, o = { size = { 5, 6 }, stride = { 4, 4 } } },
    { x { 2, 2, 3, 3, layout = "narrowed" }, x { 2, 3, 2, 2, layout = "swapped" },
      o = { size = { 4, 4 } } },
    { x { 0, 2, 3, 3 }, x { 2, 3, 2, 2 }, o = { size = { 4, 4 } } },
  },
  refuses = {
    { x { 2, 4, 3, 3 }, x { 4, 3, 3, 3 }, error = "conv_transpose2d: size has 0 numbers" },
    { x { 2, 4, 3, 3 }, x { 4, 3, 3, 3 }, o = { size = { 6, 5 } },
      error = "conv_transpose2d: input is 2x4x3x3, expected ?x4x4x3 (weight is 4x3x3x3)" },
    { x { 2, 3, 3, 3 }, x { 4, 3, 3, 3 }, o = { size = { 5, 5 } },
      error = "conv_transpose2d: input is 2x3x3x3, expected ?x4x3x3" },
  },
}

return { conv2d, transposed }
