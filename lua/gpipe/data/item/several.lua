-- gpipe/data/item/several.lua - items with several inputs or several targets: a list of tensors and
-- numbers in place of a single value.
--
-- In a batch such a list holds a tensor for each of its places. The list is marked, because its
-- first element would otherwise be taken for the first item.

local is_tensor = require "gpipe.tensor.is"

local several = {}

local DEEPEST = 8 -- lists in lists; deeper ones are taken for something else

local marked = setmetatable({}, { __mode = "k" })

--- Return whether an item's value is a list of tensors and numbers, which may be nested.
---@param value any
---@param depth? integer number of lists around it
---@return boolean
function several.is(value, depth)
  if type(value) ~= "table" or getmetatable(value) ~= nil or #value == 0 then return false end
  depth = (depth or 0) + 1
  if depth > DEEPEST then return false end
  local count = 0
  for _, element in next, value do
    count = count + 1
    local good = type(element) == "number" or is_tensor(element) or several.is(element, depth)
    if not good then return false end
  end
  return count == #value
end

--- Mark these as the values of a batch, one for each place of its items.
---@param values any[]
---@return any[] values
function several.mark(values)
  marked[values] = true
  return values
end

--- Return whether a batch's value was made of several values.
---@param values any
---@return boolean
function several.is_marked(values) return type(values) == "table" and marked[values] == true end

--- The value of item i of a batch; nil if values is nil.
---@param values any
---@param i integer
---@return any
function several.pick(values, i)
  if values == nil then return nil end
  if not several.is_marked(values) then return values[i] end
  local item = {}
  for place, value in ipairs(values) do item[place] = several.pick(value, i) end
  return item
end

return several
