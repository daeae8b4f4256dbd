-- lua/gpipe/pipeline/plan/partition/even.lua - among the cuts whose most expensive stage is as
-- cheap as possible, an even one.
--
-- A single large layer decides the maximum, and then most cuts are as good. The minimax search
-- fills the first stages up to the maximum, where schedules hold most micro-batches. Here the
-- layers before and behind the most expensive stage are cut again, each for themselves, so the
-- second most expensive stage is as cheap as possible too, and so on.

local minimax = require("gpipe.pipeline.plan.partition").minimax

local even = {}

-- Layers x stages: above that the first of the cheapest cuts will do. Below it a cut takes 0.1 s at
-- most.
local LARGE = 1 << 18

-- The most expensive stage of a balance: of several the one with fewest layers. Returns its number
-- and the layers before it.
local function worst_of(costs, balance)
  local worst, most, fewest, before, at = 1, -1, math.huge, 0, 0
  for k, count in ipairs(balance) do
    local sum = 0.0
    for i = at + 1, at + count do sum = sum + costs[i] end
    if sum > most or sum == most and count < fewest then
      worst, most, fewest, before = k, sum, count, at
    end
    at = at + count
  end
  return worst, before
end

-- Append the balance of layers first .. last over so many stages to a list.
local function append(who, costs, first, last, stages, list)
  if stages == 0 then return end
  local part = table.move(costs, first, last, 1, {})
  local balance, largest = minimax(who, part, stages)
  local worst, before = worst_of(part, balance)
  append(who, costs, first, first + before - 1, worst - 1, list)
  list[#list + 1] = balance[worst]
  append(who, costs, first + before + balance[worst], last, stages - worst, list)
  return largest
end

--- Layers per stage, and the cost of the most expensive stage.
---@param who string
---@param costs number[]
---@param stages integer
---@param large? integer layers x stages above which the cut need not be even
---@return integer[]
---@return number
function even.cut(who, costs, stages, large)
  if #costs * stages > (large or LARGE) then return minimax(who, costs, stages) end
  local list = {}
  local largest = append(who, costs, 1, #costs, stages, list)
  return list, largest
end

return even
