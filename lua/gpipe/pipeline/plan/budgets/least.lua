-- lua/gpipe/pipeline/plan/budgets/least.lua - the budgets with which "auto" takes as little as
-- it can.

local needs_of = require "gpipe.pipeline.plan.budgets.needs"
local search = require "gpipe.pipeline.plan.budgets.search"

local least = {}

--- Policies by name for all stages, which auto follows where they are faster.
least.NAMED = { "selective", "except_last", "always" }

--- All devices with a policy by name.
function least.named(policy, devices)
  local list = { policy = policy }
  for d = 1, devices do list[d] = false end
  return list
end

-- The smallest budgets, refined: every stage takes as little as it can.
local function smallest(needs, room, how)
  local list = {}
  for d in ipairs(needs) do list[d] = room[d] and 1 end
  return search.with(list, how)
end

-- The budgets that take least: for each way the smallest ones, where making cheap values again is
-- not enough, and what "always" takes; and policies by name.
local function thriftiest(measure, room, needs, links)
  local list = {}
  for way = 1, links and 3 or 2 do
    local how = search.WAYS[way]
    local ranges, measured = search.ranges(needs, room), search.measurer(measure, how)
    if how.stays then search.try_selective(ranges, measured, room) end
    for _, budget in ipairs(way == 1 and { 0, 1 } or { 1 }) do
      local one = {}
      for d, range in ipairs(ranges) do one[d] = range and (range.fixed or budget) end
      list[#list + 1] = search.with(one, how)
    end
  end
  list[#list + 1] = smallest(needs, room, { stays = true, refine = true })
  for _, policy in ipairs(least.NAMED) do list[#list + 1] = least.named(policy, #needs) end
  return list
end

--- The budgets with which the fullest device is least full, of few that are tried: they fit if any
--- do, or nearly.
---@param measure fun(list: (integer|false|string)[]?): gpipe.PlanNeed[]
---@param room (integer|false)[]
---@param links boolean
---@param needs gpipe.PlanNeed[] without budgets
---@return (integer|false|string)[] budgets
---@return gpipe.PlanNeed[]
function least.find(measure, room, links, needs)
  local best, found, share
  for _, list in ipairs(thriftiest(measure, room, needs, links)) do
    local taken = measure(list)
    local full = needs_of.fullest(taken, room)
    if not share or full < share then best, found, share = list, taken, full end
    if share <= 1 then break end
  end
  return best, found
end

return least
