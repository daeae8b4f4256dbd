-- lua/gpipe/train/part.lua - the base of the small objects of gp.train.
--
-- Each object is a table of plain fields, so its state is a copy of some of them, which gp.run's
-- checkpoints save (`state = {stop = stop}`). A misspelt field name is an error, as everywhere.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local part = {}

---@class gpipe.PartClass
---@field who string "gp.train.best", as errors name it
---@field methods table
---@field call? string the method that a call of the object runs
---@field fields table<string, gpipe.OptionRule> the fields in a state
---@field may? table<string, true> fields of objects that may be nil

local function names_of(class)
  local names = {}
  for _, list in ipairs { class.methods, class.fields, class.may or {} } do
    for name in pairs(list) do names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

local function copy(value)
  return type(value) == "table" and table.move(value, 1, #value, 1, {}) or value
end

-- Add state and restore; a part with more than plain fields defines its own.
local function add_state(class)
  local methods = class.methods
  if methods.state then return end

  --- The state, as a plain table for gp.save and the checkpoints of gp.run.
  --- ```lua
  --- local best = gp.train.best()
  --- best(2.5, 100)
  --- assert(best:state().step == 100)
  --- ```
  ---@return table
  function methods:state()
    local state = {}
    for name in pairs(class.fields) do state[name] = copy(self[name]) end
    return state
  end

  --- Continue from a state, as if training had never stopped.
  --- Errors: something that is not such a state.
  --- ```lua
  --- local best = gp.train.best()
  --- best:restore {value = 2.5, step = 100}
  --- assert(not best(3))
  --- ```
  ---@param state table
  ---@return table self
  function methods:restore(state)
    local checked = options.check(class.who .. ": restore", state, class.fields)
    for name in pairs(class.fields) do self[name] = copy(checked[name]) end
    return self
  end
end

--- Make a class of parts; returns a function that makes an object from its fields.
---@param class gpipe.PartClass
---@return fun(fields: table): table
function part.class(class)
  add_state(class)
  local meta = { __name = class.who, methods = class.methods }
  function meta.__index(_, key)
    local method = class.methods[key]
    if method then return method end
    if class.fields[key] or class.may and class.may[key] then return nil end
    errors.refuse_near(class.who, key, names_of(class))
  end
  if class.call then
    function meta.__call(object, ...) return class.methods[class.call](object, ...) end
  end
  return function(fields) return setmetatable(fields, meta) end
end

-- ---- values ------------------------------------------------------------------------------------

--- Raise if a measure is not a number.
---@param who string
---@param name string
---@param value any
---@return number
function part.number(who, name, value)
  if type(value) ~= "number" then
    errors.raise("%s: %s is %s, expected a number", who, name, errors.show(value))
  end
  return value
end

---@param value number
---@return boolean
function part.is_finite(value)
  return value == value and value ~= math.huge and value ~= -math.huge
end

--- The rules of options that several parts share.
part.MODE = { choices = { "min", "max" }, default = "min" }
part.COUNT = { type = "integer", min = 0, required = true }

return part
