-- lua/gpipe/pipeline/plan/budgets.lua - how many bytes the stages of each device may keep and have
-- in work with checkpoint = "auto": the most with which a plan fits its device's room.
--
-- They are found by halving, with plans that are measured and not allocated. That is done for each
-- of the ways that "auto" has, because what the programme takes for the bytes of a plan is not what
-- it takes in the end. The programme does not see either what runs while a device waits, and it
-- treats all micro-batches alike, so simple policies are tried last: for all devices, and for one
-- after another. Of all these plans the one with the shortest step by the cost model is taken.

local budgets = {}

local ROUNDS = 8 -- halvings: the budget is found to half a per cent of the device's room
local CLOSE = 0.97 -- of the room: a plan that takes that much is good enough

--- All that a plan would take on a device.
---@param need gpipe.PlanNeed
---@return integer
local function total(need) return need.bytes + need.grown end

budgets.total = total

--- The first device that has too little room, or nil.
---@param needs gpipe.PlanNeed[]
---@param room table per device: bytes, or false for no limit; field host: the same of the host's
--- memory, or nil
---@return integer? device
local function short_of(needs, room)
  for d, need in ipairs(needs) do
    if room[d] and total(need) > room[d] then return d end
    if room.host and room.host[d] and need.host > room.host[d] then return d end
  end
end

budgets.short_of = short_of

-- ---- a search -----------------------------------------------------------------------------------

-- A range of budgets per device: what fits, and what does not.
local function ranges_of(needs, room)
  local ranges = {}
  for d, need in ipairs(needs) do
    local spare = room[d] and math.max(0, room[d] - (total(need) - need.work))
    ranges[d] = spare and total(need) > room[d] and { low = 1, high = 2 * spare + 2 }
  end
  return ranges
end

local function middles(ranges)
  local list = {}
  for d, range in ipairs(ranges) do
    list[d] = range and (range.fixed or (range.low + range.high) // 2)
  end
  return list
end

-- Making cheap values again costs next to nothing, so devices where that is enough are done.
local function try_selective(ranges, measured, room)
  local list = {}
  for d, range in ipairs(ranges) do list[d] = range and "selective" end
  for d, need in ipairs(measured(list)) do
    if ranges[d] and total(need) <= room[d] then ranges[d].fixed = "selective" end
  end
end

-- Halve the ranges by what the budgets in their middles have come to. Returns whether all are found
-- closely enough.
local function halve(ranges, tried, needs, room)
  local found = true
  for d, range in ipairs(ranges) do
    if range and not range.fixed then
      local taken = total(needs[d])
      if taken <= room[d] then range.low = tried[d] else range.high = tried[d] end
      found = found and taken <= room[d] and taken >= CLOSE * room[d]
    end
  end
  return found
end

local function lows(ranges)
  local list = {}
  for d, range in ipairs(ranges) do list[d] = range and (range.fixed or range.low) end
  return list
end

---@class gpipe.PlanNeed what a plan would take on a device, in bytes
---@field bytes integer all of it
---@field work integer of that, what stages keep and have in work
---@field grown integer what the pipeline would hold more for it
---@field host integer of the host's memory
---@field time number seconds of a step by the cost model

-- What to try first: the middles of the ranges, or what another search has found.
local function first_of(ranges, start)
  local list = middles(ranges)
  for d, range in ipairs(ranges) do
    local given = start and start[d]
    if range and not range.fixed and math.type(given) == "integer" and given > range.low
      and given < range.high then list[d] = given end
  end
  return list
end

-- Find budgets with which a plan fits as far as there are such, from what it takes without any.
-- Every list carries the fields of `how`. start: budgets that may be near, or nil.
local function search(measure, room, needs, how, start)
  local ranges = ranges_of(needs, room)
  local function measured(list)
    for key, value in pairs(how) do list[key] = value end
    return measure(list)
  end
  if how.stays then try_selective(ranges, measured, room) end
  for round = 1, ROUNDS do
    local tried = round == 1 and first_of(ranges, start) or middles(ranges)
    if halve(ranges, tried, measured(tried), room) then break end
  end
  local found = lows(ranges)
  local taken = measured(found)
  if not short_of(taken, room) then return found, taken end
  for d, range in ipairs(ranges) do -- where nothing fitted: what "always" takes
    if range and range.low == 1 and not range.fixed then found[d] = 0 end
  end
  return found, measured(found)
end

-- The seconds of a step. Ranks tell theirs for each device: what a rank knows least of is short.
local function step_of(needs)
  local most = 0
  for _, need in ipairs(needs) do most = math.max(most, need.time) end
  return most
end

-- Whether the first plan is the better one: it fits, and the other one does not or is slower.
local function is_better(needs, others, room)
  if short_of(needs, room) then return false end
  return short_of(others, room) ~= nil or step_of(needs) < step_of(others)
end

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
  spec.budgets, spec.stays, spec.whole = found, found.stays, found.whole
  spec.policy = found.policy
end

-- What "auto" may do: keep, make cheap values again, or run layers again as a whole; make some dear
-- values again, too; and send layers to the host's memory.
local WAYS = { { stays = true, whole = true }, { stays = true }, {} }

-- Whether it is enough for all devices with a budget to make cheap values again.
local function is_selective(found)
  for _, budget in ipairs(found) do
    if budget and budget ~= "selective" then return false end
  end
  return true
end

-- ---- simple policies ----------------------------------------------------------------------------

-- Policies by name for all stages, which auto follows where they are faster.
local NAMED = { "selective", "except_last", "always" }

local MOST_DEVICES = 8 -- that are tried one after another: each is a plan

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
      local other = with(best, d, 0)
      local taken = measure(other)
      if is_better(taken, least, room) then best, least = other, taken end
    end
  end
  return best, least
end

-- Have all stages follow a policy by name, where that is faster.
local function try_named(measure, room, best, least)
  for _, policy in ipairs(NAMED) do
    local other = { policy = policy }
    for d = 1, #best do other[d] = false end
    local taken = measure(other)
    if is_better(taken, least, room) then best, least = other, taken end
  end
  return best
end

--- Find budgets for what stages keep and have in work, with which a plan fits as far as there are
--- such: of the ways that "auto" has, the one whose step is the shortest by the cost model.
---@param measure fun(list: (integer|false|string)[]?): gpipe.PlanNeed[] what it would take with
--- these; fields `stays`, `whole` and `policy` as in the specification of a plan
---@param room (integer|false)[] what each device may take; false: no limit
---@param links boolean some devices say how they reach the host's memory
---@return (integer|false|string)[]? budgets nil if it fits without
function budgets.find(measure, room, links)
  local needs = measure()
  if not short_of(needs, room) then return nil end
  local best, least = search(measure, room, needs, WAYS[1])
  for way = 2, links and 3 or 2 do
    if way == 3 or not is_selective(best) then
      local other, taken = search(measure, room, needs, WAYS[way], best)
      if is_better(taken, least, room) then best, least = other, taken end
    end
  end
  best, least = try_devices(measure, room, best, least)
  return try_named(measure, room, best, least)
end

return budgets
