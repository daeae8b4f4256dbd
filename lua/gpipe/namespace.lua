-- lua/gpipe/namespace.lua - strict tables of names such as gp.nn: a missing name is an error that
-- suggests the probable one, and printing the table lists its names.

local errors = require "gpipe.errors"
local show = require "gpipe.show"

local function names_of(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- Make a table of names strict, and readable when it is printed.
---@param title string as users write it: "gp.optim"
---@param t table<string, any>
---@param ways? table<string, string> counterparts of names from other libraries
---@return table t
return function(title, t, ways)
  local meta = { __name = title }
  function meta.__index(_, key)
    if type(key) ~= "string" then return nil end
    if ways and ways[key] then
      errors.raise("%s: there is no '%s' (%s)", title, key, ways[key])
    end
    errors.raise("%s: there is no '%s'%s", title, errors.name(key),
      errors.hint(key, names_of(t), "names"))
  end
  function meta.__tostring() return show.names(title, names_of(t)) end
  return setmetatable(t, meta)
end
