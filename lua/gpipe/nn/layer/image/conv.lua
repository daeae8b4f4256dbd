-- lua/gpipe/nn/layer/image/conv.lua - `nn.Conv2d`, `nn.Conv1d`, `nn.ConvTranspose2d`,
-- `nn.ConvTranspose1d`: windows weighed by kernels.
--
-- Weights have PyTorch's layouts, so that its files fit. Users see N x C x H x W; in memory images
-- lie channels-last.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local image = require "gpipe.nn.layer.image"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"
local window = require "gpipe.nn.layer.image.window"

local conv = {}

local OPTIONS = {
  stride = { type = { "number", "table" }, default = 1 },
  padding = { type = { "number", "table", "string" }, default = 0 },
  dilation = { type = { "number", "table" }, default = 1 },
  groups = { type = "number", default = 1 },
  bias = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

local TRANSPOSED = { output_padding = { type = { "number", "table" }, default = 0 } }
for name, option in pairs(OPTIONS) do TRANSPOSED[name] = option end

---@class nn.ConvOptions
---@field stride? integer|integer[] 1
---@field padding? integer|integer[]|"same"|"valid" 0
---@field dilation? integer|integer[] 1
---@field groups? integer 1
---@field bias? boolean true
---@field dtype? "f32"|"f64"

---@class nn.ConvTransposeOptions: nn.ConvOptions
---@field output_padding? integer|integer[] 0

-- ---- what all of them have -------------------------------------------------------------------

local function read_padding(self, who, value)
  if value == "valid" then value = 0 end
  if type(value) ~= "string" then return window.padding(who, value, #self.kernel) end
  if value ~= "same" then check.fail(who, "padding", value, 'numbers, "same" or "valid"') end
  return window.same(who, self.kernel, self.stride, self.dilation)
end

local function read(self, who, kernel, opts)
  local axes = self.axes
  self.kernel = window.numbers(who, "kernel", kernel, axes, 1)
  self.stride = window.numbers(who, "stride", opts.stride, axes, 1)
  self.dilation = window.numbers(who, "dilation", opts.dilation, axes, 1)
  self.padding = read_padding(self, who, opts.padding)
  self.groups = check.size(who, "groups", opts.groups)
end

local function check_groups(who, name, channels, groups)
  if channels % groups ~= 0 then
    check.fail(who, name, channels, ("a multiple of the %d groups"):format(groups))
  end
end

-- Weight and bias start uniform in +-1 / sqrt(of what one output is made of), as kaiming_uniform
-- with a = sqrt(5) does.
local function declare(self, opts, first, second, outputs)
  local shape, taps = { first, second }, 1
  for axis, size in ipairs(self.kernel) do shape[2 + axis], taps = size, taps * size end
  local bound = 1 / math.sqrt(second * taps)
  local init = initial.uniform(-bound, bound)
  self.weight = parameter.Parameter(shape, init, { dtype = opts.dtype })
  if opts.bias then self.bias = parameter.Parameter({ outputs }, init, { dtype = opts.dtype }) end
end

local function set_up(self, who, in_channels, out_channels, kernel, opts)
  self.in_channels = check.size(who, "in_channels", in_channels)
  self.out_channels = check.size(who, "out_channels", out_channels)
  read(self, who, kernel, opts)
  check_groups(who, "in_channels", self.in_channels, self.groups)
  check_groups(who, "out_channels", self.out_channels, self.groups)
end

-- {1, 1, 0, 0} as "1x0", the size of each axis, where both sides have the same; else all numbers.
local function padding_text(padding)
  local each = {}
  for axis = 1, #padding // 2 do
    if padding[2 * axis - 1] ~= padding[2 * axis] then
      return "{" .. table.concat(padding, ", ") .. "}"
    end
    each[axis] = padding[2 * axis]
  end
  return window.text(each)
end

local function is_all(list, value)
  for _, number in ipairs(list) do
    if number ~= value then return false end
  end
  return true
end

-- What is not as it would be without options.
local function describe(self)
  local parts = { ("%d -> %d"):format(self.in_channels, self.out_channels),
    "kernel " .. window.text(self.kernel) }
  local function add(name, list, usual, text)
    if list and not is_all(list, usual) then
      parts[#parts + 1] = ("%s %s"):format(name, (text or window.text)(list))
    end
  end
  add("stride", self.stride, 1)
  add("padding", self.padding, 0, padding_text)
  if self.padding_mode then parts[#parts] = parts[#parts] .. " " .. self.padding_mode end
  add("output padding", self.output_padding, 0)
  add("dilation", self.dilation, 1)
  if self.groups > 1 then parts[#parts + 1] = ("%d groups"):format(self.groups) end
  if not self.bias then parts[#parts + 1] = "no bias" end
  return table.concat(parts, ", ")
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
--- width}; padding also {top, bottom, left, right}, "same" (of stride 1: OH = H) or "valid", 0.
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
  opts = options.check("nn.Conv2d", opts, OPTIONS)
  set_up(self, "nn.Conv2d", in_channels, out_channels, kernel, opts)
  declare(self, opts, self.out_channels, self.in_channels // self.groups, self.out_channels)
end

local function attributes(self)
  return {
    stride = self.stride, padding = self.padding, dilation = self.dilation, groups = self.groups,
  }
end

function Conv2d:forward(x)
  return core.conv2d(input.tensor(self, x), self.weight, self.bias, attributes(self))
end

Conv2d.describe = describe

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
  opts = options.check("nn.Conv1d", opts, OPTIONS)
  set_up(self, "nn.Conv1d", in_channels, out_channels, kernel, opts)
  declare(self, opts, self.out_channels, self.in_channels // self.groups, self.out_channels)
end

function Conv1d:forward(x)
  if #input.tensor(self, x).shape ~= 3 then
    errors.raise("%s: input is %s, expected ?x%dx?", scope.label(self),
      check.shape_text(x.shape), self.in_channels)
  end
  local y = core.conv2d(image.raised(x), image.raised(self.weight), self.bias, {
    stride = window.as_image(self.stride, 1), padding = window.as_image(self.padding, { 0, 0 }),
    dilation = window.as_image(self.dilation, 1), groups = self.groups,
  })
  return image.lowered(y)
end

Conv1d.describe = describe

-- ---- ConvTranspose2d -------------------------------------------------------------------------

local function set_up_transposed(self, who, in_channels, out_channels, kernel, opts)
  opts = options.check(who, opts, TRANSPOSED)
  if type(opts.padding) == "string" then check.fail(who, "padding", opts.padding, "numbers") end
  set_up(self, who, in_channels, out_channels, kernel, opts)
  self.output_padding = window.numbers(who, "output_padding", opts.output_padding, self.axes, 0)
  for axis, more in ipairs(self.output_padding) do
    if more >= self.stride[axis] then
      check.fail(who, "output_padding", more,
        ("less than the stride, %d"):format(self.stride[axis]))
    end
  end
  declare(self, opts, self.in_channels, self.out_channels // self.groups, self.out_channels)
end

-- The size that an axis comes to.
local function transposed_size(self, shape, axis)
  local padding = self.padding[2 * axis - 1] + self.padding[2 * axis]
  local window_size = self.dilation[axis] * (self.kernel[axis] - 1) + 1
  return (shape[2 + axis] - 1) * self.stride[axis] - padding + window_size
    + self.output_padding[axis]
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
  set_up_transposed(self, "nn.ConvTranspose2d", in_channels, out_channels, kernel, opts)
end

function ConvTranspose2d:forward(x)
  local shape, attrs = input.tensor(self, x).shape, attributes(self)
  if #shape ~= 4 then
    errors.raise("%s: input is %s, expected ?x%dx?x?", scope.label(self), check.shape_text(shape),
      self.in_channels)
  end
  attrs.size = { transposed_size(self, shape, 1), transposed_size(self, shape, 2) }
  return core.conv_transpose2d(x, self.weight, self.bias, attrs)
end

ConvTranspose2d.describe = describe

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
  set_up_transposed(self, "nn.ConvTranspose1d", in_channels, out_channels, kernel, opts)
end

function ConvTranspose1d:forward(x)
  local shape = input.tensor(self, x).shape
  if #shape ~= 3 then
    errors.raise("%s: input is %s, expected ?x%dx?", scope.label(self), check.shape_text(shape),
      self.in_channels)
  end
  local y = core.conv_transpose2d(image.raised(x), image.raised(self.weight), self.bias, {
    stride = window.as_image(self.stride, 1), padding = window.as_image(self.padding, { 0, 0 }),
    dilation = window.as_image(self.dilation, 1), groups = self.groups,
    size = { 1, transposed_size(self, shape, 1) },
  })
  return image.lowered(y)
end

ConvTranspose1d.describe = describe

conv.Conv1d, conv.Conv2d = Conv1d, Conv2d
conv.ConvTranspose1d, conv.ConvTranspose2d = ConvTranspose1d, ConvTranspose2d
return conv
