-- lua/gpipe/nn/layer/image/pool.lua - `nn.MaxPool2d`, `nn.AvgPool2d` and their kin: one number of
-- each window of an image or a sequence.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local image = require "gpipe.nn.layer.image"
local options = require "gpipe.options"
local window = require "gpipe.nn.layer.image.window"

local SIZES = { type = { "number", "table" } }
local ONE = { type = { "number", "table" }, default = 1 }
local NONE = { type = { "number", "table" }, default = 0 }

local MAX = {
  stride = SIZES, padding = NONE, dilation = ONE, ceil_mode = { type = "boolean", default = false },
}
local AVERAGE = {
  stride = SIZES, padding = NONE, ceil_mode = { type = "boolean", default = false },
  count_include_pad = { type = "boolean", default = true },
}

---@class nn.MaxPoolOptions
---@field stride? integer|integer[] the kernel
---@field padding? integer|integer[] 0
---@field dilation? integer|integer[] 1
---@field ceil_mode? boolean false

---@class nn.AvgPoolOptions
---@field stride? integer|integer[] the kernel
---@field padding? integer|integer[] 0
---@field ceil_mode? boolean false
---@field count_include_pad? boolean true

-- ---- windows ---------------------------------------------------------------------------------

-- Numbers of all axes of an image: a sequence has a height of 1.
local function of_image(self, numbers, height)
  return self.axes == 2 and numbers or window.as_image(numbers, height)
end

local function read(self, who, kernel, opts)
  local axes = self.axes
  self.kernel = window.numbers(who, "kernel", kernel, axes, 1)
  self.stride = opts.stride == nil and self.kernel
    or window.numbers(who, "stride", opts.stride, axes, 1)
  self.padding = window.padding(who, opts.padding, axes)
  self.attributes = {
    kernel = of_image(self, self.kernel, 1), stride = of_image(self, self.stride, 1),
    padding = of_image(self, self.padding, { 0, 0 }), ceil = opts.ceil_mode,
  }
end

local function describe(self)
  return ("kernel %s, stride %s"):format(window.text(self.kernel), window.text(self.stride))
end

local function init_max(self, who, kernel, opts)
  opts = options.check(who, opts, MAX)
  read(self, who, kernel, opts)
  self.dilation = window.numbers(who, "dilation", opts.dilation, self.axes, 1)
  self.attributes.dilation = of_image(self, self.dilation, 1)
end

local function init_average(self, who, kernel, opts)
  opts = options.check(who, opts, AVERAGE)
  read(self, who, kernel, opts)
  self.attributes.mode, self.attributes.inside = "window", not opts.count_include_pad
end

local function forward_max(self, x)
  return image.apply(self, core.max_pool2d, x, self.attributes)
end

local function forward_average(self, x)
  return image.apply(self, core.resample2d, x, self.attributes)
end

---@class nn.MaxPool2d: nn.Module
local MaxPool2d = class.new("MaxPool2d", Module, true)
MaxPool2d.axes, MaxPool2d.describe, MaxPool2d.forward = 2, describe, forward_max

--- The largest element of each window of an image.
---
--- Shapes: [N, C, H, W] -> [N, C, OH, OW] with OH = (H + 2 padding - dilation (kernel - 1) - 1) //
--- stride + 1, rounded up with ceil_mode, as long as the last window begins in the image. Kernel,
--- stride, padding, dilation: a number or {height, width}. A window with a NaN gives NaN.
--- Errors: sizes that are no positive integers; when called, more padding than half a window, and
--- images that are smaller than a window.
--- Source: PyTorch nn.MaxPool2d.
--- ```lua
--- local y = nn.MaxPool2d(2)(gp.ones {1, 3, 8, 8})
--- assert(y.shape[3] == 4)
--- ```
---@param kernel integer|integer[]
---@param opts? nn.MaxPoolOptions
function MaxPool2d:init(kernel, opts) init_max(self, "nn.MaxPool2d", kernel, opts) end

---@class nn.MaxPool1d: nn.Module
local MaxPool1d = class.new("MaxPool1d", Module, true)
MaxPool1d.axes, MaxPool1d.describe, MaxPool1d.forward = 1, describe, forward_max

--- The largest element of each window of a sequence: [N, C, L] -> [N, C, OL], as nn.MaxPool2d.
--- Source: PyTorch nn.MaxPool1d.
--- ```lua
--- local y = nn.MaxPool1d(3, {stride = 2})(gp.ones {1, 4, 9})
--- assert(y.shape[3] == 4)
--- ```
---@param kernel integer
---@param opts? nn.MaxPoolOptions
function MaxPool1d:init(kernel, opts) init_max(self, "nn.MaxPool1d", kernel, opts) end

---@class nn.AvgPool2d: nn.Module
local AvgPool2d = class.new("AvgPool2d", Module, true)
AvgPool2d.axes, AvgPool2d.describe, AvgPool2d.forward = 2, describe, forward_average

--- The average of each window of an image.
---
--- Shapes and errors: those of nn.MaxPool2d. The zeros of the padding count, unless
--- count_include_pad is false.
--- Source: PyTorch nn.AvgPool2d.
--- ```lua
--- local y = nn.AvgPool2d(3, {padding = 1, count_include_pad = false})(gp.ones {1, 2, 6, 6})
--- assert(y[1][1][1][1] == 1)
--- ```
---@param kernel integer|integer[]
---@param opts? nn.AvgPoolOptions
function AvgPool2d:init(kernel, opts) init_average(self, "nn.AvgPool2d", kernel, opts) end

---@class nn.AvgPool1d: nn.Module
local AvgPool1d = class.new("AvgPool1d", Module, true)
AvgPool1d.axes, AvgPool1d.describe, AvgPool1d.forward = 1, describe, forward_average

--- The average of each window of a sequence: [N, C, L] -> [N, C, OL], as nn.AvgPool2d.
--- Source: PyTorch nn.AvgPool1d.
--- ```lua
--- local y = nn.AvgPool1d(2)(gp.ones {1, 4, 8})
--- assert(y.shape[3] == 4)
--- ```
---@param kernel integer
---@param opts? nn.AvgPoolOptions
function AvgPool1d:init(kernel, opts) init_average(self, "nn.AvgPool1d", kernel, opts) end

-- ---- adaptive ones ---------------------------------------------------------------------------

local function init_adaptive(self, who, size)
  self.size = window.numbers(who, "size", size, self.axes, 1)
  self.attributes = { mode = "adaptive", size = of_image(self, self.size, 1) }
end

local function describe_size(self) return "to " .. window.text(self.size) end

---@class nn.AdaptiveAvgPool2d: nn.Module
local AdaptiveAvgPool2d = class.new("AdaptiveAvgPool2d", Module, true)
AdaptiveAvgPool2d.axes, AdaptiveAvgPool2d.describe = 2, describe_size
AdaptiveAvgPool2d.forward = forward_average

--- Averages of windows, as many as asked for, that together cover an image of any size.
---
--- Shapes: [N, C, H, W] -> [N, C, size]. Window i along an axis holds elements floor(i H / size) to
--- ceil((i + 1) H / size) - 1, from 0.
--- Errors: a size that is no positive integer; when called, an image without elements.
--- Source: PyTorch nn.AdaptiveAvgPool2d.
--- ```lua
--- local y = nn.AdaptiveAvgPool2d(1)(gp.ones {2, 3, 7, 9})
--- assert(y[1][1][1][1] == 1)
--- ```
---@param size integer|integer[]
function AdaptiveAvgPool2d:init(size) init_adaptive(self, "nn.AdaptiveAvgPool2d", size) end

---@class nn.AdaptiveAvgPool1d: nn.Module
local AdaptiveAvgPool1d = class.new("AdaptiveAvgPool1d", Module, true)
AdaptiveAvgPool1d.axes, AdaptiveAvgPool1d.describe = 1, describe_size
AdaptiveAvgPool1d.forward = forward_average

--- Averages of `size` windows that cover a sequence: [N, C, L] -> [N, C, size].
--- Source: PyTorch nn.AdaptiveAvgPool1d.
--- ```lua
--- assert(nn.AdaptiveAvgPool1d(4)(gp.ones {2, 3, 10}).shape[3] == 4)
--- ```
---@param size integer
function AdaptiveAvgPool1d:init(size) init_adaptive(self, "nn.AdaptiveAvgPool1d", size) end

---@class nn.AdaptiveMaxPool2d: nn.Module
local AdaptiveMaxPool2d = class.new("AdaptiveMaxPool2d", Module, true)
AdaptiveMaxPool2d.axes, AdaptiveMaxPool2d.describe = 2, describe_size
AdaptiveMaxPool2d.forward = forward_max

--- The largest elements of windows, as many as asked for: those of nn.AdaptiveAvgPool2d.
--- Source: PyTorch nn.AdaptiveMaxPool2d.
--- ```lua
--- assert(nn.AdaptiveMaxPool2d({2, 3})(gp.ones {2, 3, 7, 9}).shape[4] == 3)
--- ```
---@param size integer|integer[]
function AdaptiveMaxPool2d:init(size) init_adaptive(self, "nn.AdaptiveMaxPool2d", size) end

---@class nn.AdaptiveMaxPool1d: nn.Module
local AdaptiveMaxPool1d = class.new("AdaptiveMaxPool1d", Module, true)
AdaptiveMaxPool1d.axes, AdaptiveMaxPool1d.describe = 1, describe_size
AdaptiveMaxPool1d.forward = forward_max

--- The largest elements of `size` windows that cover a sequence: [N, C, L] -> [N, C, size].
--- Source: PyTorch nn.AdaptiveMaxPool1d.
--- ```lua
--- assert(nn.AdaptiveMaxPool1d(4)(gp.ones {2, 3, 10}).shape[3] == 4)
--- ```
---@param size integer
function AdaptiveMaxPool1d:init(size) init_adaptive(self, "nn.AdaptiveMaxPool1d", size) end

return {
  MaxPool1d = MaxPool1d, MaxPool2d = MaxPool2d, AvgPool1d = AvgPool1d, AvgPool2d = AvgPool2d,
  AdaptiveAvgPool1d = AdaptiveAvgPool1d, AdaptiveAvgPool2d = AdaptiveAvgPool2d,
  AdaptiveMaxPool1d = AdaptiveMaxPool1d, AdaptiveMaxPool2d = AdaptiveMaxPool2d,
}
