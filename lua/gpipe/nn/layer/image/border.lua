-- lua/gpipe/nn/layer/image/border.lua - the other layers that put elements around images and
-- sequences, made of `t:pad`. (nn.ZeroPad2d and nn.ReflectionPad2d have an op: pad.lua.)

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"
local window = require "gpipe.nn.layer.image.window"

local border = {}

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

-- A class of padding; with_value: init takes what is put there.
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
border.ConstantPad1d = padder("ConstantPad1d", 1, "constant", true)

--- `nn.ConstantPad2d(padding, value)`: a number around images [N, C, H, W]; paddings are one
--- integer or {left, right, top, bottom}, negative ones take elements away.
--- ```lua
--- assert(nn.ConstantPad2d(1, 7)(gp.ones {1, 1, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ConstantPad2d: nn.Module
border.ConstantPad2d = padder("ConstantPad2d", 2, "constant", true)

--- `nn.ZeroPad1d(padding)`: nn.ConstantPad1d of zeros.
--- ```lua
--- assert(nn.ZeroPad1d({2, 0})(gp.ones {1, 1, 2})[1][1][1] == 0)
--- ```
---@class nn.ZeroPad1d: nn.Module
border.ZeroPad1d = padder("ZeroPad1d", 1, "constant")

--- `nn.ReflectionPad1d(padding)`: sequences mirrored at their ends, which are not repeated.
--- ```lua
--- assert(nn.ReflectionPad1d(1)(gp.arange(1, 3):reshape(1, 1, 3))[1][1][1] == 2)
--- ```
---@class nn.ReflectionPad1d: nn.Module
border.ReflectionPad1d = padder("ReflectionPad1d", 1, "reflect")

--- `nn.ReplicationPad1d(padding)`: sequences whose ends are repeated.
--- ```lua
--- assert(nn.ReplicationPad1d(2)(gp.ones {1, 1, 3}).shape[3] == 7)
--- ```
---@class nn.ReplicationPad1d: nn.Module
border.ReplicationPad1d = padder("ReplicationPad1d", 1, "replicate")

--- `nn.ReplicationPad2d(padding)`: images whose edges are repeated.
--- ```lua
--- assert(nn.ReplicationPad2d(1)(gp.ones {1, 1, 3, 3}).shape[4] == 5)
--- ```
---@class nn.ReplicationPad2d: nn.Module
border.ReplicationPad2d = padder("ReplicationPad2d", 2, "replicate")

--- `nn.CircularPad2d(padding)`: images that go on at the other side.
--- ```lua
--- assert(nn.CircularPad2d(1)(gp.ones {1, 1, 3, 3}).shape[4] == 5)
--- ```
---@class nn.CircularPad2d: nn.Module
border.CircularPad2d = padder("CircularPad2d", 2, "circular")

--- `nn.ConstantPad3d(padding, value)`: a number around volumes [N, C, D, H, W]; paddings are one
--- integer or {left, right, top, bottom, front, back}, negative ones take elements away.
--- ```lua
--- assert(nn.ConstantPad3d(1, 7)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ConstantPad3d: nn.Module
border.ConstantPad3d = padder("ConstantPad3d", 3, "constant", true)

--- `nn.ZeroPad3d(padding)`: nn.ConstantPad3d of zeros.
--- ```lua
--- assert(nn.ZeroPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[5] == 4)
--- ```
---@class nn.ZeroPad3d: nn.Module
border.ZeroPad3d = padder("ZeroPad3d", 3, "constant")

--- `nn.ReflectionPad3d(padding)`: volumes mirrored at their faces, which are not repeated.
--- ```lua
--- assert(nn.ReflectionPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ReflectionPad3d: nn.Module
border.ReflectionPad3d = padder("ReflectionPad3d", 3, "reflect")

--- `nn.ReplicationPad3d(padding)`: volumes whose faces are repeated.
--- ```lua
--- assert(nn.ReplicationPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.ReplicationPad3d: nn.Module
border.ReplicationPad3d = padder("ReplicationPad3d", 3, "replicate")

--- `nn.CircularPad1d(padding)`: sequences that go on at the other end.
--- ```lua
--- assert(nn.CircularPad1d(1)(gp.arange(1, 3):reshape(1, 1, 3))[1][1][1] == 3)
--- ```
---@class nn.CircularPad1d: nn.Module
border.CircularPad1d = padder("CircularPad1d", 1, "circular")

--- `nn.CircularPad3d(padding)`: volumes that go on at the other side.
--- ```lua
--- assert(nn.CircularPad3d(1)(gp.ones {1, 1, 2, 2, 2}).shape[3] == 4)
--- ```
---@class nn.CircularPad3d: nn.Module
border.CircularPad3d = padder("CircularPad3d", 3, "circular")

return border
