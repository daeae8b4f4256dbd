-- lua/gpipe/schedule/slowest.lua - the slowest of R replicas, from a sample of one replica's times.
--
-- Replicas wait for each other once a step, so a step takes as long as the slowest of them.

local slowest = {}

-- Weights of the sorted sample in the mean of the largest of R: of R values drawn without
-- replacement, which has no bias, where the sample is large enough; else with replacement, which
-- then is too small, because nothing beyond the sample is known.
-- Source: the unbiased (U-) statistic of a maximum, Hoeffding 1948, section 5.
local function weights(n, R)
  local list = {}
  if R <= n then
    -- P(the k-th is the largest) = C(k - 1, R - 1) / C(n, R), from the last one down
    local share = R / n
    for k = n, 1, -1 do
      list[k] = share
      share = k > R and share * (k - R) / (k - 1) or 0
    end
    return list
  end
  for k = 1, n do list[k] = (k / n) ^ R - ((k - 1) / n) ^ R end
  return list
end

local function sorted(list)
  local copy = table.move(list, 1, #list, 1, {})
  table.sort(copy)
  return copy
end

--- The mean of the largest of `replicas` values.
---@param list number[] sample, in any order
---@param replicas integer
---@return number
function slowest.mean(list, replicas)
  local sum, values = 0.0, sorted(list)
  for k, weight in ipairs(weights(#values, replicas)) do sum = sum + weight * values[k] end
  return sum
end

--- The value below which the largest of `replicas` values is with a probability.
---@param list number[] sample
---@param replicas integer
---@param probability number
---@return number
function slowest.quantile(list, replicas, probability)
  local values = sorted(list)
  local at = math.ceil(#values * probability ^ (1 / replicas))
  return values[math.max(1, math.min(#values, at))]
end

--- The mean of a sample, and the standard error of that.
---@param list number[]
---@return number mean
---@return number error
function slowest.average(list)
  local sum, squares = 0.0, 0.0
  for _, value in ipairs(list) do sum = sum + value end
  local mean = sum / #list
  for _, value in ipairs(list) do squares = squares + (value - mean) ^ 2 end
  return mean, #list > 1 and math.sqrt(squares / (#list - 1) / #list) or 0
end

return slowest
