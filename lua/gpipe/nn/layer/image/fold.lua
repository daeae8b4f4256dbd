-- lua/gpipe/nn/layer/image/fold.lua - `nn.Unfold`: the windows of an image as columns; `nn.Fold`:
-- columns added up to an image.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"
local slide = require "gpipe.nn.layer.image.slide"
local window = require "gpipe.nn.layer.image.window"

local OPTIONS = {
  stride = { type = { "number", "table" }, default = 1 },
  padding = { type = { "number", "table" }, default = 0 },
  dilation = { type = { "number", "table" }, default = 1 },
}

---@class nn.FoldOptions
---@field stride? integer|integer[] 1
---@field padding? integer|integer[] 0
---@field dilation? integer|integer[] 1

local function set_up(self, who, kernel, opts)
  opts = options.check(who, opts, OPTIONS)
  self.kernel = window.numbers(who, "kernel", kernel, 2, 1)
  self.stride = window.numbers(who, "stride", opts.stride, 2, 1)
  self.dilation = window.numbers(who, "dilation", opts.dilation, 2, 1)
  self.padding = window.padding(who, opts.padding, 2)
end

local function of_axis(self, axis)
  return {
    kernel = self.kernel[axis], stride = self.stride[axis], dilation = self.dilation[axis],
  }
end

-- How many windows an image of this size has, down and across.
local function counts(self, size)
  local list = {}
  for axis = 1, 2 do
    local padded = size[axis] + self.padding[2 * axis - 1] + self.padding[2 * axis]
    list[axis] = slide.count(padded, of_axis(self, axis))
  end
  return list
end

local function describe(self)
  return ("kernel %s, stride %s"):format(window.text(self.kernel), window.text(self.stride))
end

---@class nn.Unfold: nn.Module
local Unfold = class.new("Unfold", Module, true)
Unfold.describe = describe

--- The windows of an image as columns: what a convolution multiplies its weight with.
---
--- Shapes: [N, C, H, W] -> [N, C kernel height kernel width, windows], channel after channel, row
--- after row of the window; windows row after row of the image.
--- Errors: sizes that are no positive integers; when called, images smaller than a window.
--- Source: PyTorch nn.Unfold.
--- ```lua
--- local columns = nn.Unfold(2)(gp.arange(1, 9):reshape(1, 1, 3, 3))
--- assert(columns.shape[2] == 4 and columns.shape[3] == 4 and columns[1][4][1] == 5)
--- ```
---@param kernel integer|integer[]
---@param opts? nn.FoldOptions
function Unfold:init(kernel, opts) set_up(self, "nn.Unfold", kernel, opts) end

function Unfold:forward(x)
  local shape, pad = input.tensor(self, x).shape, self.padding
  local many = #shape == 4 and counts(self, { shape[3], shape[4] })
  if not many or many[1] < 1 or many[2] < 1 then
    errors.raise_as("shape", "%s: input is %s, expected ?x?x?x? of at least a window",
      scope.label(self), check.shape_text(shape))
  end
  x = slide.pad(slide.pad(x, 3, pad[1], pad[2]), 4, pad[3], pad[4])
  local cut = slide.cut(slide.cut(x, 3, of_axis(self, 1)), 5, of_axis(self, 2))
  return cut:permute({ 1, 2, 3, 5, 4, 6 }):reshape { -- of [N, C, KH, OH, KW, OW]
    shape[1], shape[2] * self.kernel[1] * self.kernel[2], many[1] * many[2],
  }
end

---@class nn.Fold: nn.Module
local Fold = class.new("Fold", Module, true)

--- Columns added up to an image: every number where nn.Unfold would have taken it from.
---
--- Shapes: [N, C kernel height kernel width, windows] -> [N, C, size].
--- Errors: sizes that are no positive integers; when called, another number of windows.
--- Source: PyTorch nn.Fold.
--- ```lua
--- local y = nn.Fold({3, 3}, 2)(nn.Unfold(2)(gp.ones {1, 1, 3, 3}))
--- assert(y[1][1][2][2] == 4 and y[1][1][1][1] == 1)
--- ```
---@param size integer|integer[]
---@param kernel integer|integer[]
---@param opts? nn.FoldOptions
function Fold:init(size, kernel, opts)
  self.size = window.numbers("nn.Fold", "size", size, 2, 1)
  set_up(self, "nn.Fold", kernel, opts)
end

local function check_columns(self, shape, many)
  local taps = self.kernel[1] * self.kernel[2]
  local fits = #shape == 3 and shape[2] % taps == 0 and many[1] > 0 and many[2] > 0
    and shape[3] == many[1] * many[2]
  if not fits then
    errors.raise_as("shape", "%s: input is %s, expected ?x(multiple of %d)x%d", scope.label(self),
      check.shape_text(shape), taps, math.max(many[1], 0) * math.max(many[2], 0))
  end
end

-- One axis: windows are added up where they were, and the padding goes.
local function lay(self, x, axis, count)
  local d, spec, pad, size = 2 + axis, of_axis(self, axis), self.padding, self.size[axis]
  local reach = math.max(slide.reach(count, spec), pad[2 * axis - 1] + size)
  return slide.lay(x, d, spec, reach):narrow(d, pad[2 * axis - 1] + 1, size)
end

function Fold:forward(x)
  local shape, many = input.tensor(self, x).shape, counts(self, self.size)
  check_columns(self, shape, many)
  local channels = shape[2] // (self.kernel[1] * self.kernel[2])
  x = x:reshape { shape[1], channels, self.kernel[1], self.kernel[2], many[1], many[2] }
    :permute { 1, 2, 3, 5, 4, 6 } -- [N, C, KH, OH, KW, OW]
  return lay(self, lay(self, x, 1, many[1]), 2, many[2])
end

function Fold:describe()
  return ("to %s, %s"):format(window.text(self.size), describe(self))
end

return { Unfold = Unfold, Fold = Fold }
