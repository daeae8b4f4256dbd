-- lua/gpipe/pipeline/plan/budgets/init.lua - how many bytes the stages of each device may keep
-- and have in work with checkpoint = "auto": the most with which a plan fits its device's room.
--
-- They are found by halving, with plans that are measured and not allocated. That is done for each
-- of the ways that "auto" has, because what the programme takes for the bytes of a plan is not what
-- it takes in the end. The programme does not see either what runs while a device waits, and it
-- treats all micro-batches alike, so simple policies are tried next: for all devices, and for one
-- after another. In the end the stages are refined: what their layers do is changed layer by layer,
-- by exact bytes (refined.lua). Of all these plans the one with the shortest step by the cost model
-- is taken; where none fits, the one that takes least (least.lua).

local least_of = require "gpipe.pipeline.plan.budgets.least"
local needs_of = require "gpipe.pipeline.plan.budgets.needs"
local refined = require "gpipe.pipeline.plan.budgets.refined"
local search = require "gpipe.pipeline.plan.budgets.search"

local budgets = { total = needs_of.total, short_of = needs_of.short_of, fullest = needs_of.fullest,
  least = least_of.find }

local short_of, is_better = needs_of.short_of, needs_of.is_better

--- Whether "auto" may send saved values of a device to the host's memory.
---@param devices table[]
---@return boolean
function budgets.links(devices)
  for _, device in ipairs(devices) do
    if device.host_bandwidth then return true end
  end
  return false
end

--- Write budgets that were found into the specification of a plan.
---@param spec table
---@param found? (integer|false|string)[]
function budgets.specify(spec, found)
  if not found then return end
  spec.budgets, spec.policy = found, found.policy
  spec.stays, spec.whole, spec.refine = found.stays, found.whole, found.refine
end

-- Whether it is enough for all devices with a budget to make cheap values again.
local function is_selective(found)
  for _, budget in ipairs(found) do
    if budget and budget ~= "selective" then return false end
  end
  return true
end

-- ---- simple policies ----------------------------------------------------------------------------

local MOST_DEVICES = 8 -- that are tried one after another: each is a plan

-- Measure other budgets; returns the better ones of these and the best so far.
local function try(measure, room, other, best, least)
  local taken = measure(other)
  if is_better(taken, least, room) then return other, taken end
  return best, least
end

-- The same budgets, but for one device.
local function with(list, device, budget)
  local copy = {}
  for key, value in pairs(list) do copy[key] = value end
  copy[device] = budget
  return copy
end

-- Have single devices run everything again, where that is faster: their R runs while they wait.
local function try_devices(measure, room, best, least)
  for d = 1, #best <= MOST_DEVICES and #best or 0 do
    if math.type(best[d]) == "integer" and best[d] > 0 then
      best, least = try(measure, room, with(best, d, 0), best, least)
    end
  end
  return best, least
end

-- Whether these budgets are those of "selective" on all devices.
local function is_settled(list, policy)
  if policy ~= "selective" then return false end
  for _, budget in ipairs(list) do
    if budget ~= policy then return false end
  end
  return true
end

-- Have all stages follow a policy by name, where that is faster.
local function try_named(measure, room, best, least)
  for _, policy in ipairs(least_of.NAMED) do
    if not is_settled(best, policy) then
      best, least = try(measure, room, least_of.named(policy, #best), best, least)
    end
  end
  return best, least
end

--- Find budgets for what stages keep and have in work, with which a plan fits as far as there are
--- such: of the ways that "auto" has, the one whose step is the shortest by the cost model.
---@param measure fun(list: (integer|false|string)[]?): gpipe.PlanNeed[] what it would take with
--- these; fields `stays`, `whole` and `policy` as in the specification of a plan
---@param room (integer|false)[] what each device may take; false: no limit
---@param links boolean some devices say how they reach the host's memory
---@param stages integer[][] of each device
---@return (integer|false|string)[]? budgets nil if it fits without
function budgets.find(measure, room, links, stages)
  local needs = measure()
  if not short_of(needs, room) then return nil end
  local best, least = search.run(measure, room, needs, search.WAYS[1])
  for way = 2, links and 3 or 2 do
    if way == 3 or not is_selective(best) then
      local other, taken = search.run(measure, room, needs, search.WAYS[way], best)
      if is_better(taken, least, room) then best, least = other, taken end
    end
  end
  best, least = try_devices(measure, room, best, least)
  best, least = try_named(measure, room, best, least)
  local other, taken = refined.run(measure, room, needs, stages)
  if is_better(taken, least, room) then best, least = other, taken end
  if not short_of(least, room) then return best end
  return (least_of.find(measure, room, links, needs))
end

return budgets
