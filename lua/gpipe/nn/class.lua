-- lua/gpipe/nn/class.lua - `nn.class`: classes whose instances remember the order of assignments.
--
-- A class is a callable table; calling it makes an instance and runs `init`. Parameters, buffers
-- and sub-modules are found in the order of the first assignment to each name, because
-- `parameters()` and files use that order. Our own fields have private keys beside the user's
-- names, so that no attribute of a user's class can collide with them.

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local class = {}

-- Private keys of instances.
class.ORDER = {} -- list of attribute names in order of first assignment
class.KNOWN = {} -- [name] = true: those that are in that list
class.PATHS = {} -- cache of nn/scope.lua: module -> its path from here
class.MODE = {}  -- "train" or "eval"
class.SKIPS = {} -- nn.Skips: what it stashes and pops; false for most
class.TAKES = {} -- of classes: function(self) -> the function whose parameters the inputs are, and
                 -- how many of those are not inputs; nn/arity.lua
class.SPACES = {} -- [name of a skip] = namespace, where isolate() gave it one

-- The information about each class and each instance metatable.
local of_class = setmetatable({}, { __mode = "k" }) ---@type table<table, nn.ClassInfo>
local of_meta = setmetatable({}, { __mode = "k" })  ---@type table<table, nn.ClassInfo>

---@class nn.ClassInfo
---@field name string "Linear"
---@field shown string "nn.Linear" for ours, "Gate" for a user's
---@field builtin boolean
---@field class table
---@field base? nn.ClassInfo
---@field skips? nn.Skips what every instance stashes and pops
---@field meta table of the instances

-- ---- class information -----------------------------------------------------------------------

--- The class of a module; nil for any other value.
---@param value any
---@return nn.ClassInfo?
function class.of(value)
  return type(value) == "table" and of_meta[getmetatable(value)] or nil
end

--- The information about a class; nil for a value that is not a class.
---@param value any
---@return nn.ClassInfo?
function class.info(value)
  return type(value) == "table" and of_class[value] or nil
end

--- Whether a value is an instance of a class or of one that inherits from it.
---@param value any
---@param wanted table a class
---@return boolean
function class.is(value, wanted)
  local info = class.of(value)
  while info and info.class ~= wanted do info = info.base end
  return info ~= nil
end

--- Refuse a class where an instance is wanted: `nn.ReLU` without its parentheses. Other values
--- pass, because the caller has a better message for them.
---@param who string the public function, as the user writes it
---@param name string the parameter
---@param value any
function class.refuse(who, name, value)
  local info = class.info(value)
  if info then
    errors.raise("%s: %s is the class %s, expected an instance: %s(...)", who, name, info.shown,
      info.shown)
  end
end

-- ---- instances -------------------------------------------------------------------------------

local changes = 0 -- changes of a mode, in all modules

--- Set the mode of one module; nn/mode.lua says what it means.
---@param object nn.Module
---@param mode "train"|"eval"
function class.set_mode(object, mode)
  if object[class.MODE] == mode then return end
  rawset(object, class.MODE, mode)
  changes = changes + 1
end

--- How often modes have changed so far.
---@return integer
function class.mode_changes() return changes end

-- Assign an attribute, and remember its place in the order if the name is new.
local function assign(object, key, value)
  if key == "training" then return class.set_mode(object, value and "train" or "eval") end
  local order, known = object[class.ORDER], object[class.KNOWN]
  if not known[key] then
    order[#order + 1], known[key] = key, true
  end
  object[class.PATHS] = false
  rawset(object, key, value)
end

-- Look up a missing name. A misspelt method of one of our classes is an error; attributes of a
-- user's class that were never set are nil, as in any table.
local function missing(info, object, key)
  if key == "training" then return object:is_training() end
  if not info.builtin or type(key) ~= "string" then return nil end
  local way = require("gpipe.elsewhere")[key]
  if way then errors.raise("%s: there is no '%s' (%s)", info.shown, key, way) end
  local methods = {}
  local at = info
  while at do
    for name, value in pairs(at.class) do
      if type(name) == "string" and type(value) == "function" then methods[#methods + 1] = name end
    end
    at = at.base
  end
  table.sort(methods)
  errors.refuse_near(info.shown, key, methods)
end

local function index(info)
  return function(object, key)
    local value = info.class[key]
    if value ~= nil then return value end
    return missing(info, object, key)
  end
end

-- Check the arguments of a constructor. nn.ReLU(x) would make a layer and ignore x: none of our
-- classes is made from a tensor. A class without init takes no arguments.
local function check_arguments(info, first)
  if info.builtin and is_tensor(first) then
    errors.raise("%s: the first argument is a tensor, but %s is a class: expected an instance to "
      .. "be called, %s(...)(x)", info.shown, info.shown, info.shown)
  end
  if info.builtin and first ~= nil and not info.class.init then
    errors.raise("%s: the first argument is %s, expected none", info.shown, errors.show(first))
  end
end

local function construct(made, ...)
  check_arguments(of_class[made], (...))
  local object = {
    [class.ORDER] = {}, [class.KNOWN] = {}, [class.MODE] = "train", [class.PATHS] = false,
    [class.SKIPS] = of_class[made].skips or false, [class.SPACES] = {},
  }
  setmetatable(object, of_class[made].meta)
  if made.init then made.init(object, ...) end
  return object
end

-- Copy the base's metamethods: Lua looks for metamethods only in the metatable itself.
local function instance_meta(info)
  local meta = {}
  for name, value in pairs(info.base and info.base.meta or {}) do meta[name] = value end
  meta.__index, meta.__newindex, meta.__name = index(info), assign, info.shown
  return meta
end

-- ---- classes ---------------------------------------------------------------------------------

-- Define a field of a class; a metamethod such as `function Gate:__len()` goes to the metatable of
-- the instances.
local function define(made, key, value)
  if type(key) == "string" and key:sub(1, 2) == "__" then
    of_class[made].meta[key] = value
  else
    rawset(made, key, value)
  end
end

--- Make a class, without the checks of nn.class.
---@param name string
---@param base? table a class
---@param builtin? boolean
---@return table
function class.new(name, base, builtin)
  local shown = builtin and "nn." .. name or name
  local info = { name = name, shown = shown, builtin = builtin or false, base = class.info(base) }
  info.skips = info.base and info.base.skips
  info.class, info.meta = {}, instance_meta(info)
  info.meta.methods = info.class -- for completion
  of_class[info.class], of_meta[info.meta] = info, info
  return setmetatable(info.class, {
    __index = base, __newindex = define, __call = construct, __name = "class " .. shown,
    __tostring = function() return "class " .. shown end,
  })
end

return class
