-- tests/spec/ops/table/image.lua - convolutions, pools, samples and padding; images are N x C x H x
-- W.

local core = require "gpipe.core"
local convolution = require "tests.support.convolution"
local inputs = require "tests.support.inputs"
local resampling = require "tests.support.resampling"

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
    { x { 1, 2, 3, 3 }, x { 1, 2, 1, 1 }, o = { stride = { 3, 4 } } }, -- the stride skips positions
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

-- ---- resample2d ------------------------------------------------------------------------------

local resample = {
  op = "resample2d", covers = { "resample2d_dx" }, tolerance = "product", gradient = true,
  call = function(o, a) return core.resample2d(a, o) end, reference = resampling.resample,
  cases = {
    -- averages
    { x { 2, 3, 6, 4 }, o = { kernel = { 2, 2 } } },
    { x { 1, 1, 1, 1 }, o = { kernel = { 1, 1 } } },
    { x { 1, 2, 7, 7 }, o = { kernel = { 3, 2 }, stride = { 2, 1 } } },
    { x { 1, 2, 7, 6 }, o = { kernel = { 3, 3 }, stride = { 2, 2 }, padding = { 1, 1, 1, 1 } } },
    { x { 1, 2, 7, 6 },
      o = { kernel = { 3, 3 }, stride = { 2, 2 }, padding = { 1, 1, 1, 1 }, inside = true } },
    { x { 2, 1, 6, 7 }, o = { kernel = { 3, 2 }, stride = { 2, 3 }, ceil = true } },
    { x { 2, 1, 6, 8 },
      o = { kernel = { 3, 2 }, stride = { 2, 3 }, padding = { 1, 0, 0, 1 }, ceil = true } },
    { x { 2, 1, 5, 4 }, o = { kernel = { 2, 2 }, stride = { 3, 3 }, ceil = true, inside = true } },
    { x { 2, 33, 7, 5 }, o = { mode = "adaptive", size = { 3, 2 } }, dtypes = "f32" },
    { x { 1, 2, 7, 5 }, o = { mode = "adaptive", size = { 1, 1 } } },
    { x { 1, 2, 3, 2 }, o = { mode = "adaptive", size = { 5, 4 } } },
    -- samples
    { x { 2, 2, 3, 2 }, o = { mode = "nearest", size = { 6, 4 } } },
    { x { 1, 2, 5, 7 }, o = { mode = "nearest", size = { 3, 11 } } },
    { x { 2, 2, 3, 2 }, o = { mode = "bilinear", size = { 6, 4 } } },
    { x { 1, 2, 5, 7 }, o = { mode = "bilinear", size = { 3, 11 } } },
    { x { 1, 1, 1, 4 }, o = { mode = "bilinear", size = { 4, 1 } } },
    -- padding
    { x { 2, 2, 3, 4 }, o = { mode = "zero", padding = { 1, 0, 2, 3 } } },
    { x { 2, 2, 3, 4 }, o = { mode = "reflect", padding = { 1, 2, 3, 0 } } },
    { x { 1, 2, 3, 1 }, o = { mode = "reflect", padding = { 2, 2, 0, 0 } } },
    -- as they lie
    { x { 2, 2, 4, 4, layout = "transposed" }, o = { kernel = { 2, 2 } } },
    { x { 2, 2, 4, 4, layout = "narrowed" }, o = { mode = "bilinear", size = { 3, 3 } } },
    { x { 2, 2, 4, 4, layout = "expanded" }, o = { mode = "reflect", padding = { 1, 1, 1, 1 } } },
    { x { 0, 2, 4, 4 }, o = { kernel = { 2, 2 } } },
    { x { 2, 0, 4, 4 }, o = { mode = "nearest", size = { 2, 2 } } },
    { x { 2, 1, 0, 3 }, o = { mode = "zero", padding = { 1, 1, 0, 0 } } },
  },
  refuses = {
    { x { 3, 4, 4 }, o = { kernel = { 2, 2 } }, error = "resample2d: input is 3x4x4, expected ?x?x?x?" },
    { x { 1, 3, 4, 4 }, error = "resample2d: kernel has 0 numbers, expected 2" },
    { x { 1, 3, 4, 4 }, o = { mode = "nearest" }, error = "resample2d: size has 0 numbers" },
    { x { 1, 3, 4, 4 }, o = { mode = "nearest", size = { 0, 2 } }, error = "resample2d: size is 0" },
    { x { 1, 3, 2, 4 }, o = { kernel = { 3, 2 } },
      error = "resample2d: a window of 3 does not fit into the padded height of 2" },
    { x { 1, 3, 4, 4 }, o = { kernel = { 3, 2 }, padding = { 2, 0, 0, 0 } },
      error = "resample2d: padding is 2, expected at most half of the window of 3" },
    { x { 1, 3, 4, 3 }, o = { mode = "reflect", padding = { 0, 0, 3, 0 } },
      error = "resample2d: padding is 3, expected less than the width of 3" },
    { x { 1, 3, 0, 3 }, o = { mode = "nearest", size = { 2, 2 } },
      error = "resample2d: the image has no height" },
    { ids { 1, 3, 4, 4, below = 3 }, o = { kernel = { 2, 2 } }, error = "resample2d: input is i64" },
  },
}

-- ---- max_pool2d ------------------------------------------------------------------------------

-- Values that differ, so that slopes exist.
local function distinct(fields)
  local n, values = fields[1] * fields[2] * fields[3] * fields[4], {}
  for i = 1, n do values[i] = (i * 37 % 1021) / 16 - 20 end
  fields.values = values
  return x(fields)
end

local max_pool = {
  op = "max_pool2d", covers = { "max_pool2d_dx" }, tolerance = "exact", gradient = true,
  call = function(o, a) return core.max_pool2d(a, o) end, reference = resampling.largest,
  cases = {
    { distinct { 2, 3, 6, 4 }, o = { kernel = { 2, 2 } } },
    { distinct { 1, 1, 1, 1 }, o = { kernel = { 1, 1 } } },
    { distinct { 1, 2, 7, 7 }, o = { kernel = { 3, 2 }, stride = { 2, 1 } } },
    { distinct { 1, 2, 7, 6 },
      o = { kernel = { 3, 3 }, stride = { 2, 2 }, padding = { 1, 1, 1, 1 } } },
    { distinct { 1, 2, 7, 6 }, o = { kernel = { 3, 2 }, stride = { 1, 2 }, dilation = { 2, 3 } } },
    { distinct { 1, 2, 7, 6 },
      o = { kernel = { 2, 2 }, stride = { 1, 1 }, dilation = { 3, 2 }, padding = { 1, 2, 1, 1 } } },
    { distinct { 2, 1, 6, 7 }, o = { kernel = { 3, 2 }, stride = { 2, 3 }, ceil = true } },
    { distinct { 1, 33, 7, 5 }, o = { mode = "adaptive", size = { 3, 2 } } },
    { distinct { 1, 2, 3, 2 }, o = { mode = "adaptive", size = { 5, 4 } } },
    { distinct { 2, 2, 4, 4, layout = "transposed" }, o = { kernel = { 2, 2 } } },
    { distinct { 0, 2, 4, 4 }, o = { kernel = { 2, 2 } } },
    { x { 1, 1, 2, 4, values = { 1, 0 / 0, 2, 2, 3, 4, 5, 0 / 0 }, fixed = true },
      o = { kernel = { 2, 2 } } },
    { x { 1, 1, 2, 2, values = { -1 / 0, -1 / 0, -1 / 0, -1 / 0 }, fixed = true },
      o = { kernel = { 2, 2 } } },
  },
  refuses = {
    { x { 3, 4, 4 }, o = { kernel = { 2, 2 } }, error = "max_pool2d: input is 3x4x4" },
    { x { 1, 3, 4, 4 }, o = { mode = "nearest", size = { 2, 2 } },
      error = "max_pool2d: mode is no window" },
    { x { 1, 3, 2, 4 }, o = { kernel = { 2, 2 }, dilation = { 2, 1 } },
      error = "max_pool2d: a window of 3 does not fit into the padded height of 2" },
  },
}

return { conv2d, transposed, resample, max_pool }
