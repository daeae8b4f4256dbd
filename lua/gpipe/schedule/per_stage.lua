-- lua/gpipe/schedule/per_stage.lua - costs that are given as one number for all stages, or as a
-- list of them.

local errors = require "gpipe.errors"

local function check_number(who, key, value)
  if type(value) ~= "number" or not (value >= 0 and value < math.huge) then
    errors.raise("%s: %s is %s, expected a number >= 0", who, key, errors.show(value))
  end
  return value
end

--- A list of `count` numbers from one number for all, or from a list; nil stays nil.
---@param who string
---@param key string
---@param value number|number[]|nil
---@param count integer
---@param what? string what a number is for: "stage"
---@return number[]?
return function(who, key, value, count, what)
  if value == nil then return nil end
  local list = {}
  if type(value) == "table" and #value ~= count then
    errors.raise("%s: %s has %d numbers, expected %d (one per %s)", who, key, #value, count, what)
  end
  for i = 1, count do
    list[i] = check_number(who, key, type(value) == "table" and value[i] or value)
  end
  return list
end
