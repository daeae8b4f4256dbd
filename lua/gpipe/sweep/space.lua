-- lua/gpipe/sweep/space.lua - the parameters of a sweep: their names and domains.
--
-- A parameter is a domain, a constant, or a function of the other values that returns one of the
-- two, or nil where the parameter does not apply. A function may read the parameter of another
-- function: that one is then evaluated first, whatever the order of names.

local domain = require "gpipe.sweep.domain"
local errors = require "gpipe.errors"
local text = require "gpipe.sweep.text"

local space = {}

---@class gpipe.SweepSpace
---@field given table<string, any> as the script gave it
---@field plain string[] names of domains and constants, in alphabetical order
---@field conditional string[] names of functions
local Space = {}
Space.__index = Space

local WANTED = "a domain such as gp.sweep.uniform(0, 1), a number, a string, a boolean or a "
  .. "function of the values so far"

--- Check what a script gave as `space`.
---@param given any
---@return gpipe.SweepSpace
function space.new(given)
  if type(given) ~= "table" or domain.is(given) or next(given) == nil then
    errors.raise("gp.sweep: space is %s, expected a table of names and domains",
      type(given) == "table" and next(given) == nil and "empty" or errors.show(given))
  end
  local self = setmetatable({ given = {}, plain = {}, conditional = {} }, Space)
  for name, value in pairs(given) do
    if type(name) ~= "string" or name == "" then
      errors.raise("gp.sweep: space has the key %s, expected names", errors.show(name))
    end
    local is_function = type(value) == "function"
    if not (is_function or domain.is(value) or domain.is_value(value)) then
      errors.raise("gp.sweep: space.%s is %s, expected %s", name, errors.show(value), WANTED)
    end
    self.given[name] = value
    table.insert(is_function and self.conditional or self.plain, name)
  end
  table.sort(self.plain)
  table.sort(self.conditional)
  return self
end

-- ---- values ------------------------------------------------------------------------------------

local function check_result(name, value)
  if value == nil or domain.is(value) or domain.is_value(value) then return value end
  errors.raise("gp.sweep: the function of space.%s returned %s, expected a domain, a number, a "
    .. "string, a boolean or nil", name, errors.show(value))
end

-- The table that functions get: the values so far; a value that is not there yet is computed when
-- it is read.
local function view_of(self, values, settle)
  return setmetatable({}, {
    __name = "the values so far",
    __index = function(_, name)
      if values[name] ~= nil then return values[name] end
      if type(self.given[name]) == "function" then return settle(name) end
      errors.raise("gp.sweep: there is no parameter '%s'%s", tostring(name),
        errors.hint(name, text.names(self.given), "parameters"))
    end,
    __newindex = function(_, name)
      errors.raise("gp.sweep: '%s' is set in a function of the space, expected it to be returned",
        tostring(name))
    end,
  })
end

--- Choose a value for every parameter: `choose` picks one from each domain. Parameters that do not
--- apply are absent.
---@param choose fun(name: string, from: gpipe.SweepDomain): any
---@return table<string, any>
function Space:evaluate(choose)
  local values, settled, open = {}, {}, {}
  local view
  local function settle(name)
    if settled[name] then return values[name] end
    if open[name] then
      errors.raise("gp.sweep: space.%s depends on itself, expected an order", name)
    end
    open[name] = true
    local from = check_result(name, self.given[name](view))
    if domain.is(from) then from = choose(name, from) end
    values[name], settled[name] = from, true
    return from
  end
  view = view_of(self, values, settle)
  for _, name in ipairs(self.plain) do
    local from = self.given[name]
    if domain.is(from) then from = choose(name, from) end
    values[name] = from
  end
  for _, name in ipairs(self.conditional) do settle(name) end
  return values
end

-- ---- what it was -------------------------------------------------------------------------------

-- Bytes of string.dump before the function: signature, version, format, check, sizes, a number of
-- each kind, upvalues. A name of the source follows (empty when stripped), then two line numbers in
-- groups of seven bits, whose last byte has the eighth.
local HEADER = 4 + 1 + 1 + 6 + 3 + 8 + 8 + 1
local LINES = ("^" .. ("."):rep(HEADER) .. ("[\0-\127]*[\128-\255]"):rep(3))

-- FNV-1a over the code of a function, without its names and line numbers: equal for equal code.
-- Functions inside of it keep their line numbers.
local function code_of(f)
  local good, code = pcall(string.dump, f, true)
  if not good then return "a function" end
  code = code:gsub(LINES, "", 1)
  local hash = -3750763034362895579
  for i = 1, #code do hash = (hash ~ code:byte(i)) * 1099511628211 end
  return ("a function with the code %016x"):format(hash)
end

--- Each parameter in words: two spaces with the same words are the same.
---@return table<string, string>
function Space:words()
  local words = {}
  for name, from in pairs(self.given) do
    if type(from) == "function" then
      words[name] = code_of(from)
    else
      words[name] = domain.is(from) and tostring(from) or "always " .. text.value(from)
    end
  end
  return words
end

--- Say how two spaces differ: "lr is log 1e-05..0.1, it was log 1e-05..0.01"; nil if they do not.
---@param now table<string, string> words
---@param before table<string, string>
---@return string?
function space.difference(now, before)
  local faults = {}
  for _, name in ipairs(text.names(now)) do
    if before[name] == nil then
      faults[#faults + 1] = ("%s is new (%s)"):format(name, now[name])
    elseif before[name] ~= now[name] then
      faults[#faults + 1] = ("%s is %s, it was %s"):format(name, now[name], before[name])
    end
  end
  for _, name in ipairs(text.names(before)) do
    if now[name] == nil then
      faults[#faults + 1] = ("%s is missing (it was %s)"):format(name, before[name])
    end
  end
  return #faults > 0 and table.concat(faults, "; ") or nil
end

return space
