-- lua/gpipe/nn/layer/lambda.lua - `nn.Lambda`: a function of tensors as a layer.

local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"

---@class nn.Lambda: nn.Module
---@field fn function
local Lambda = class.new("Lambda", Module, true)

--- A layer that calls a function of tensors. It is traced as any forward is: once for each shape,
--- with tensor methods only. Parameters that the function uses are not found; to own parameters,
--- write a class (`nn.class`).
---
--- Shapes: those of the function, which may take and return several tensors.
--- Errors: anything but a function; when called, more tensors than the function takes.
--- ```lua
--- local double = nn.Lambda(function(x) return x * 2 end)
--- assert(double(gp.ones {2})[1] == 2)
--- ```
---@param fn fun(...: gpipe.Tensor): ...
function Lambda:init(fn)
  if type(fn) ~= "function" then check.fail("nn.Lambda", "fn", fn, "a function of tensors") end
  self.fn = fn
end

function Lambda:forward(...) return self.fn(...) end

Lambda[class.TAKES] = function(self) return self.fn, 0 end

-- Say where the function is defined, because it has no name.
function Lambda:describe()
  local info = debug.getinfo(self.fn, "S")
  if info.what == "C" then return "" end
  return ("%s:%d"):format(info.short_src:match "[^/]*$", info.linedefined)
end

return Lambda
