-- lua/gpipe/nn/layer/image/pad.lua - the layers that put elements around sequences, images and
-- volumes.
--
-- nn.ZeroPad2d and nn.ReflectionPad2d have an op, the others are made of `t:pad`.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local image = require "gpipe.nn.layer.image"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"
local window = require "gpipe.nn.layer.image.window"

local pads = {}

-- ---- by an op --------------------------------------------------------------------------------

local NOT_NEGATIVE = "an integer of at least 0, {height, width}, or {left, right, top, bottom} of "
  .. "such"

local function init_pad(self, who, padding)
  local list = type(padding) == "table" and padding or { padding, padding }
  for i = 1, #list do
    local number = math.type(list[i]) and math.tointeger(list[i])
    if not number or number < 0 then window.fail(who, "padding", padding, NOT_NEGATIVE) end
  end
  if #list == 2 then
    self.padding = window.padding(who, list, 2)
  elseif #list == 4 then -- PyTorch's order, the last dimension first
    self.padding = window.padding(who, { list[3], list[4], list[1], list[2] }, 2)
  else
    window.fail(who, "padding", padding, NOT_NEGATIVE)
  end
end

local function describe(self) return table.concat(self.padding, ", ") end

---@class nn.ZeroPad2d: nn.Module
local ZeroPad2d = class.new("ZeroPad2d", Module, true)
pads.ZeroPad2d = ZeroPad2d
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
pads.ReflectionPad2d = ReflectionPad2d
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

-- ---- by t:pad --------------------------------------------------------------------------------

local WANTED = {
  "an integer, or {left, right}", "an integer, or {left, right, top, bottom}",
  "an integer, or {left, right, top, bottom, front, back}",
}
local SHAPES = { "?x?x?", "?x?x?x?", "?x?x?x?x?" }

local function read(who, padding, axes)
  local list = {}
  for i = 1, 2 * axes do
    local value = padding
    if type(padding) == "table" then value = padding[i] end
    list[i] = math.type(value) and math.tointeger(value)
    if not list[i] or type(padding) == "table" and #padding ~= 2 * axes then
      window.fail(who, "padding", padding, WANTED[axes])
    end
  end
  return list
end

-- Make a class of padding; with_value: init takes the value of the new elements.
local function padder(name, axes, mode, with_value)
  local made = class.new(name, Module, true)
  function made:init(padding) self.padding = read("nn." .. name, padding, axes) end
  if with_value then
    function made:init(padding, value)
      self.padding = read("nn." .. name, padding, axes)
      self.value = check.number("nn." .. name, "value", value)
    end
  end
  function made:forward(x)
    local shape = input.tensor(self, x).shape
    if #shape ~= axes + 2 then
      errors.raise("%s: input is %s, expected %s", scope.label(self), check.shape_text(shape),
        SHAPES[axes])
    end
    return x:pad(self.padding, mode, self.value)
  end
  function made:describe()
    local text = table.concat(self.padding, ", ")
    return with_value and ("%s; %g"):format(text, self.value) or text
  end
  return made
end

--- `nn.ConstantPad1d(padding, value)`: a number around sequences [N, C, L]; paddings are one
--- integer or {left, right}, negative ones take elements away.
--- ```lua
--- assert(nn.ConstantPad1d(1, 7)(gp.ones {1, 1, 2})[1][1][1] == 7)
--- ```
---@class nn.ConstantPad1d: nn.Module
pads.ConstantPad1d = padder("ConstantPad1d", 1, "constant", true)

--- `nn.ConstantPad2d(padding, value)`: a number around images [N, C, H, W]; paddings are one
--- integer or {left, right, top, bottom}, negative ones take elements away.
--- ```lua
--- assert(nn.ConstantPad2d(1, 7)(gp.ones {1, 1, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ConstantPad2d: nn.Module
pads.ConstantPad2d = padder("ConstantPad2d", 2, "constant", true)

--- `nn.ZeroPad1d(padding)`: nn.ConstantPad1d of zeros.
--- ```lua
--- assert(nn.ZeroPad1d({2, 0})(gp.ones {1, 1, 2})[1][1][1] == 0)
--- ```
---@class nn.ZeroPad1d: nn.Module
pads.ZeroPad1d = padder("ZeroPad1d", 1, "constant")

--- `nn.ReflectionPad1d(padding)`: sequences mirrored at their ends, which are not repeated.
--- ```lua
--- assert(nn.ReflectionPad1d(1)(gp.arange(1, 3):reshape(1, 1, 3))[1][1][1] == 2)
--- ```
---@class nn.ReflectionPad1d: nn.Module
pads.ReflectionPad1d = padder("ReflectionPad1d", 1, "reflect")

--- `nn.ReplicationPad1d(padding)`: sequences whose ends are repeated.
--- ```lua
--- assert(nn.ReplicationPad1d(2)(gp.ones {1, 1, 3}).shape[3] == 7)
--- ```
---@class nn.ReplicationPad1d: nn.Module
pads.ReplicationPad1d = padder("ReplicationPad1d", 1, "replicate")

--- `nn.ReplicationPad2d(padding)`: images whose edges are repeated.
--- ```lua
--- assert(nn.ReplicationPad2d(1)(gp.ones {1, 1, 3, 3}).shape[4] == 5)
--- ```
---@class nn.ReplicationPad2d: nn.Module
pads.ReplicationPad2d = padder("ReplicationPad2d", 2, "replicate")

--- `nn.CircularPad2d(padding)`: images that go on at the other side.
--- ```lua
--- assert(nn.CircularPad2d(1)(gp.ones {1, 1, 3, 3}).shape[4] == 5)
--- ```
---@class nn.CircularPad2d: nn.Module
pads.CircularPad2d = padder("CircularPad2d", 2, "circular")

--- `nn.ConstantPad3d(padding, value)`: a number around volumes [N, C, D, H, W]; paddings are one
--- integer or {left, right, top, bottom, front, back}, negative ones take elements away.
--- ```lua
--- assert(nn.ConstantPad3d(1, 7)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ConstantPad3d: nn.Module
pads.ConstantPad3d = padder("ConstantPad3d", 3, "constant", true)

--- `nn.ZeroPad3d(padding)`: nn.ConstantPad3d of zeros.
--- ```lua
--- assert(nn.ZeroPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[5] == 4)
--- ```
---@class nn.ZeroPad3d: nn.Module
pads.ZeroPad3d = padder("ZeroPad3d", 3, "constant")

--- `nn.ReflectionPad3d(padding)`: volumes mirrored at their faces, which are not repeated.
--- ```lua
--- assert(nn.ReflectionPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ReflectionPad3d: nn.Module
pads.ReflectionPad3d = padder("ReflectionPad3d", 3, "reflect")

--- `nn.ReplicationPad3d(padding)`: volumes whose faces are repeated.
--- ```lua
--- assert(nn.ReplicationPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ReplicationPad3d: nn.Module
pads.ReplicationPad3d = padder("ReplicationPad3d", 3, "replicate")

--- `nn.CircularPad1d(padding)`: sequences that go on at the other end.
--- ```lua
--- assert(nn.CircularPad1d(1)(gp.arange(1, 3):reshape(1, 1, 3))[1][1][1] == 3)
--- ```
---@class nn.CircularPad1d: nn.Module
pads.CircularPad1d = padder("CircularPad1d", 1, "circular")

--- `nn.CircularPad3d(padding)`: volumes that go on at the other side.
--- ```lua
--- assert(nn.CircularPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.CircularPad3d: nn.Module
pads.CircularPad3d = padder("CircularPad3d", 3, "circular")

return pads
