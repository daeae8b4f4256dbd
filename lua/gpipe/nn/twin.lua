-- lua/gpipe/nn/twin.lua - copies a model, so that its forward may run and leave no trace in it.
--
-- Modules and plain tables are copied at any depth, so counters that a forward keeps are those of
-- the copy. What else a module holds (functions, tensors, numbers) is shared. The caller decides
-- what becomes of parameters and buffers; one that occurs twice is one in the copy too.

local class = require "gpipe.nn.class"
local parameter = require "gpipe.nn.parameter"

local twin = {}

local copy_of

local function copy_table(value, known, box_of)
  local copy = {}
  known[value] = copy
  for key, held in next, value do rawset(copy, key, copy_of(held, known, box_of)) end
  if class.of(value) then copy[class.PATHS] = false end
  return setmetatable(copy, getmetatable(value))
end

function copy_of(value, known, box_of)
  if known[value] ~= nil then return known[value] end
  if parameter.kind(value) then
    known[value] = box_of(value)
    return known[value]
  end
  local is_plain = type(value) == "table" and getmetatable(value) == nil and value ~= _G
  if not is_plain and not class.of(value) then return value end
  return copy_table(value, known, box_of)
end

--- A copy of a model that shares the parameters and buffers, for passes that do not run.
---@param model nn.Module
---@return nn.Module
function twin.sharing(model)
  return copy_of(model, {}, function(box) return box end)
end

--- A copy of a model with parameters and buffers of its own, of the same values.
---@param model nn.Module
---@return nn.Module
function twin.of(model) return copy_of(model, {}, parameter.copy) end

return twin
