-- lua/gpipe/pipeline/plan/budgets/refined.lua - budgets for stages that are refined: each device's
-- room, or what its stages need to come to that.
--
-- A stage that is refined takes what its budget says, to the byte but for holes in the work area.
-- Stages that share a device are at their worst at different moments, so their budgets may exceed
-- its room together.

local needs_of = require "gpipe.pipeline.plan.budgets.needs"

local refined = {}

local ROUNDS = 3
local CLOSE = 0.99 -- of the room for work

-- What a device's stages may have in work if all else takes what it takes now.
local function spare_of(need, room)
  return math.max(1, room - (needs_of.total(need) - need.work))
end

-- Whether work has missed the room. A stage alone on its device says exactly what it needs.
local function has_missed(need, spare, alone)
  return need.work > spare or not alone and need.work > 0 and need.work < CLOSE * spare
end

-- Budgets for the next round: in the proportion by which work has missed the room.
local function adjust(list, needs, room, stages)
  local next, found = { stays = true, refine = true }, true
  for d, budget in ipairs(list) do
    next[d] = budget
    local spare = budget and spare_of(needs[d], room[d])
    if budget and has_missed(needs[d], spare, #stages[d] == 1) then
      next[d] = math.max(1, math.min(math.floor(budget / needs[d].work * spare), 2 * spare))
      found = found and next[d] == budget
    end
  end
  return next, found
end

--- The best budgets for refined stages, and what they take.
---@param measure fun(list: (integer|false|string)[]?): gpipe.PlanNeed[]
---@param room (integer|false)[] what each device may take; false: no limit
---@param needs gpipe.PlanNeed[] without budgets
---@param stages integer[][] of each device
---@return (integer|false|string)[] budgets
---@return gpipe.PlanNeed[]
function refined.run(measure, room, needs, stages)
  local list, best, least = { stays = true, refine = true }, nil, nil
  for d, need in ipairs(needs) do
    list[d] = room[d] and needs_of.total(need) > room[d] and spare_of(need, room[d])
  end
  for _ = 1, ROUNDS do
    local taken = measure(list)
    if not best or needs_of.is_better(taken, least, room) then best, least = list, taken end
    local found
    list, found = adjust(list, taken, room, stages)
    if found then break end
  end
  return best, least
end

return refined
