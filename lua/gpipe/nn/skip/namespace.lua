-- lua/gpipe/nn/skip/namespace.lua - `nn.namespace()`: a separate namespace for the names of skips.
--
-- A block that stashes "identity" can occur in a model many times: each one is isolated in its own
-- namespace, so the names do not clash. A namespace equals only itself.

local Namespace = { __name = "gpipe.nn.Namespace" }
local made = 0

function Namespace.__tostring(space) return "namespace " .. space.number end

local namespace = {}

--- Make a namespace for `module:isolate(ns)`.
--- ```lua
--- local ns = nn.namespace()
--- local block = nn.Sequential {nn.Stash("x"), nn.ReLU(), nn.Pop("x", "add")}:isolate(ns)
--- assert(block(gp.ones {2}):sum():item() == 4)
--- ```
---@return nn.Namespace
function namespace.new()
  made = made + 1
  return setmetatable({ number = made }, Namespace)
end

--- Whether a value is a namespace.
---@param value any
---@return boolean
function namespace.is(value) return getmetatable(value) == Namespace end

return namespace
