-- lua/gpipe/pipeline/plan/balance.lua - assigns layers to stages.
--
-- A balance is the number of layers of each stage, in order. Without one the layers are cut so that
-- the largest stage has as few parameters as possible.

local errors = require "gpipe.errors"
local even = require "gpipe.pipeline.plan.partition.even"

local balance = {}

local WHO = "gp.pipeline"

--- The number of elements of a shape.
local function elements(shape)
  local n = 1
  for _, d in ipairs(shape) do n = n * d end
  return n
end

--- The cost of each layer: the number of its parameters plus one, so that layers without parameters
--- count a little.
---@param model nn.Sequential
---@return number[]
function balance.weights(model)
  local weights = {}
  for i = 1, #model do
    weights[i] = 1
    for _, p in ipairs(model[i]:parameters()) do
      weights[i] = weights[i] + elements(p.param.shape)
    end
  end
  return weights
end

--- Cut layers of given weights into stages so that the heaviest stage is as light as possible, then
--- the second heaviest, and so on.
---@param weights number[]
---@param stages integer at most #weights
---@return integer[]
function balance.cut(weights, stages) return (even.cut(WHO, weights, stages)) end

-- A text is not accepted as a number, although Lua would convert it.
local function is_count(n) return math.type(n) and math.tointeger(n) and n >= 1 end

local function check_entries(list)
  local shown = {}
  for i = 1, #list do shown[i] = tostring(list[i]) end -- one of them may be nil
  for i = 1, #list do
    if not is_count(list[i]) then
      errors.raise("%s: balance[%d] is %s, expected a positive number of layers (balance = {%s})",
        WHO, i, errors.show(list[i]), table.concat(shown, ", "))
    end
  end
end

--- Check a balance that the user gave against the model.
---@param list integer[]
---@param model nn.Sequential
---@return integer[]
function balance.check(list, model)
  if #list == 0 then errors.raise("%s: balance is empty, expected a number per stage", WHO) end
  check_entries(list)
  local sum = 0
  for i, n in ipairs(list) do
    list[i] = math.tointeger(n)
    sum = sum + list[i]
  end
  if sum ~= #model then
    local advice = #list > #model and ("at most %d stages"):format(#model)
      or ("balance = {%s}, say"):format(table.concat(balance.cut(balance.weights(model), #list),
        ", "))
    errors.raise("%s: balance = {%s} adds up to %d layers, the model has %d (#model): %s", WHO,
      table.concat(list, ", "), sum, #model, advice)
  end
  return list
end

return balance
