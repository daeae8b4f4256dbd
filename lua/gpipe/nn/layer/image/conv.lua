-- lua/gpipe/nn/layer/image/conv.lua - `nn.Conv1d`, `nn.Conv2d`, `nn.Conv3d`: windows weighed by
-- kernels.
--
-- Users see N x C x H x W; in memory images lie channels-last.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local filter = require "gpipe.nn.layer.image.filter"
local image = require "gpipe.nn.layer.image"
local options = require "gpipe.options"
local volume = require "gpipe.nn.layer.image.volume"
local window = require "gpipe.nn.layer.image.window"

local conv = {}

local function init(self, who, in_channels, out_channels, kernel, opts)
  opts = options.check(who, opts, filter.OPTIONS)
  filter.set_up(self, who, in_channels, out_channels, kernel, opts)
  filter.declare(self, opts, self.out_channels, self.in_channels // self.groups, self.out_channels)
end

-- ---- Conv2d ----------------------------------------------------------------------------------

---@class nn.Conv2d: nn.Module
---@field weight gpipe.Tensor [out, in / groups, kernel height, kernel width]
---@field bias? gpipe.Tensor [out]
local Conv2d = class.new("Conv2d", Module, true)
Conv2d.axes = 2

--- Convolution of images.
---
--- Shapes: [N, in, H, W] -> [N, out, OH, OW] with OH = (H + padding - dilation (kernel - 1) - 1) //
--- stride + 1, padding on both sides counted. Kernel, stride, dilation: a number or {height,
--- width}; padding also {top, bottom, left, right}, "same" (of stride 1: OH = H) or "valid", 0;
--- padding_mode says what it shows: "zeros", or the image as nn.ReflectionPad2d,
--- nn.ReplicationPad2d and nn.CircularPad2d do.
--- Weight and bias start uniform in +-1 / sqrt(in / groups * kernel height * kernel width).
--- Errors: sizes that are no positive integers, channels that the groups do not divide; when
--- called, other channels, and images that are smaller than the window.
--- Source: PyTorch nn.Conv2d.
--- ```lua
--- local y = nn.Conv2d(3, 8, 3, {stride = 2, padding = 1})(gp.ones {1, 3, 32, 32})
--- assert(y.shape[2] == 8 and y.shape[3] == 16)
--- ```
---@param in_channels integer
---@param out_channels integer
---@param kernel integer|integer[]
---@param opts? nn.ConvOptions
function Conv2d:init(in_channels, out_channels, kernel, opts)
  init(self, "nn.Conv2d", in_channels, out_channels, kernel, opts)
end

function Conv2d:forward(x)
  local padded, padding = filter.padded(self, filter.check_input(self, x))
  return core.conv2d(padded, self.weight, self.bias, {
    stride = self.stride, padding = padding, dilation = self.dilation, groups = self.groups,
  })
end

Conv2d.describe = filter.describe

-- ---- Conv1d ----------------------------------------------------------------------------------

---@class nn.Conv1d: nn.Module
---@field weight gpipe.Tensor [out, in / groups, kernel]
---@field bias? gpipe.Tensor [out]
local Conv1d = class.new("Conv1d", Module, true)
Conv1d.axes = 1

--- Convolution of sequences, as of images of height 1.
---
--- Shapes: [N, in, L] -> [N, out, OL] with OL = (L + 2 padding - dilation (kernel - 1) - 1) //
--- stride + 1; padding may be "same". Errors and initial values: those of nn.Conv2d.
--- Source: PyTorch nn.Conv1d.
--- ```lua
--- local y = nn.Conv1d(3, 8, 5, {padding = "same"})(gp.ones {2, 3, 20})
--- assert(y.shape[2] == 8 and y.shape[3] == 20)
--- ```
---@param in_channels integer
---@param out_channels integer
---@param kernel integer
---@param opts? nn.ConvOptions
function Conv1d:init(in_channels, out_channels, kernel, opts)
  init(self, "nn.Conv1d", in_channels, out_channels, kernel, opts)
end

function Conv1d:forward(x)
  local padded, padding = filter.padded(self, filter.check_input(self, x))
  local y = core.conv2d(image.raised(padded), image.raised(self.weight), self.bias, {
    stride = window.as_image(self.stride, 1), padding = window.as_image(padding, { 0, 0 }),
    dilation = window.as_image(self.dilation, 1), groups = self.groups,
  })
  return image.lowered(y)
end

Conv1d.describe = filter.describe

-- ---- Conv3d ----------------------------------------------------------------------------------

---@class nn.Conv3d: nn.Module
---@field weight gpipe.Tensor [out, in / groups, kernel depth, kernel height, kernel width]
---@field bias? gpipe.Tensor [out]
local Conv3d = class.new("Conv3d", Module, true)
Conv3d.axes = 3

--- Convolution of volumes: that of nn.Conv2d over images whose channels are those of the slices in
--- a window, so it holds kernel depth / stride times its input.
---
--- Shapes: [N, in, D, H, W] -> [N, out, OD, OH, OW], sizes as of nn.Conv2d. Kernel, stride,
--- padding, dilation: a number or {depth, height, width}; padding also "same" or "valid".
--- Errors and initial values: those of nn.Conv2d.
--- Source: PyTorch nn.Conv3d.
--- ```lua
--- local y = nn.Conv3d(3, 8, 3, {padding = 1, stride = {1, 2, 2}})(gp.ones {1, 3, 4, 8, 8})
--- assert(y.shape[3] == 4 and y.shape[4] == 4)
--- ```
---@param in_channels integer
---@param out_channels integer
---@param kernel integer|integer[]
---@param opts? nn.ConvOptions
function Conv3d:init(in_channels, out_channels, kernel, opts)
  init(self, "nn.Conv3d", in_channels, out_channels, kernel, opts)
end

function Conv3d:forward(x)
  local padded, padding = filter.padded(self, filter.check_input(self, x))
  return volume.conv(self, padded, padding)
end

Conv3d.describe = filter.describe

conv.Conv1d, conv.Conv2d, conv.Conv3d = Conv1d, Conv2d, Conv3d
return conv
