-- lua/gpipe/nn/layer/image/pooling.lua - what all pools share: options, windows, and how they are
-- printed.

local options = require "gpipe.options"
local window = require "gpipe.nn.layer.image.window"

local pooling = {}

local SIZES = { type = { "number", "table" } }
local ONE = { type = { "number", "table" }, default = 1 }
local NONE = { type = { "number", "table" }, default = 0 }

local MAX = {
  stride = SIZES, padding = NONE, dilation = ONE, ceil_mode = { type = "boolean", default = false },
  positions = { type = "boolean", default = false },
}
local VOLUME = { stride = SIZES, padding = NONE, dilation = ONE, ceil_mode = MAX.ceil_mode }
local AVERAGE = {
  stride = SIZES, padding = NONE, ceil_mode = { type = "boolean", default = false },
  count_include_pad = { type = "boolean", default = true },
}

---@class nn.MaxPoolOptions
---@field stride? integer|integer[] the kernel
---@field padding? integer|integer[] 0
---@field dilation? integer|integer[] 1
---@field ceil_mode? boolean false
---@field positions? boolean false; true: also return where the elements were, for nn.MaxUnpool2d

---@class nn.AvgPoolOptions
---@field stride? integer|integer[] the kernel
---@field padding? integer|integer[] 0
---@field ceil_mode? boolean false
---@field count_include_pad? boolean true

-- ---- windows ---------------------------------------------------------------------------------

-- Numbers of all axes of an image: a sequence has a height of 1, a volume one axis more.
local function of_image(self, numbers, height)
  return self.axes > 1 and numbers or window.as_image(numbers, height)
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

function pooling.describe(self)
  return ("kernel %s, stride %s"):format(window.text(self.kernel), window.text(self.stride))
end

function pooling.init_max(self, who, kernel, opts)
  opts = options.check(who, opts, self.axes == 3 and VOLUME or MAX)
  read(self, who, kernel, opts)
  self.dilation = window.numbers(who, "dilation", opts.dilation, self.axes, 1)
  self.attributes.dilation = of_image(self, self.dilation, 1)
  self.positions = opts.positions or false
end

function pooling.init_average(self, who, kernel, opts)
  opts = options.check(who, opts, AVERAGE)
  read(self, who, kernel, opts)
  self.attributes.mode, self.attributes.inside = "window", not opts.count_include_pad
end

function pooling.init_adaptive(self, who, size)
  self.size = window.numbers(who, "size", size, self.axes, 1)
  self.attributes = { mode = "adaptive", size = of_image(self, self.size, 1) }
end

function pooling.describe_size(self) return "to " .. window.text(self.size) end

return pooling
