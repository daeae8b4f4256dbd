-- lua/gpipe/nn/arity.lua - checks how many inputs a module is given. Lua drops superfluous
-- arguments silently (a mask, for instance), so here they are an error.
--
-- The parameters of a forward are read from the function itself, so classes of users are checked as
-- ours are. `...` takes any number: containers pass it on, and their parts check it. A forward
-- without any input is not checked either: such a layer makes its values itself.

local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local scope = require "gpipe.nn.scope"

local arity = {}

local ANY = math.huge

-- [function] = the number of parameters that it declares, or ANY
local known = setmetatable({}, { __mode = "k" })

local function parameters_of(fn)
  local count = known[fn]
  if count then return count end
  local info = type(fn) == "function" and debug.getinfo(fn, "u")
  count = info and not info.isvararg and info.nparams or ANY
  known[fn] = count
  return count
end

-- Count the arguments; nils at the end are options that were left out.
local function given(...)
  local count = select("#", ...)
  while count > 0 and (select(count, ...)) == nil do count = count - 1 end
  return count
end

-- If a function gets more values than it takes, return both numbers.
local function surplus(fn, own, ...)
  local takes = parameters_of(fn) - own
  if takes < 1 or select("#", ...) <= takes then return end
  local count = given(...)
  if count > takes then return count, takes end
end

local function refuse(who, count, takes)
  errors.raise("%s: there are %d inputs, expected %s", who, count,
    takes == 1 and "1" or ("at most %d"):format(takes))
end

--- Raise if a loss gets more outputs and targets than it takes. A function that takes no target at
--- all ignores targets on purpose.
---@param loss table|function
---@param outputs integer how many of the values are outputs
---@param ... any
function arity.check_loss(loss, outputs, ...)
  local is_module = type(loss) == "table" and loss.terms
  local count, takes = surplus(is_module or loss, is_module and 1 or 0, ...)
  if not count or not is_module and takes == outputs then return end
  local shown = is_module and class.of(loss) and class.of(loss).shown or "a function"
  refuse(("loss (%s), outputs and targets"):format(shown), count, takes)
end

--- Raise if the module that runs now is called with more values than it takes. If a class's forward
--- passes `...` to another function, class.TAKES names that function.
---@param module nn.Module
---@param ... any
function arity.check_call(module, ...)
  local forward, own = module.forward, 1
  local takes_by = module[class.TAKES]
  if takes_by and parameters_of(forward) == ANY then forward, own = takes_by(module) end
  local count, takes = surplus(forward, own, ...)
  if count then refuse(scope.label(module), count, takes) end
end

return arity
