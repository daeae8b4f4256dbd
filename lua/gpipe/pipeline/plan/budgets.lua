-- lua/gpipe/pipeline/plan/budgets.lua - how many bytes the stages of each device may keep and have
-- in work with checkpoint = "auto": the most with which a plan fits its device's room.
--
-- They are found by halving, with plans that are measured and not allocated. Where a device says
-- how it reaches the host's memory, that is done twice, with and without the use of it, and what
-- takes less time by the cost model is taken.

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
---@field time number seconds of a micro-batch by the cost model, where that is asked for

-- Find budgets with which a plan fits as far as there are such, from what it takes without any.
-- selects: a device is done where it is enough to make cheap values again.
local function search(measure, room, needs, selects)
  local ranges = ranges_of(needs, room)
  if selects then try_selective(ranges, measure, room) end
  for _ = 1, ROUNDS do
    local tried = middles(ranges)
    if halve(ranges, tried, measure(tried), room) then break end
  end
  local found = lows(ranges)
  if not short_of(measure(found), room) then return found end
  for d, range in ipairs(ranges) do -- where nothing fitted: what "always" takes
    if range and range.low == 1 and not range.fixed then found[d] = 0 end
  end
  return found
end

-- What the slowest device takes for a micro-batch, by the cost model.
local function slowest(needs)
  local most = 0
  for _, need in ipairs(needs) do most = math.max(most, need.time) end
  return most
end

-- Whether the first plan is the better one: it fits, and the other one does not or is slower.
local function is_better(needs, others, room)
  if short_of(needs, room) then return false end
  return short_of(others, room) ~= nil or slowest(needs) < slowest(others)
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

--- Find budgets for what stages keep and have in work, with which a plan fits as far as there are
--- such.
---@param measure fun(list: (integer|false|string)[]?, stays: boolean): gpipe.PlanNeed[] what it
--- would take with these; stays: nothing goes to the host's memory
---@param room (integer|false)[] what each device may take; false: no limit
---@param links boolean some devices say how they reach the host's memory
---@return (integer|false|string)[]? budgets nil if it fits without; field stays: as above
function budgets.find(measure, room, links)
  local function staying(list) return measure(list, true) end
  local function going(list) return measure(list, false) end
  local needs = staying()
  if not short_of(needs, room) then return nil end
  local found = search(staying, room, needs, true)
  found.stays = true
  if not links then return found end
  local other = search(going, room, needs, false)
  return is_better(going(other), staying(found), room) and other or found
end

return budgets
