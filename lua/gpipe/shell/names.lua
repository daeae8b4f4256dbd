-- lua/gpipe/shell/names.lua - finds the value of a name typed at the prompt, and the names in a
-- value.
--
-- A lookup must run no code of the user, so no metamethod is called. If the __index of a userdata
-- is a function, the names are those of the tables that the function holds.

local names = {}

local DEEP = 20 -- length of a chain of tables through __index

local function each_held(index, see)
  for i = 1, math.huge do
    local name, held = debug.getupvalue(index, i)
    if not name then return end
    if type(held) == "table" and held ~= _G and see(held) then return true end
  end
end

-- The fields that one of our objects makes on demand (meta.fields: a function of the object), as a
-- table by name; nil if it has none.
local function made_fields(value, meta)
  local fields = meta and rawget(meta, "fields")
  local kind = meta and tostring(rawget(meta, "__name")) or ""
  local own = kind:find "^gpipe%." or kind:find "^nn%."
  if not own or type(fields) ~= "function" then return nil end
  local good, found = pcall(fields, value)
  return good and type(found) == "table" and found or nil
end

-- Call see(table) for each table that is searched for the fields of a value, nearest first.
local function each_table(value, see)
  for _ = 1, DEEP do
    if type(value) == "table" and see(value) then return true end
    local meta = debug.getmetatable(value)
    local made = made_fields(value, meta)
    if made and see(made) then return true end
    -- the methods of modules, pipelines, optimizers, data sets
    local methods = type(value) == "table" and meta and rawget(meta, "methods")
    if type(methods) == "table" and each_table(methods, see) then return true end
    local index = meta and rawget(meta, "__index")
    if type(value) == "userdata" and type(index) == "function" then
      return each_held(index, see)
    end
    if type(index) ~= "table" then return end
    value = index
  end
end

-- The parts that gp loads at first use, by name.
local function parts_of(value)
  local meta = type(value) == "table" and debug.getmetatable(value)
  local own = meta and tostring(rawget(meta, "__name")):match "^gpipe[%l.]*$"
  return own and rawget(meta, "parts") or {}
end

--- A field of a value; nil if there is none.
---@param value any
---@param key any
---@return any
function names.field(value, key)
  if parts_of(value)[key] then return value[key] end
  local found
  each_table(value, function(t)
    found = rawget(t, key)
    return found ~= nil
  end)
  return found
end

--- The value of a path such as `gp.nn.Linear`, `pipe:step` or `model[2].weight`.
---@param path string
---@return any value nil if there is no such thing
function names.resolve(path)
  local value = _G
  for name in path:gmatch "[%w_]+" do
    local at = math.tointeger(tonumber(name))
    if at and type(value) ~= "table" then return nil end
    value = at and rawget(value, at) or not at and names.field(value, name) or nil
    if value == nil then return nil end
  end
  return value
end

--- The sorted names of a value's fields, as far as they are identifiers.
---@param value any
---@param methods? boolean only names of functions
---@return string[]
function names.list(value, methods)
  local list, seen = {}, {}
  each_table(value, function(t)
    for key, held in next, t do
      local callable = type(held) == "function" or debug.getmetatable(held)
        and rawget(debug.getmetatable(held), "__call") ~= nil
      if type(key) == "string" and key:find "^[%a_][%w_]*$" and not key:find "^__" and not seen[key]
        and (callable or not methods) then
        seen[key] = true
        list[#list + 1] = key
      end
    end
  end)
  for key in pairs(parts_of(value)) do
    if not seen[key] then list[#list + 1] = key end
    seen[key] = true
  end
  table.sort(list)
  return list
end

return names
