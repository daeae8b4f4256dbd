-- lua/gpipe/tensor/methods/check.lua - checks the arguments of methods: tensors, dimensions,
-- positions.

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local check = {}

--- Check a tensor; the error calls it `what`, by default "the other".
function check.tensor(who, value, what)
  if is_tensor(value) then return value end
  errors.raise("%s: %s is %s, expected a tensor", who, what or "the other", errors.show(value))
end

--- Arguments that are all tensors.
function check.tensors(who, ...)
  for i = 1, select("#", ...) do check.tensor(who, (select(i, ...)), "argument " .. i) end
end

--- A tensor or a number.
function check.operand(who, value)
  if is_tensor(value) or math.type(value) then return value end
  errors.raise("%s: the other is %s, expected a tensor or a number", who, errors.show(value))
end

--- Check a table of sizes; each size is checked when the tensor is made.
function check.shape(who, value)
  if type(value) ~= "table" then
    errors.raise("%s: shape is %s, expected a table like {32, 128}", who, errors.show(value))
  end
  check.no_names(who .. ": shape", value)
  return value
end

--- Check a dimension in 1 .. rank or -rank .. -1 and return it counted from 1. Errors name the
--- range.
---@return integer
function check.dim(who, value, rank)
  local d = math.type(value) and math.tointeger(value)
  if d and d < 0 then d = rank + 1 + d end
  if not d or d < 1 or d > rank then
    errors.raise("%s: dim is %s, expected %s", who, errors.show(value),
      rank == 0 and "none, the tensor is a scalar" or ("1..%d or -%d..-1"):format(rank, rank))
  end
  return d --[[@as integer]]
end

--- Check a position in 1 .. size or -size .. -1 and return it counted from 1.
---@return integer
function check.position(who, value, size)
  local at = math.type(value) and math.tointeger(value)
  if at and at < 0 then at = size + 1 + at end
  if not at or at < 1 or at > size then
    errors.raise("%s is %s, expected a position in 1..%d or -%d..-1", who, errors.show(value), size,
      size)
  end
  return at --[[@as integer]]
end

--- Check an integer of at least `low`.
---@return integer
function check.count(who, value, low)
  local n = math.type(value) and math.tointeger(value)
  if not n or n < low then
    errors.raise("%s is %s, expected an integer >= %d", who, errors.show(value), low)
  end
  return n --[[@as integer]]
end

--- Refuse a list that has named fields: options belong in a separate table.
function check.no_names(who, list)
  for key in pairs(list) do
    if type(key) == "string" then
      errors.raise("%s has a field '%s', expected numbers alone", who, key)
    end
  end
end

--- Check a dimension, a list of them, or nothing (all). Return which are meant, by number, and how
--- many elements they have together.
---@return table<integer, boolean> meant
---@return integer elements
function check.dims(who, value, shape)
  local meant, elements = {}, 1
  local list = value
  if value == nil then
    list = {}
    for d = 1, #shape do list[d] = d end
  elseif type(value) ~= "table" then
    list = { value }
  else
    check.no_names(who, value)
  end
  for _, given in ipairs(list) do
    local d = check.dim(who, given, #shape)
    if meant[d] then errors.raise("%s: dimension %d is given twice", who, d) end
    meant[d], elements = true, elements * shape[d]
  end
  return meant, elements
end

return check
