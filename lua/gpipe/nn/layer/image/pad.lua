-- lua/gpipe/nn/layer/image/pad.lua - `nn.ZeroPad2d` and `nn.ReflectionPad2d`, which have an op; the
-- other layers that put elements around are in border.lua.

local core = require "gpipe.core"
local Module = require "gpipe.nn.module"
local class = require "gpipe.nn.class"
local image = require "gpipe.nn.layer.image"
local window = require "gpipe.nn.layer.image.window"

local WANTED = "an integer of at least 0, {height, width}, or {left, right, top, bottom} of such"

local function init_pad(self, who, padding)
  local list = type(padding) == "table" and padding or { padding, padding }
  for i = 1, #list do
    local number = math.type(list[i]) and math.tointeger(list[i])
    if not number or number < 0 then window.fail(who, "padding", padding, WANTED) end
  end
  if #list == 2 then
    self.padding = window.padding(who, list, 2)
  elseif #list == 4 then -- PyTorch's order, the last dimension first
    self.padding = window.padding(who, { list[3], list[4], list[1], list[2] }, 2)
  else
    window.fail(who, "padding", padding, WANTED)
  end
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

return { ZeroPad2d = ZeroPad2d, ReflectionPad2d = ReflectionPad2d }
