-- lua/gpipe/nn/check.lua - checks of positional arguments that say what is and what was wanted.
--
-- Every check returns the value it accepted (floats with an exact integer value become integers, as
-- sizes often come from a division) or raises `who: name is VALUE, expected WHAT` at the user's
-- line.

local class = require "gpipe.nn.class"
local lists = require "gpipe.tensor.methods.check"
local errors = require "gpipe.errors"

local check = {}

--- A shape as all messages show it: "32x128", "scalar".
---@param shape integer[]
---@return string
function check.shape_text(shape)
  return #shape == 0 and "scalar" or table.concat(shape, "x")
end

--- Raise `who: name is VALUE, expected wanted`.
---@param who string the public function, as the user writes it
---@param name string the parameter
---@param value any
---@param wanted string
function check.fail(who, name, value, wanted)
  errors.raise("%s: %s is %s, expected %s", who, name, errors.show(value), wanted)
end

---@return integer
function check.integer(who, name, value)
  local number = math.type(value) and math.tointeger(value)
  if not number then check.fail(who, name, value, "an integer") end
  return number --[[@as integer]]
end

--- A size: at least 1.
---@return integer
function check.size(who, name, value)
  local number = math.type(value) and math.tointeger(value)
  if not number or number < 1 then check.fail(who, name, value, "a positive integer") end
  return number --[[@as integer]]
end

--- A probability or share: in [0, 1], so not NaN.
---@return number
function check.fraction(who, name, value)
  local inside = math.type(value) and value >= 0 and value <= 1
  if not inside then check.fail(who, name, value, "a number from 0 to 1") end
  return value
end

--- A number that is neither infinite nor NaN.
---@return number
function check.number(who, name, value)
  local finite = math.type(value) and value - value == 0
  if not finite then check.fail(who, name, value, "a finite number") end
  return value
end

--- One of a list of words.
---@return string
function check.choice(who, name, value, words)
  for _, word in ipairs(words) do
    if value == word then return word end
  end
  check.fail(who, name, value, '"' .. table.concat(words, '" or "') .. '"')
  return value
end

--- A list of positive integers; `{}` is a scalar.
---@return integer[]
function check.shape(who, name, value)
  if type(value) ~= "table" then
    check.fail(who, name, value, "a list of sizes such as {32, 128}")
  end
  lists.no_names(("%s: %s"):format(who, name), value)
  local shape = {}
  for i = 1, #value do shape[i] = check.size(who, ("%s[%d]"):format(name, i), value[i]) end
  return shape
end

--- An instance of a module class. A class itself is a frequent mistake and has its own message.
---@return nn.Module
function check.module(who, name, value)
  class.refuse(who, name, value)
  if not class.of(value) then check.fail(who, name, value, "a module") end
  return value
end

return check
