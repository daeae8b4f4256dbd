-- lua/gpipe/nn/layer/image/pool.lua - `nn.MaxPool2d`, `nn.AvgPool2d` and their kin: one number of
-- each window of an image or a sequence.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local image = require "gpipe.nn.layer.image"
local maxima = require "gpipe.nn.layer.image.maxima"
local pooling = require "gpipe.nn.layer.image.pooling"

local describe, describe_size = pooling.describe, pooling.describe_size
local init_max, init_average = pooling.init_max, pooling.init_average
local init_adaptive = pooling.init_adaptive

local function forward_max(self, x)
  if self.positions then return maxima.pool(self, x) end
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
--- stride, padding, dilation: a number or {height, width}. A window with a NaN gives NaN. With
--- `positions` it also returns where in its image each element was, (y - 1) W + x, i64.
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
