-- lua/gpipe/nn/container/residual.lua - `nn.Residual`: y = x + body(x).
-- Source: He et al. 2016.

local errors = require "gpipe.errors"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

---@class nn.Residual: nn.Module
---@field body nn.Module
local Residual = class.new("Residual", Module, true)

--- Add a module's output to its input.
---
--- Shapes: those of the body, whose output must have the shape of its input.
--- Errors: anything but one module (put several in a Sequential).
--- ```lua
--- local layer = nn.Residual(nn.Sequential {nn.LayerNorm(8), nn.Linear(8, 8)})
--- local y = layer(gp.randn {2, 8})
--- ```
---@param body nn.Module
function Residual:init(body, ...)
  if type(body) == "table" and not class.of(body) and not class.info(body) then
    check.fail("nn.Residual", "body", body, "a module (several go into a Sequential)")
  end
  check.module("nn.Residual", "body", body)
  if select("#", ...) > 0 then
    errors.raise("nn.Residual: there are %d arguments, expected one module (several go into a "
      .. "Sequential)", 1 + select("#", ...))
  end
  self.body = body
end

function Residual:forward(x)
  local y = self.body(input.tensor(self, x))
  if getmetatable(y) ~= "gpipe.Tensor" then
    errors.raise("%s: the body (%s) returned %s, expected a tensor", scope.label(self),
      scope.describe(self.body), errors.show(y))
  end
  return x + y
end

return Residual
