-- lua/gpipe/nn/layer/image/volume.lua - volumes, [N, C, D, H, W], by the ops of images.
--
-- A convolution takes the slices of a window as more channels; pools and other layers that treat
-- axes one after the other take depth as an axis of its own.

local core = require "gpipe.core"
local slide = require "gpipe.nn.layer.image.slide"

local volume = {}

local function of_axis(self, axis)
  return {
    kernel = self.kernel[axis], stride = self.stride[axis], dilation = self.dilation[axis],
  }
end

-- [N, C, D, H, W] of slices [N D, C, H, W]
local function joined(y, rows)
  local shape = y.shape
  return y:reshape({ rows, shape[1] // rows, shape[2], shape[3], shape[4] }):permute {
    1, 3, 2, 4, 5,
  }
end

--- [N, C, D, H, W] -> the slices, [N D, C, H, W].
---@param x gpipe.Tensor
---@return gpipe.Tensor
function volume.slices(x)
  local shape = x.shape
  return x:permute({ 1, 3, 2, 4, 5 }):reshape { shape[1] * shape[3], shape[2], shape[4], shape[5] }
end

volume.joined = joined

-- The slices of every window as channels, [N OD, groups KD I, H, W]: the groups stay apart.
local function windows(self, x, padding)
  local padded = slide.pad(x, 3, padding[1], padding[2])
  local shape, groups = padded.shape, self.groups
  local cut = slide.cut(padded, 3, of_axis(self, 1)) -- [N, C, KD, OD, H, W]
  local kernel, count, inner = self.kernel[1], cut:size(4), shape[2] // groups
  cut = cut:reshape { shape[1], groups, inner, kernel, count, shape[4] * shape[5] }
    :permute { 1, 5, 2, 4, 3, 6 }
  return cut:reshape { shape[1] * count, groups * kernel * inner, shape[4], shape[5] }
end

--- A convolution of volumes.
---@param self nn.Module kernel, stride, dilation, groups, weight, bias
---@param x gpipe.Tensor [N, I, D, H, W]
---@param padding integer[]
---@return gpipe.Tensor [N, O, OD, OH, OW]
function volume.conv(self, x, padding)
  local w = self.weight.shape
  local weight = self.weight:permute({ 1, 3, 2, 4, 5 }):reshape { w[1], w[3] * w[2], w[4], w[5] }
  local y = core.conv2d(windows(self, x, padding), weight, self.bias, {
    stride = { self.stride[2], self.stride[3] }, dilation = { self.dilation[2], self.dilation[3] },
    padding = { padding[3], padding[4], padding[5], padding[6] }, groups = self.groups,
  })
  return joined(y, x:size(1))
end

--- A transposed convolution of volumes.
---@param self nn.Module
---@param x gpipe.Tensor [N, I, D, H, W]
---@param size integer[] of the output
---@return gpipe.Tensor [N, O, size]
function volume.conv_transpose(self, x, size)
  local w, groups, rows, pad = self.weight.shape, self.groups, x:size(1), self.padding
  local weight = self.weight:permute({ 1, 3, 2, 4, 5 }):reshape { w[1], w[3] * w[2], w[4], w[5] }
  local y = core.conv_transpose2d(volume.slices(x), weight, nil, {
    stride = { self.stride[2], self.stride[3] }, dilation = { self.dilation[2], self.dilation[3] },
    padding = { pad[3], pad[4], pad[5], pad[6] }, groups = groups, size = { size[2], size[3] },
  })
  y = y:reshape { rows, x:size(3), groups, w[3], w[2], size[2] * size[3] }
    :permute { 1, 3, 5, 4, 2, 6 } -- [N, groups, O, KD, D, HW]
    :reshape { rows, groups * w[2], w[3], x:size(3), size[2], size[3] }
  local depth = math.max(size[1] + pad[1], slide.reach(x:size(3), of_axis(self, 1)))
  y = slide.lay(y, 3, of_axis(self, 1), depth):narrow(3, pad[1] + 1, size[1])
  return self.bias and y + self.bias:reshape { groups * w[2], 1, 1, 1 } or y
end

return volume
