-- lua/gpipe/pipeline/plan/traced.lua - identifies the functions that a plan was traced from.
--
-- A plan records what `forward` of each module did. If a script redefines it (in a class or in a
-- module), old and new plans would be used side by side, depending on the shape. So the functions
-- are part of a plan's key.

local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"

local traced = {}

---@class gpipe.TracedForward
---@field module nn.Module
---@field forward function as it was when the pipeline was made

local function add(list, module)
  if class.of(module) then list[#list + 1] = { module = module, forward = module.forward } end
end

--- The current functions of a model, of its modules and of its loss.
---@param model nn.Module
---@param loss any
---@return gpipe.TracedForward[]
function traced.functions(model, loss)
  local list = {}
  add(list, model)
  attributes.walk(model, function(_, value, kind)
    if kind == "module" then add(list, value) end
  end)
  add(list, loss)
  return list
end

--- "" while all functions are the original ones, else a key that says which have changed.
---@param list gpipe.TracedForward[]
---@return string
function traced.key(list)
  local changed
  for i, entry in ipairs(list) do
    local now = entry.module.forward
    if now ~= entry.forward then
      changed = changed or {}
      changed[#changed + 1] = ("%d:%p"):format(i, now)
    end
  end
  return changed and table.concat(changed, " ") or ""
end

return traced
