-- lua/gpipe/pipeline/plan/budgets/search.lua - halves ranges of budgets until plans fill the
-- room of their devices, for one of the ways that "auto" has.

local needs_of = require "gpipe.pipeline.plan.budgets.needs"

local search = {}

local total, short_of = needs_of.total, needs_of.short_of

local ROUNDS = 8 -- halvings: the budget is found to half a per cent of the device's room
local CLOSE = 0.97 -- of the room: a plan that takes that much is good enough

--- What "auto" may do: keep, make cheap values again, or run layers again as a whole; make some
--- dear values again, too; and send layers to the host's memory.
search.WAYS = { { stays = true, whole = true }, { stays = true }, {} }

--- A range of budgets per device: what fits, and what does not.
function search.ranges(needs, room)
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

--- Making cheap values again costs next to nothing, so devices where that is enough are done.
function search.try_selective(ranges, measured, room)
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
      local spare = room[d] - (taken - needs[d].work)
      found = found and taken <= room[d] and needs[d].work >= CLOSE * spare
    end
  end
  return found
end

local function lows(ranges)
  local list = {}
  for d, range in ipairs(ranges) do list[d] = range and (range.fixed or range.low) end
  return list
end

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

--- Give a list the fields of `how`.
function search.with(list, how)
  for key, value in pairs(how) do list[key] = value end
  return list
end

--- The function that measures such lists.
function search.measurer(measure, how)
  return function(list) return measure(search.with(list, how)) end
end

local function are_equal(list, other)
  for d, budget in ipairs(list) do
    if other[d] ~= budget then return false end
  end
  return true
end

--- Find budgets with which a plan fits as far as there are such, from what it takes without any.
--- Every list carries the fields of `how`. start: budgets that may be near, or nil.
function search.run(measure, room, needs, how, start)
  local ranges, measured = search.ranges(needs, room), search.measurer(measure, how)
  if how.stays then search.try_selective(ranges, measured, room) end
  local best, least = {}, nil -- what was tried last of what turned out to be the lows
  for round = 1, ROUNDS do
    local tried = round == 1 and first_of(ranges, start) or middles(ranges)
    local taken = measured(tried)
    local done = halve(ranges, tried, taken, room)
    if are_equal(lows(ranges), tried) then best, least = tried, taken end
    if done then break end
  end
  local found = search.with(lows(ranges), how)
  local taken = are_equal(found, best) and least or measured(found)
  if not short_of(taken, room) then return found, taken end
  for d, range in ipairs(ranges) do -- where nothing fitted: what "always" takes
    if range and range.low == 1 and not range.fixed then found[d] = 0 end
  end
  return found, measured(found)
end

return search
