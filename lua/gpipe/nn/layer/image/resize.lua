-- lua/gpipe/nn/layer/image/resize.lua - `nn.Upsample`, `nn.ZeroPad2d`, `nn.ReflectionPad2d`: images
-- of another size.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local image = require "gpipe.nn.layer.image"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"
local window = require "gpipe.nn.layer.image.window"

-- ---- Upsample --------------------------------------------------------------------------------

---@class nn.UpsampleOptions
---@field scale? number|number[]
---@field size? integer|integer[]
---@field mode? "nearest"|"bilinear"
---@field align_corners? boolean

---@class nn.Upsample: nn.Module
local Upsample = class.new("Upsample", Module, true)
Upsample.axes = 2

local OPTIONS = {
  scale = { type = { "number", "table" } },
  size = { type = { "number", "table" } },
  mode = { choices = { "nearest", "bilinear" }, default = "nearest" },
  align_corners = { type = "boolean", default = false },
}

local function read_scale(value)
  local list = type(value) == "table" and value or { value, value }
  for axis = 1, 2 do
    local factor = list[axis]
    if #list ~= 2 or not math.type(factor) or not (factor > 0 and factor < math.huge) then
      check.fail("nn.Upsample", "scale", value, "a number above 0, or {height, width}")
    end
  end
  return { list[1], list[2] }
end

-- Where the new points of a line of n lie among the old ones, from 0: corners on corners, or apart
-- by 1 / scale. (Where the sizes are multiples of one another the op does it.)
local function places_of(self, axis, n, new)
  local places = {}
  for i = 1, new do
    local at
    if self.align_corners then
      at = new > 1 and (i - 1) * (n - 1) / (new - 1) or 0
    elseif self.mode == "nearest" then
      at = math.floor((i - 1) / self.scale[axis])
    else
      at = math.max((i - 0.5) / self.scale[axis] - 0.5, 0)
    end
    places[i] = math.min(at, n - 1)
  end
  return places
end

-- What every new point is made of, [new, old]: two neighbours.
local function weights(places, n)
  local rows = {}
  for i, at in ipairs(places) do
    local row, low = {}, math.floor(at)
    for k = 1, n do row[k] = 0 end
    row[low + 1] = 1 - (at - low)
    if at > low then row[low + 2] = at - low end
    rows[i] = row
  end
  return core.tensor(rows, "f64")
end

-- Both axes are products with such matrices, or chosen one by one.
local function by_places(self, x, size)
  local lines = {}
  for axis = 1, 2 do lines[axis] = places_of(self, axis, x:size(2 + axis), size[axis]) end
  if self.mode == "nearest" then
    for axis, places in ipairs(lines) do
      for i, at in ipairs(places) do places[i] = math.tointeger(at) + 1 end
      x = x:index_select(2 + axis, beside(x, core.tensor(places, "i64")))
    end
    return x
  end
  local high = beside(x, weights(lines[1], x:size(3)):to(x.dtype))
  local wide = beside(x, weights(lines[2], x:size(4)):to(x.dtype))
  return high:matmul(x:matmul(wide:transpose(1, 2)))
end

-- Does the op, which goes by the sizes alone, have these places?
local function is_by_sizes(self, shape, size)
  if self.align_corners then return false end
  for axis = 1, 2 do
    if self.scale and shape[2 + axis] * self.scale[axis] ~= size[axis] then return false end
  end
  return true
end

--- Images of another size: of the nearest elements, or weighed between the four around.
---
--- Shapes: [N, C, H, W] -> [N, C, size], or [N, C, floor(H scale), floor(W scale)]. Elements are
--- squares and the corners of both images meet; with align_corners they are points, and those at
--- the corners of both images are the same ones (bilinear alone).
--- Errors: neither or both of scale and size; numbers that are not positive; align_corners with
--- mode "nearest".
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
  if self.align_corners and self.mode ~= "bilinear" then
    check.fail("nn.Upsample", "align_corners", true, 'false where mode is "nearest"')
  end
  if opts.scale then self.scale = read_scale(opts.scale) end
  if opts.size then self.size = window.numbers("nn.Upsample", "size", opts.size, 2, 1) end
end

function Upsample:forward(x)
  local shape, size = input.tensor(self, x).shape, self.size
  if not size and #shape == 4 then
    size = { math.floor(shape[3] * self.scale[1]), math.floor(shape[4] * self.scale[2]) }
    if size[1] < 1 or size[2] < 1 then
      errors.raise("%s: input is %s, expected at least one element times the scale",
        scope.label(self), check.shape_text(shape))
    end
  end
  if #shape == 4 and not is_by_sizes(self, shape, size) then return by_places(self, x, size) end
  return image.apply(self, core.resample2d, x, { mode = self.mode, size = size })
end

function Upsample:describe()
  local by = self.size and "to " .. window.text(self.size)
    or ("by %gx%g"):format(self.scale[1], self.scale[2])
  return by .. ", " .. self.mode
end

-- ---- padding ---------------------------------------------------------------------------------

local function init_pad(self, who, padding)
  local four = type(padding) == "table" and #padding == 4
  local all = four and padding or window.padding(who, padding, 2)
  -- PyTorch's order, the last dimension first.
  self.padding = four and window.padding(who, { all[3], all[4], all[1], all[2] }, 2) or all
end

local function describe(self) return table.concat(self.padding, ", ") end

---@class nn.ZeroPad2d: nn.Module
local ZeroPad2d = class.new("ZeroPad2d", Module, true)
ZeroPad2d.axes, ZeroPad2d.describe = 2, describe

--- Zeros around images.
---
--- Shapes: [N, C, H, W] -> [N, C, H + top + bottom, W + left + right].
--- Errors: paddings that are no integers of at least 0.
--- Source: PyTorch nn.ZeroPad2d, and its order.
--- ```lua
--- local y = nn.ZeroPad2d({1, 2, 0, 0})(gp.ones {1, 1, 4, 4})
--- assert(y.shape[3] == 4 and y.shape[4] == 7)
--- ```
---@param padding integer|integer[] of all sides, {height, width}, or {left, right, top, bottom}
function ZeroPad2d:init(padding) init_pad(self, "nn.ZeroPad2d", padding) end

function ZeroPad2d:forward(x)
  return image.apply(self, core.resample2d, x, { mode = "zero", padding = self.padding })
end

---@class nn.ReflectionPad2d: nn.Module
local ReflectionPad2d = class.new("ReflectionPad2d", Module, true)
ReflectionPad2d.axes, ReflectionPad2d.describe = 2, describe

--- Images mirrored at their edges; the edge itself is not repeated.
---
--- Shapes: [N, C, H, W] -> [N, C, H + top + bottom, W + left + right].
--- Errors: paddings that are no integers of at least 0; when called, padding that is not less than
--- the image.
--- Source: PyTorch nn.ReflectionPad2d, and its order.
--- ```lua
--- local y = nn.ReflectionPad2d(2)(gp.ones {1, 1, 4, 4})
--- assert(y.shape[3] == 8)
--- ```
---@param padding integer|integer[] of all sides, {height, width}, or {left, right, top, bottom}
function ReflectionPad2d:init(padding) init_pad(self, "nn.ReflectionPad2d", padding) end

function ReflectionPad2d:forward(x)
  return image.apply(self, core.resample2d, x, { mode = "reflect", padding = self.padding })
end

return { Upsample = Upsample, ZeroPad2d = ZeroPad2d, ReflectionPad2d = ReflectionPad2d }
