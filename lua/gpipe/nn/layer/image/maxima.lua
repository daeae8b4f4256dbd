-- lua/gpipe/nn/layer/image/maxima.lua - maxima of windows with their positions, and
-- `nn.MaxUnpool2d`, `nn.MaxUnpool1d`, which put them back.
--
-- Positions count the elements of an image from 1, row after row. Where they are asked for, windows
-- are cut out of the image, which holds kernel height * width / stride numbers for each of its own.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local image = require "gpipe.nn.layer.image"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"
local slide = require "gpipe.nn.layer.image.slide"
local window = require "gpipe.nn.layer.image.window"

local maxima = {}

-- ---- maxima with positions -------------------------------------------------------------------

-- How windows lie along an axis of n elements: {kernel, stride, dilation, before, count}.
local function windows_along(attrs, axis, n)
  local spec = {
    kernel = attrs.kernel[axis], stride = attrs.stride[axis], dilation = attrs.dilation[axis],
    before = attrs.padding[2 * axis - 1],
  }
  local padded = n + spec.before + attrs.padding[2 * axis]
  local free = padded - spec.dilation * (spec.kernel - 1) - 1
  spec.count = free // spec.stride + 1
  if attrs.ceil and free % spec.stride > 0 and spec.count * spec.stride < n + spec.before then
    spec.count = spec.count + 1 -- the last window begins in the image
  end
  return spec
end

-- The image with as much around as the windows reach: nothing there is the largest.
local function surrounded(x, d, n, spec)
  local reach = (spec.count - 1) * spec.stride + spec.dilation * (spec.kernel - 1) + 1
  local behind = reach - spec.before - n
  local pads = {}
  for i = 1, 2 * (4 - d) do pads[i] = 0 end
  pads[#pads + 1], pads[#pads + 2] = spec.before, behind
  return x:pad(pads, "constant", -math.huge)
end

-- The position of element k of window (i, j), [1, 1, OH, OW, KH KW].
local function places(high, wide, columns)
  local list = {}
  for i = 0, high.count - 1 do
    for j = 0, wide.count - 1 do
      for k = 0, high.kernel * wide.kernel - 1 do
        local y = i * high.stride - high.before + k // wide.kernel * high.dilation
        local x = j * wide.stride - wide.before + k % wide.kernel * wide.dilation
        list[#list + 1] = y * columns + x + 1
      end
    end
  end
  return core.tensor(list, "i64"):reshape { 1, 1, high.count, wide.count, -1 }
end

local function positions_in(x, attrs)
  local shape = x.shape
  local high, wide = windows_along(attrs, 1, shape[3]), windows_along(attrs, 2, shape[4])
  local cut = surrounded(surrounded(x, 3, shape[3], high), 4, shape[4], wide)
  cut = slide.cut(slide.cut(cut, 3, high), 5, wide):permute { 1, 2, 4, 6, 3, 5 }
  local sizes = { shape[1], shape[2], high.count, wide.count, high.kernel * wide.kernel }
  local _, chosen = cut:reshape(sizes):max(-1, true)
  local at = beside(x, places(high, wide, shape[4])):expand(sizes):contiguous()
  table.remove(sizes)
  return at:gather(5, chosen):reshape(sizes)
end

--- What a max pool with `positions` returns.
---@param layer nn.Module
---@param x gpipe.Tensor
---@return gpipe.Tensor values
---@return gpipe.Tensor positions i64
function maxima.pool(layer, x)
  local values = image.apply(layer, core.max_pool2d, x, layer.attributes) -- checks what is wrong
  local raised = layer.axes == 1 and image.raised(x) or x
  local positions = positions_in(raised, layer.attributes)
  return values, layer.axes == 1 and image.lowered(positions) or positions
end

-- ---- putting back ----------------------------------------------------------------------------

local SIZES = { type = { "number", "table" } }
local OPTIONS = {
  stride = SIZES, padding = { type = { "number", "table" }, default = 0 }, size = SIZES,
}

local function set_up(self, who, kernel, opts)
  opts = options.check(who, opts, OPTIONS)
  local axes = self.axes
  self.kernel = window.numbers(who, "kernel", kernel, axes, 1)
  self.stride = opts.stride == nil and self.kernel
    or window.numbers(who, "stride", opts.stride, axes, 1)
  self.padding = window.padding(who, opts.padding, axes)
  self.size = opts.size ~= nil and window.numbers(who, "size", opts.size, axes, 1) or nil
end

local function sizes_of(self, shape)
  if self.size then return self.size end
  local size = {}
  for axis, kernel in ipairs(self.kernel) do
    size[axis] = (shape[2 + axis] - 1) * self.stride[axis] + kernel - self.padding[2 * axis - 1]
      - self.padding[2 * axis]
  end
  return size
end

local WANTED = { "?x?x?", "?x?x?x?" }

local function check_inputs(self, x, positions)
  local shape = input.tensor(self, x).shape
  local have = check.shape_text(input.tensor(self, positions, "positions").shape)
  if #shape ~= self.axes + 2 or have ~= check.shape_text(shape) then
    errors.raise_as("shape", "%s: input is %s and positions are %s, expected both %s",
      scope.label(self), check.shape_text(shape), have, WANTED[self.axes])
  end
  return shape
end

-- Windows that overlap may have the same largest element: it is put there once, not added up.
local function overlaps(self)
  for axis, kernel in ipairs(self.kernel) do
    if self.stride[axis] < kernel then return true end
  end
  return false
end

local function forward(self, x, positions)
  local shape = check_inputs(self, x, positions)
  local size, total = sizes_of(self, shape), 1
  for _, each in ipairs(size) do total = total * each end
  local rows = { shape[1], shape[2], -1 }
  local at, zeros = positions:reshape(rows), { shape[1], shape[2], total }
  local empty = beside(x, create.zeros(zeros, { dtype = x.dtype }))
  local y = empty:scatter_add(3, at, x:reshape(rows))
  if overlaps(self) then
    local one = beside(x, create.ones(shape, { dtype = x.dtype })):reshape(rows)
    y = y / empty:scatter_add(3, at, one):maximum(1)
  end
  return y:reshape { shape[1], shape[2], table.unpack(size) }
end

local function describe(self)
  return ("kernel %s, stride %s"):format(window.text(self.kernel), window.text(self.stride))
end

---@class nn.MaxUnpoolOptions
---@field stride? integer|integer[] the kernel
---@field padding? integer|integer[] 0
---@field size? integer|integer[] of the output, where several come to the same pooled size

---@class nn.MaxUnpool2d: nn.Module
local MaxUnpool2d = class.new("MaxUnpool2d", Module, true)
MaxUnpool2d.axes, MaxUnpool2d.forward, MaxUnpool2d.describe = 2, forward, describe
maxima.MaxUnpool2d = MaxUnpool2d

--- Maxima where they were, and zeros: what an nn.MaxPool2d with `positions` did, turned round.
---
--- Shapes: x and positions [N, C, H, W] -> [N, C, size], (H - 1) stride - 2 padding + kernel
--- unless said. Called with both: `unpool(pool(x))`.
--- Errors: sizes that are no positive integers; when called, positions outside of the output.
--- Source: PyTorch nn.MaxUnpool2d, whose positions count from 0.
--- ```lua
--- local pool = nn.MaxPool2d(2, {positions = true})
--- local y = nn.MaxUnpool2d(2)(pool(gp.arange(1, 16):reshape(1, 1, 4, 4)))
--- assert(y[1][1][2][2] == 6 and y[1][1][1][1] == 0)
--- ```
---@param kernel integer|integer[]
---@param opts? nn.MaxUnpoolOptions
function MaxUnpool2d:init(kernel, opts) set_up(self, "nn.MaxUnpool2d", kernel, opts) end

---@class nn.MaxUnpool1d: nn.Module
local MaxUnpool1d = class.new("MaxUnpool1d", Module, true)
MaxUnpool1d.axes, MaxUnpool1d.forward, MaxUnpool1d.describe = 1, forward, describe
maxima.MaxUnpool1d = MaxUnpool1d

--- nn.MaxUnpool2d of sequences, [N, C, L], for an nn.MaxPool1d with `positions`.
--- Source: PyTorch nn.MaxUnpool1d.
--- ```lua
--- local pool = nn.MaxPool1d(2, {positions = true})
--- assert(nn.MaxUnpool1d(2)(pool(gp.arange(1, 4):reshape(1, 1, 4))).shape[3] == 4)
--- ```
---@param kernel integer
---@param opts? nn.MaxUnpoolOptions
function MaxUnpool1d:init(kernel, opts) set_up(self, "nn.MaxUnpool1d", kernel, opts) end

return maxima
