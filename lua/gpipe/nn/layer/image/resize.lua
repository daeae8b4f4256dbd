-- lua/gpipe/nn/layer/image/resize.lua - `nn.Upsample`, `nn.ZeroPad2d`, `nn.ReflectionPad2d`: images
-- of another size.

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

---@class nn.Upsample: nn.Module
local Upsample = class.new("Upsample", Module, true)
Upsample.axes = 2

local OPTIONS = {
  scale = { type = { "number", "table" } },
  size = { type = { "number", "table" } },
  mode = { choices = { "nearest", "bilinear" }, default = "nearest" },
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

--- Images of another size: of the nearest elements, or weighed between the four around.
---
--- Shapes: [N, C, H, W] -> [N, C, size], or [N, C, floor(H scale), floor(W scale)]. Elements are
--- squares and the corners of both images meet (PyTorch's align_corners = false).
--- Errors: neither or both of scale and size; numbers that are not positive.
--- Source: PyTorch nn.Upsample.
--- ```lua
--- local y = nn.Upsample{scale = 2, mode = "bilinear"}(gp.ones {1, 2, 4, 5})
--- assert(y.shape[3] == 8 and y.shape[4] == 10)
--- ```
---@param opts {scale?: number|number[], size?: integer|integer[], mode?: "nearest"|"bilinear"}
function Upsample:init(opts)
  opts = options.check("nn.Upsample", opts, OPTIONS)
  if (opts.scale == nil) == (opts.size == nil) then
    errors.raise("nn.Upsample: %s of scale and size, expected one",
      opts.scale and "both" or "neither")
  end
  self.mode = opts.mode
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
