-- lua/gpipe/nn/layer/image/upsample.lua - `nn.Upsample`: sequences, images and volumes of another
-- size.
--
-- Axes are treated one after the other: along each, new elements are chosen among the old ones, or
-- weighed between neighbours, a product with a matrix of few numbers. Images whose sizes are
-- multiples go through an op.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local image = require "gpipe.nn.layer.image"
local input = require "gpipe.nn.layer.input"
local kernels = require "gpipe.nn.layer.image.kernels"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"
local window = require "gpipe.nn.layer.image.window"

---@class nn.UpsampleOptions
---@field scale? number|number[]
---@field size? integer|integer[]
---@field mode? "nearest"|"nearest-exact"|"linear"|"bilinear"|"trilinear"|"bicubic"
---@field align_corners? boolean

---@class nn.Upsample: nn.Module
local Upsample = class.new("Upsample", Module, true)

-- The axes that a mode is for; none: any number.
local AXES = { linear = 1, bilinear = 2, trilinear = 3, bicubic = 2 }

local OPTIONS = {
  scale = { type = { "number", "table" } },
  size = { type = { "number", "table" } },
  mode = {
    choices = { "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic" },
    default = "nearest",
  },
  align_corners = { type = "boolean", default = false },
}

-- A number for all axes, or a list of one an axis.
local function read_numbers(name, value, fits, wanted)
  if value == nil then return nil end
  local list = type(value) == "table" and value or { value }
  for i = 1, math.max(#list, 1) do
    if not math.type(list[i]) or not fits(list[i]) or #list > 3 then
      window.fail("nn.Upsample", name, value, wanted .. ", or one for each axis")
    end
  end
  return type(value) == "table" and table.move(value, 1, #value, 1, {}) or value
end

local function is_scale(v) return v > 0 and v < math.huge end
local function is_size(v) return math.tointeger(v) and v >= 1 end

local function check_axes(name, value, axes)
  if type(value) == "table" and axes and #value ~= axes then
    window.fail("nn.Upsample", name, value, ("%d numbers, one for each axis"):format(axes))
  end
end

--- Sequences, images or volumes of another size: of the nearest elements, or weighed between the
--- neighbours.
---
--- Shapes: [N, C, L], [N, C, H, W] or [N, C, D, H, W] -> [N, C, size], or the sizes times scale,
--- rounded down. "nearest" and "nearest-exact" (whose centres are those of the elements) take all
--- three, "linear" sequences, "bilinear" and "bicubic" images, "trilinear" volumes. Elements are
--- squares and the corners of both images meet; with align_corners they are points, and those at
--- the corners of both images are the same ones.
--- Errors: neither or both of scale and size; numbers that are not positive; align_corners with
--- nearest elements; when called, another number of axes.
--- Source: PyTorch nn.Upsample.
--- ```lua
--- local y = nn.Upsample{scale = 2, mode = "bilinear"}(gp.ones {1, 2, 4, 5})
--- assert(y.shape[3] == 8 and y.shape[4] == 10)
--- ```
---@param opts nn.UpsampleOptions
function Upsample:init(opts)
  opts = options.check("nn.Upsample", opts, OPTIONS)
  if (opts.scale == nil) == (opts.size == nil) then
    errors.raise("nn.Upsample: %s of scale and size, expected one",
      opts.scale and "both" or "neither")
  end
  self.mode, self.align_corners = opts.mode, opts.align_corners
  if self.align_corners and not AXES[self.mode] then
    check.fail("nn.Upsample", "align_corners", true, ('false where mode is "%s"'):format(self.mode))
  end
  self.scale = read_numbers("scale", opts.scale, is_scale, "a number above 0")
  self.size = read_numbers("size", opts.size, is_size, "an integer of at least 1")
  check_axes("scale", self.scale, AXES[self.mode])
  check_axes("size", self.size, AXES[self.mode])
end

local WANTED = { "?x?x?", "?x?x?x?", "?x?x?x?x?" }

-- How many axes the input has.
local function axes_of(self, shape)
  local axes, list = #shape - 2, self.size or self.scale
  local wanted = AXES[self.mode] or type(list) == "table" and #list
  if axes < 1 or axes > 3 or wanted and axes ~= wanted then
    errors.raise("%s: input is %s, expected %s", scope.label(self), check.shape_text(shape),
      wanted and WANTED[wanted] or table.concat(WANTED, " or "))
  end
  return axes
end

local function at(list, axis) return type(list) == "table" and list[axis] or list end

local function sizes_of(self, shape, axes)
  local size = {}
  for axis = 1, axes do
    size[axis] = at(self.size, axis) or math.floor(shape[2 + axis] * at(self.scale, axis))
    if size[axis] < 1 then
      errors.raise("%s: input is %s, expected at least one element times the scale",
        scope.label(self), check.shape_text(shape))
    end
  end
  return size
end

-- Does the op have these places? It knows images, and goes by the sizes alone.
local function is_by_sizes(self, shape, size)
  if #size ~= 2 or self.align_corners then return false end
  if self.mode ~= "nearest" and self.mode ~= "bilinear" then return false end
  for axis = 1, 2 do
    if self.scale and shape[2 + axis] * at(self.scale, axis) ~= size[axis] then return false end
  end
  return true
end

-- One axis of another size.
local function along(self, x, axis, n, new)
  local d = 2 + axis
  local spec = {
    mode = self.mode, n = n, new = new, corners = self.align_corners,
    step = self.scale and 1 / at(self.scale, axis) or n / new,
  }
  if not AXES[self.mode] then
    return x:index_select(d, beside(x, core.tensor(kernels.nearest(spec), "i64")))
  end
  local weights = beside(x, core.tensor(kernels.weights(spec), "f64"):to(x.dtype)):transpose(1, 2)
  if d == x:dim() then return x:matmul(weights) end
  return x:transpose(d, -1):matmul(weights):transpose(d, -1)
end

function Upsample:forward(x)
  local shape = input.tensor(self, x).shape
  local size = sizes_of(self, shape, axes_of(self, shape))
  if is_by_sizes(self, shape, size) then
    self.axes = 2
    return image.apply(self, core.resample2d, x, { mode = self.mode, size = size })
  end
  for axis = #size, 1, -1 do x = along(self, x, axis, shape[2 + axis], size[axis]) end
  return x
end

local function text(list)
  if type(list) ~= "table" then return ("%g"):format(list) end
  local parts = {}
  for i, number in ipairs(list) do parts[i] = ("%g"):format(number) end
  return table.concat(parts, "x")
end

function Upsample:describe()
  local by = self.size and "to " .. text(self.size) or "by " .. text(self.scale)
  return by .. ", " .. self.mode
end

return Upsample
