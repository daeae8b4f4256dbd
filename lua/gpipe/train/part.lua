-- lua/gpipe/train/part.lua - what the small objects of gp.train have in common.
--
-- Each is a table of plain fields, so that its state is a copy of some of them: what gp.run's
-- checkpoints carry (`state = {stop = stop}`). A name that is nearly a field's is an error, as
-- everywhere.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local part = {}

---@class gpipe.PartClass
---@field who string "gp.train.best", as errors name it
---@field methods table
---@field call? string the method that calling the object means
---@field fields table<string, gpipe.OptionRule> what a state holds
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

-- A part with more than plain fields has such methods of its own.
local function add_state(class)
  local methods = class.methods
  if methods.state then return end

  --- What it remembers, as a plain table: what gp.save and the checkpoints of gp.run take.
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

  --- Go on from a state, as if it had never stopped.
  --- Errors: what is no such state.
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

--- Make a class of parts; returns what makes an object of its fields.
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

--- Raise where a measure is no number.
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

--- Rules of options that several parts have.
part.MODE = { choices = { "min", "max" }, default = "min" }
part.COUNT = { type = "integer", min = 0, required = true }

return part
