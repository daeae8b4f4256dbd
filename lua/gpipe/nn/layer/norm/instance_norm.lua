-- lua/gpipe/nn/layer/norm/instance_norm.lua - `nn.InstanceNorm1d`, `nn.InstanceNorm2d`,
-- `nn.InstanceNorm3d`: normalise channels by the statistics of each sample.
--
-- Source: Ulyanov and others, "Instance normalization" (2016). Names, defaults and behaviour are
-- PyTorch's.

local Module = require "gpipe.nn.module"
local batch_norm = require "gpipe.nn.layer.norm.batch_norm"
local channels = require "gpipe.nn.layer.norm.channels"
local class = require "gpipe.nn.class"

local INSTANCE = batch_norm.rules(false, false)

---@class nn.InstanceNorm2d: nn.Module
---@field weight? gpipe.Tensor [n]
---@field bias? gpipe.Tensor [n]
---@field running_mean? gpipe.Tensor [n]
---@field running_var? gpipe.Tensor [n], unbiased
---@field num_batches_tracked? gpipe.Tensor scalar, i64
local InstanceNorm2d = class.new("InstanceNorm2d", Module, true)

--- Normalise each channel of each sample over height and width, also in evaluation. With `track`,
--- evaluation uses the running means over samples instead.
---
--- Shapes: [N, n, H, W], the same out. The layer has no weight and bias unless `affine` is set, and
--- no running statistics unless `track` is set.
--- Errors: those of nn.BatchNorm2d.
--- Source: PyTorch nn.InstanceNorm2d.
--- ```lua
--- local y = nn.InstanceNorm2d(3, {affine = true})(gp.randn {2, 3, 4, 4})
--- ```
---@param n integer channels
---@param opts? nn.BatchNormOptions affine and track are false
function InstanceNorm2d:init(n, opts)
  batch_norm.set_up(self, "nn.InstanceNorm2d", n, opts, INSTANCE)
end

function InstanceNorm2d:forward(x)
  return batch_norm.forward(self, x, channels.image(self, x, 4, 4), true)
end

InstanceNorm2d.describe = batch_norm.describe

---@class nn.InstanceNorm1d: nn.Module
---@field weight? gpipe.Tensor [n]
---@field bias? gpipe.Tensor [n]
---@field running_mean? gpipe.Tensor [n]
---@field running_var? gpipe.Tensor [n], unbiased
---@field num_batches_tracked? gpipe.Tensor scalar, i64
local InstanceNorm1d = class.new("InstanceNorm1d", Module, true)
InstanceNorm1d.describe = batch_norm.describe

--- nn.InstanceNorm2d for sequences: [N, n, L], the same out.
--- Source: PyTorch nn.InstanceNorm1d.
--- ```lua
--- local y = nn.InstanceNorm1d(3)(gp.randn {2, 3, 5})
--- ```
---@param n integer channels
---@param opts? nn.BatchNormOptions affine and track are false
function InstanceNorm1d:init(n, opts)
  batch_norm.set_up(self, "nn.InstanceNorm1d", n, opts, INSTANCE)
end

function InstanceNorm1d:forward(x)
  return batch_norm.forward(self, x, channels.image(self, x, 3, 3), true)
end

---@class nn.InstanceNorm3d: nn.Module
---@field weight? gpipe.Tensor [n]
---@field bias? gpipe.Tensor [n]
---@field running_mean? gpipe.Tensor [n]
---@field running_var? gpipe.Tensor [n], unbiased
---@field num_batches_tracked? gpipe.Tensor scalar, i64
local InstanceNorm3d = class.new("InstanceNorm3d", Module, true)
InstanceNorm3d.describe = batch_norm.describe

--- nn.InstanceNorm2d for volumes: [N, n, D, H, W], the same out. Source: PyTorch nn.InstanceNorm3d.
--- ```lua
--- local y = nn.InstanceNorm3d(3)(gp.randn {2, 3, 2, 4, 4})
--- ```
---@param n integer channels
---@param opts? nn.BatchNormOptions affine and track are false
function InstanceNorm3d:init(n, opts)
  batch_norm.set_up(self, "nn.InstanceNorm3d", n, opts, INSTANCE)
end

function InstanceNorm3d:forward(x)
  return batch_norm.forward(self, x, channels.image(self, x, 5, 5), true)
end

return {
  InstanceNorm1d = InstanceNorm1d, InstanceNorm2d = InstanceNorm2d, InstanceNorm3d = InstanceNorm3d,
}
