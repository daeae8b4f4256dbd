-- lua/gpipe/pipeline/areas/held.lua - what a device of a pipeline holds already, by area.
--
-- core:held lists areas and, beside them, totals of other kinds.

local held = {}

local APART = { measured = true, shared = true, host = true } -- no areas

--- The areas among what core:held(d) lists, in bytes.
---@param all table<string, integer>
---@return table<string, integer>
function held.areas(all)
  local areas = {}
  for name, bytes in pairs(all) do
    if not APART[name] then areas[name] = bytes end
  end
  return areas
end

return held
