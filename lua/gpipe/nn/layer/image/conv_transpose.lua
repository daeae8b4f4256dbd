-- lua/gpipe/nn/layer/image/conv_transpose.lua - `nn.ConvTranspose1d`, `nn.ConvTranspose2d`,
-- `nn.ConvTranspose3d`: what convolutions do to sizes, turned round.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local filter = require "gpipe.nn.layer.image.filter"
local image = require "gpipe.nn.layer.image"
local options = require "gpipe.options"
local volume = require "gpipe.nn.layer.image.volume"
local window = require "gpipe.nn.layer.image.window"

local conv = {}

local function init(self, who, in_channels, out_channels, kernel, opts)
  opts = options.check(who, opts, filter.TRANSPOSED)
  if type(opts.padding) == "string" then check.fail(who, "padding", opts.padding, "numbers") end
  filter.set_up(self, who, in_channels, out_channels, kernel, opts)
  self.output_padding = window.numbers(who, "output_padding", opts.output_padding, self.axes, 0)
  for axis, more in ipairs(self.output_padding) do
    local most = math.max(self.stride[axis], self.dilation[axis])
    if more >= most then
      check.fail(who, "output_padding", more,
        ("less than the %s, %d"):format(most == self.stride[axis] and "stride" or "dilation", most))
    end
  end
  filter.declare(self, opts, self.in_channels, self.out_channels // self.groups, self.out_channels)
end

-- The sizes that the axes come to.
local function sizes(self, shape)
  local list = {}
  for axis = 1, self.axes do
    local padding = self.padding[2 * axis - 1] + self.padding[2 * axis]
    local window_size = self.dilation[axis] * (self.kernel[axis] - 1) + 1
    list[axis] = (shape[2 + axis] - 1) * self.stride[axis] - padding + window_size
      + self.output_padding[axis]
  end
  return list
end

---@class nn.ConvTranspose2d: nn.Module
---@field weight gpipe.Tensor [in, out / groups, kernel height, kernel width]
---@field bias? gpipe.Tensor [out]
local ConvTranspose2d = class.new("ConvTranspose2d", Module, true)
ConvTranspose2d.axes = 2

--- Transposed convolution of images: what nn.Conv2d does to sizes, turned round.
---
--- Shapes: [N, in, H, W] -> [N, out, OH, OW], OH = (H - 1) stride - padding + dilation
--- (kernel - 1) + output_padding + 1, padding on both sides counted. output_padding, smaller than
--- the stride, chooses among the sizes that a convolution of this stride makes equal.
--- Weight and bias start uniform in +-1 / sqrt(out / groups * kernel height * kernel width).
--- Errors: as of nn.Conv2d; an output_padding that is too large.
--- Source: PyTorch nn.ConvTranspose2d.
--- ```lua
--- local up = nn.ConvTranspose2d(8, 4, 3, {stride = 2, padding = 1, output_padding = 1})
--- assert(up(gp.ones {1, 8, 5, 5}).shape[3] == 10)
--- ```
---@param in_channels integer
---@param out_channels integer
---@param kernel integer|integer[]
---@param opts? nn.ConvTransposeOptions
function ConvTranspose2d:init(in_channels, out_channels, kernel, opts)
  init(self, "nn.ConvTranspose2d", in_channels, out_channels, kernel, opts)
end

function ConvTranspose2d:forward(x)
  return core.conv_transpose2d(filter.check_input(self, x), self.weight, self.bias, {
    stride = self.stride, padding = self.padding, dilation = self.dilation, groups = self.groups,
    size = sizes(self, x.shape),
  })
end

ConvTranspose2d.describe = filter.describe

-- ---- ConvTranspose1d -------------------------------------------------------------------------

---@class nn.ConvTranspose1d: nn.Module
---@field weight gpipe.Tensor [in, out / groups, kernel]
---@field bias? gpipe.Tensor [out]
local ConvTranspose1d = class.new("ConvTranspose1d", Module, true)
ConvTranspose1d.axes = 1

--- Transposed convolution of sequences: nn.ConvTranspose2d of images of height 1.
---
--- Shapes: [N, in, L] -> [N, out, OL]. Errors and initial values: those of nn.ConvTranspose2d.
--- Source: PyTorch nn.ConvTranspose1d.
--- ```lua
--- assert(nn.ConvTranspose1d(8, 4, 2, {stride = 2})(gp.ones {1, 8, 5}).shape[3] == 10)
--- ```
---@param in_channels integer
---@param out_channels integer
---@param kernel integer
---@param opts? nn.ConvTransposeOptions
function ConvTranspose1d:init(in_channels, out_channels, kernel, opts)
  init(self, "nn.ConvTranspose1d", in_channels, out_channels, kernel, opts)
end

function ConvTranspose1d:forward(x)
  local shape = filter.check_input(self, x).shape
  local y = core.conv_transpose2d(image.raised(x), image.raised(self.weight), self.bias, {
    stride = window.as_image(self.stride, 1), padding = window.as_image(self.padding, { 0, 0 }),
    dilation = window.as_image(self.dilation, 1), groups = self.groups,
    size = window.as_image(sizes(self, shape), 1),
  })
  return image.lowered(y)
end

ConvTranspose1d.describe = filter.describe

-- ---- ConvTranspose3d -------------------------------------------------------------------------

---@class nn.ConvTranspose3d: nn.Module
---@field weight gpipe.Tensor [in, out / groups, kernel depth, kernel height, kernel width]
---@field bias? gpipe.Tensor [out]
local ConvTranspose3d = class.new("ConvTranspose3d", Module, true)
ConvTranspose3d.axes = 3

--- Transposed convolution of volumes: nn.ConvTranspose2d of all slices, for every place in the
--- kernel's depth, added up; it holds kernel depth times its output.
---
--- Shapes: [N, in, D, H, W] -> [N, out, OD, OH, OW]. Errors and initial values: those of
--- nn.ConvTranspose2d.
--- Source: PyTorch nn.ConvTranspose3d.
--- ```lua
--- assert(nn.ConvTranspose3d(8, 4, 2, {stride = 2})(gp.ones {1, 8, 2, 3, 3}).shape[3] == 4)
--- ```
---@param in_channels integer
---@param out_channels integer
---@param kernel integer|integer[]
---@param opts? nn.ConvTransposeOptions
function ConvTranspose3d:init(in_channels, out_channels, kernel, opts)
  init(self, "nn.ConvTranspose3d", in_channels, out_channels, kernel, opts)
end

function ConvTranspose3d:forward(x)
  return volume.conv_transpose(self, filter.check_input(self, x), sizes(self, x.shape))
end

ConvTranspose3d.describe = filter.describe

conv.ConvTranspose1d, conv.ConvTranspose2d = ConvTranspose1d, ConvTranspose2d
conv.ConvTranspose3d = ConvTranspose3d
return conv
