-- lua/gpipe/pipeline/plan/balance.lua - assigns layers to stages.
--
-- A balance is the number of layers of each stage, in order. Without one the layers are cut so that
-- the largest stage has as few parameters as possible.

local errors = require "gpipe.errors"

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

-- The number of stages under a cap, if each takes as many layers as fit.
local function stages_needed(weights, cap)
  local stages, load = 1, 0
  for _, w in ipairs(weights) do
    if load + w > cap then stages, load = stages + 1, 0 end
    load = load + w
  end
  return stages
end

-- The smallest cap under which `stages` stages are enough, by bisection over integers.
local function smallest_cap(weights, stages)
  local low, high = 0, 0
  for _, w in ipairs(weights) do low, high = math.max(low, w), high + w end
  while low < high do
    local middle = (low + high) // 2
    if stages_needed(weights, middle) <= stages then high = middle else low = middle + 1 end
  end
  return low
end

--- Cut layers of given weights into stages so that the heaviest stage is as light as possible.
--- Source: the linear partition problem; the minimal cap is found exactly.
---@param weights integer[]
---@param stages integer at most #weights
---@return integer[]
function balance.cut(weights, stages)
  local cap, result, load, count = smallest_cap(weights, stages), {}, 0, 0
  for i, w in ipairs(weights) do
    local left = #weights - i + 1 -- layers from this one on; each later stage needs one
    if count > 0 and (load + w > cap or left < stages - #result) then
      result[#result + 1], load, count = count, 0, 0
    end
    load, count = load + w, count + 1
  end
  result[#result + 1] = count
  return result
end

-- A text is not accepted as a number, although Lua would convert it.
local function is_count(n) return math.type(n) and math.tointeger(n) and n >= 1 end

local function check_entries(list)
  local shown = {}
  for i, n in ipairs(list) do shown[i] = tostring(n) end
  for i, n in ipairs(list) do
    if not is_count(n) then
      errors.raise("%s: balance[%d] is %s, expected a positive number of layers (balance = {%s})",
        WHO, i, errors.show(n), table.concat(shown, ", "))
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
