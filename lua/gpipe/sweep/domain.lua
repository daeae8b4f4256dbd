-- lua/gpipe/sweep/domain.lua - the domains that parameters of a sweep are drawn from.
--
-- A domain is plain data: a kind and its bounds or choices. Numbers have a coordinate, in which
-- they are drawn evenly: the value itself, or its logarithm. An integer stands for the interval of
-- half a step on either side, so that all integers are equally likely.

local errors = require "gpipe.errors"
local text = require "gpipe.sweep.text"

local domain = {}

---@class gpipe.SweepDomain
---@field kind "uniform"|"log"|"int"|"int_log"|"choice"
---@field low? number smallest value
---@field high? number largest value
---@field choices? any[] of a choice
local Domain = {}
Domain.__index = Domain
Domain.__name = "gpipe.SweepDomain"

--- Whether a value is a domain.
---@param value any
---@return boolean
function domain.is(value) return getmetatable(value) == Domain end

-- ---- making ------------------------------------------------------------------------------------

local WANTED = { float = "a finite number", integer = "an integer" }

-- Check a bound for its kind; errors name the function and the bound.
local function bound(who, name, value, kind)
  local number = type(value) == "number" and value or nil
  if kind == "integer" then number = number and math.tointeger(number) end
  if not number or number ~= number or math.abs(number) == math.huge then
    errors.raise("%s: %s is %s, expected %s", who, name, errors.show(value), WANTED[kind])
  end
  return kind == "float" and number + 0.0 or number
end

local function range(kind, number_kind, low, high)
  local who = "gp.sweep." .. kind
  low, high = bound(who, "low", low, number_kind), bound(who, "high", high, number_kind)
  if low >= high then
    errors.raise("%s: low is %s and high is %s, expected low < high", who, text.value(low),
      text.value(high))
  end
  if kind:find "log" and low <= 0 then
    errors.raise("%s: low is %s, expected a number > 0, which has a logarithm", who,
      text.value(low))
  end
  return setmetatable({ kind = kind, low = low, high = high }, Domain)
end

--- A number from `low` to `high`, uniformly distributed.
--- ```lua
--- local dropout = gp.sweep.uniform(0, 0.5)
--- ```
---@param low number
---@param high number > low
---@return gpipe.SweepDomain
function domain.uniform(low, high) return range("uniform", "float", low, high) end

--- A positive number whose logarithm is uniformly distributed: for learning rates, weight decays.
--- ```lua
--- local lr = gp.sweep.log(1e-5, 1e-2)
--- ```
---@param low number > 0
---@param high number > low
---@return gpipe.SweepDomain
function domain.log(low, high) return range("log", "float", low, high) end

--- An integer from `low` to `high`, both included.
--- ```lua
--- local layers = gp.sweep.int(2, 8)
--- ```
---@param low integer
---@param high integer > low
---@return gpipe.SweepDomain
function domain.int(low, high) return range("int", "integer", low, high) end

--- A positive integer whose logarithm is uniformly distributed: 16 to 32 is as likely as 512 to
--- 1,024.
--- ```lua
--- local width = gp.sweep.int_log(16, 1024)
--- ```
---@param low integer > 0
---@param high integer > low
---@return gpipe.SweepDomain
function domain.int_log(low, high) return range("int_log", "integer", low, high) end

local SIMPLE = { number = true, string = true, boolean = true }

--- Whether a value can be a parameter: a finite number, a string or a boolean.
---@param value any
---@return boolean
function domain.is_value(value)
  if type(value) ~= "number" then return SIMPLE[type(value)] or false end
  return value == value and math.abs(value) ~= math.huge
end

--- One of the values of a list: numbers, strings, booleans.
--- ```lua
--- local width = gp.sweep.choice {64, 128, 256}
--- local schedule = gp.sweep.choice {"constant", "cosine"}
--- ```
---@param choices any[]
---@return gpipe.SweepDomain
function domain.choice(choices)
  if type(choices) ~= "table" or domain.is(choices) or #choices == 0 then
    errors.raise("gp.sweep.choice: the choices are %s, expected a list of values", type(choices)
      == "table" and "an empty list" or errors.show(choices))
  end
  local list, seen = {}, {}
  for key in pairs(choices) do
    if math.type(key) ~= "integer" or key < 1 or key > #choices then
      errors.raise("gp.sweep.choice: it has a field '%s', expected a list of values",
        tostring(key))
    end
  end
  for i, value in ipairs(choices) do
    if not domain.is_value(value) then
      errors.raise("gp.sweep.choice: choice %d is %s, expected a finite number, a string or a "
        .. "boolean (give other values a name)", i, errors.show(value))
    end
    if seen[value] then
      errors.raise("gp.sweep.choice: %s is there twice, expected each choice once",
        text.value(value))
    end
    list[i], seen[value] = value, true
  end
  return setmetatable({ kind = "choice", choices = list }, Domain)
end

-- ---- coordinates -------------------------------------------------------------------------------

local function is_log(d) return d.kind == "log" or d.kind == "int_log" end
local function is_integer(d) return d.kind == "int" or d.kind == "int_log" end

--- Whether the domain has choices, which have no order.
---@return boolean
function Domain:is_choice() return self.kind == "choice" end

--- Whether the coordinate is the logarithm.
---@return boolean
function Domain:is_log() return is_log(self) end

--- The ends of the coordinate.
---@return number low
---@return number high
function Domain:ends()
  local half = is_integer(self) and 0.5 or 0
  local low, high = self.low - half, self.high + half
  if is_log(self) then return math.log(low), math.log(high) end
  return low, high
end

--- The coordinate of a value.
---@param value number
---@return number
function Domain:coordinate(value) return is_log(self) and math.log(value) or value + 0.0 end

--- The coordinates that stand for a value: the ends of an integer's interval, else one point twice.
---@param value number
---@return number from
---@return number to
function Domain:interval(value)
  if not is_integer(self) then
    local x = self:coordinate(value)
    return x, x
  end
  if is_log(self) then return math.log(value - 0.5), math.log(value + 0.5) end
  return value - 0.5, value + 0.5
end

--- The value at a coordinate between the ends.
---@param x number
---@return number
function Domain:at(x)
  if x <= self:coordinate(self.low) then return self.low end
  if x >= self:coordinate(self.high) then return self.high end
  local value = is_log(self) and math.exp(x) or x
  if is_integer(self) then value = math.floor(value + 0.5) end
  return is_integer(self) and math.tointeger(value) or value
end

--- Whether a value may have been drawn from the domain.
---@param value any
---@return boolean
function Domain:contains(value)
  if self.choices then return self:position(value) ~= nil end
  return type(value) == "number" and value >= self.low and value <= self.high
    and (not is_integer(self) or math.tointeger(value) ~= nil)
end

--- The position of a choice.
---@param value any
---@return integer?
function Domain:position(value)
  for i, choice in ipairs(self.choices) do
    if choice == value and math.type(choice) == math.type(value) then return i end
  end
end

-- ---- values ------------------------------------------------------------------------------------

--- The value for a number from 0 up to 1, which is mapped to the coordinate or to the choices.
---@param u number
---@return any
function Domain:draw(u)
  if self.choices then return self.choices[math.floor(u * #self.choices) + 1] end
  local low, high = self:ends()
  return self:at(low + u * (high - low))
end

--- Up to `points` values in ascending order that cover the domain; all choices, and all integers if
--- there are at most as many.
---@param points integer
---@return any[]
function Domain:grid(points)
  if self.choices then return self.choices end
  local list = {}
  if is_integer(self) and self.high - self.low < points then
    for value = self.low, self.high do list[#list + 1] = value end
    return list
  end
  local low, high = self:coordinate(self.low), self:coordinate(self.high)
  for i = 1, points do
    local value = self:at(points == 1 and (low + high) / 2 or low + (i - 1) / (points - 1)
      * (high - low))
    if value ~= list[#list] then list[#list + 1] = value end
  end
  return list
end

--- The domain in words, the same for equal domains: "log 1e-05..0.01", "choice 64, 128".
---@return string
function Domain:__tostring()
  if not self.choices then
    return ("%s %s..%s"):format(self.kind, text.value(self.low), text.value(self.high))
  end
  local shown = {}
  for i, value in ipairs(self.choices) do shown[i] = text.value(value) end
  return "choice " .. table.concat(shown, ", ")
end

return domain
