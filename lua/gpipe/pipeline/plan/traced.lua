-- lua/gpipe/pipeline/plan/traced.lua - which functions a plan was traced from.
--
-- A plan records what `forward` of each module did. Where a script defines it anew (a class's, or a
-- module's own), plans of the old one would go on beside plans of the new one, shape by shape: so
-- plans are told apart by the functions, too.

local attributes = require "gpipe.nn.attributes"
local class = require "gpipe.nn.class"

local traced = {}

---@class gpipe.TracedForward
---@field module nn.Module
---@field forward function as it was when the pipeline was made

local function add(list, module)
  if class.of(module) then list[#list + 1] = { module = module, forward = module.forward } end
end

--- The functions of a model, its modules and its loss, as they are now.
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

--- "" while all functions are those of the beginning, else a name for which are others.
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
