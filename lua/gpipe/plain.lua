-- lua/gpipe/plain.lua - says whether a table is plain: a script's own, or one of ours that only
-- prints itself (shapes, figures).

local PRINTED = { ["gpipe.Shape"] = true, ["gpipe.Readable"] = true }

---@param value any
---@return boolean
return function(value)
  if type(value) ~= "table" then return false end
  local meta = getmetatable(value)
  return meta == nil or type(meta) == "table" and PRINTED[rawget(meta, "__name")] == true
end
