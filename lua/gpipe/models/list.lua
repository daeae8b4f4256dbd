-- lua/gpipe/models/list.lua - a list of named layers that is built part by part.

local List = {}
List.__index = List

--- An empty list, which nn.Sequential takes.
function List.new() return setmetatable({}, List) end

--- Append a layer under a name; words are joined by "_".
---@param name string|table
---@param layer nn.Module
function List:add(name, layer)
  self[#self + 1] = { type(name) == "table" and table.concat(name, "_") or name, layer }
end

return List
