-- lua/gpipe/nn/layer/image/volume_pool.lua - `nn.MaxPool3d`, `nn.AvgPool3d`, and the
-- `nn.AdaptiveAvgPool3d`, `nn.AdaptiveMaxPool3d` beside them: a number of each window of a volume.
--
-- A window's largest element, and its average, are made of those of its slices: so heights and
-- widths go first, as images, then depths. Of equal elements the first one in order of depth,
-- height and width gets the gradient, as in PyTorch.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local pooling = require "gpipe.nn.layer.image.pooling"
local scope = require "gpipe.nn.scope"

-- The attributes for images of height and width.
local function plane_of(attrs)
  local made = { mode = attrs.mode, ceil = attrs.ceil, inside = attrs.inside }
  for _, name in ipairs { "kernel", "stride", "dilation", "size" } do
    made[name] = attrs[name] and { attrs[name][2], attrs[name][3] }
  end
  made.padding = attrs.padding and table.move(attrs.padding, 3, 6, 1, {})
  return made
end

-- The attributes for images whose height is the depth, and whose columns are left alone.
local function depth_of(attrs, columns)
  local made = { mode = attrs.mode, ceil = attrs.ceil, inside = attrs.inside }
  for _, name in ipairs { "kernel", "stride", "dilation" } do
    made[name] = attrs[name] and { attrs[name][1], 1 }
  end
  made.size = attrs.size and { attrs.size[1], columns }
  made.padding = attrs.padding and { attrs.padding[1], attrs.padding[2], 0, 0 }
  return made
end

local function apply(self, op, x)
  local shape = input.tensor(self, x).shape
  if #shape ~= 5 then
    errors.raise("%s: input is %s, expected ?x?x?x?x?", scope.label(self), check.shape_text(shape))
  end
  local n, c, d = shape[1], shape[2], shape[3]
  local plane = op(x:reshape { n, c * d, shape[4], shape[5] }, plane_of(self.attributes))
  local h, w = plane:size(3), plane:size(4)
  local y = op(plane:reshape { n, c, d, h * w }, depth_of(self.attributes, h * w))
  return y:reshape { n, c, y:size(3), h, w }
end

local function forward_max(self, x) return apply(self, core.max_pool2d, x) end
local function forward_average(self, x) return apply(self, core.resample2d, x) end

local function new(name, forward, describe)
  local made = class.new(name, Module, true)
  made.axes, made.forward, made.describe = 3, forward, describe
  return made
end

---@class nn.MaxPool3d: nn.Module
local MaxPool3d = new("MaxPool3d", forward_max, pooling.describe)

--- The largest element of each window of a volume.
---
--- Shapes: [N, C, D, H, W] -> [N, C, OD, OH, OW], sizes, options and errors as of nn.MaxPool2d;
--- kernel, stride, padding, dilation: a number or {depth, height, width}.
--- Source: PyTorch nn.MaxPool3d.
--- ```lua
--- assert(nn.MaxPool3d(2)(gp.ones {1, 3, 4, 8, 8}).shape[3] == 2)
--- ```
---@param kernel integer|integer[]
---@param opts? nn.MaxPoolOptions
function MaxPool3d:init(kernel, opts) pooling.init_max(self, "nn.MaxPool3d", kernel, opts) end

---@class nn.AvgPool3d: nn.Module
local AvgPool3d = new("AvgPool3d", forward_average, pooling.describe)

--- The average of each window of a volume.
---
--- Shapes: those of nn.MaxPool3d; options and errors: those of nn.AvgPool2d.
--- Source: PyTorch nn.AvgPool3d.
--- ```lua
--- assert(nn.AvgPool3d({1, 2, 2})(gp.ones {1, 3, 4, 8, 8}).shape[5] == 4)
--- ```
---@param kernel integer|integer[]
---@param opts? nn.AvgPoolOptions
function AvgPool3d:init(kernel, opts) pooling.init_average(self, "nn.AvgPool3d", kernel, opts) end

---@class nn.AdaptiveAvgPool3d: nn.Module
local AdaptiveAvgPool3d = new("AdaptiveAvgPool3d", forward_average, pooling.describe_size)

--- Averages of windows, as many as asked for, that together cover a volume of any size: those of
--- nn.AdaptiveAvgPool2d along each axis.
--- Source: PyTorch nn.AdaptiveAvgPool3d.
--- ```lua
--- assert(nn.AdaptiveAvgPool3d({1, 2, 3})(gp.ones {2, 3, 5, 7, 9}).shape[5] == 3)
--- ```
---@param size integer|integer[]
function AdaptiveAvgPool3d:init(size) pooling.init_adaptive(self, "nn.AdaptiveAvgPool3d", size) end

---@class nn.AdaptiveMaxPool3d: nn.Module
local AdaptiveMaxPool3d = new("AdaptiveMaxPool3d", forward_max, pooling.describe_size)

--- The largest elements of windows, as many as asked for: those of nn.AdaptiveAvgPool3d.
--- Source: PyTorch nn.AdaptiveMaxPool3d.
--- ```lua
--- assert(nn.AdaptiveMaxPool3d(2)(gp.ones {2, 3, 5, 7, 9}).shape[3] == 2)
--- ```
---@param size integer|integer[]
function AdaptiveMaxPool3d:init(size) pooling.init_adaptive(self, "nn.AdaptiveMaxPool3d", size) end

return {
  MaxPool3d = MaxPool3d, AvgPool3d = AvgPool3d, AdaptiveAvgPool3d = AdaptiveAvgPool3d,
  AdaptiveMaxPool3d = AdaptiveMaxPool3d,
}
