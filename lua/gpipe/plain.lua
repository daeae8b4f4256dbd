-- lua/gpipe/plain.lua - which tables are plain: those of a script, and ours that only print
-- themselves (shapes, figures).

local PRINTED = { ["gpipe.Shape"] = true, ["gpipe.Readable"] = true }

---@param value any
---@return boolean
return function(value)
  if type(value) ~= "table" then return false end
  local meta = getmetatable(value)
  return meta == nil or type(meta) == "table" and PRINTED[rawget(meta, "__name")] == true
end
