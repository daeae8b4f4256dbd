-- lua/gpipe/plan/even.lua - among the cuts whose most expensive stage is as cheap as possible, an
-- even one.
--
-- A single large layer decides the maximum, and then most cuts are as good. The minimax search
-- fills the first stages up to the maximum, where schedules hold most micro-batches; here every
-- stage gets what is nearest to an even share of what is left.

local minimax = require("gpipe.pipeline.plan.partition").minimax

local even = {}

local NEAR = 1e-9 -- relative: sums are added up in another order here

-- The first layers at which stages may end, if those behind them cost `most` at most.
local function earliest_of(costs, stages, most)
  local first, at = {}, #costs
  for k = stages, 1, -1 do
    first[k] = at
    local sum = 0.0
    while at >= k and sum + costs[at] <= most do
      sum = sum + costs[at]
      at = at - 1
    end
    if at == first[k] then at = at - 1 end
    at = math.max(at, k - 1)
  end
  return first
end

-- How many layers a stage takes from `at` on: at least up to `first`, at most up to `last` and to
-- the cost `most`, and among those nearest to the cost `share`.
local function stop_of(costs, at, first, last, most, share)
  local sum, stop, i = 0.0, at + 1, at + 1
  local best = math.huge
  while i <= last and (i == at + 1 or sum + costs[i] <= most) do
    sum = sum + costs[i]
    local off = math.abs(sum - share)
    if i <= first or off < best then stop, best = i, off end
    i = i + 1
  end
  return stop, sum
end

--- Layers per stage, and the cost of the most expensive stage.
---@param who string
---@param costs number[]
---@param stages integer
---@return integer[]
---@return number
function even.cut(who, costs, stages)
  local balance, largest = minimax(who, costs, stages)
  local most, left = largest * (1 + NEAR), 0.0
  for _, cost in ipairs(costs) do left = left + cost end
  local first, list, at = earliest_of(costs, stages, most), {}, 0
  for k = 1, stages - 1 do
    local stop = stop_of(costs, at, first[k], #costs - (stages - k), most, left / (stages - k + 1))
    for i = at + 1, stop do left = left - costs[i] end
    list[k], at = stop - at, stop
  end
  list[stages] = #costs - at
  local last = 0.0
  for i = at + 1, #costs do last = last + costs[i] end
  if last > most or list[stages] < 1 then return balance, largest end -- rounding
  return list, largest
end

return even
