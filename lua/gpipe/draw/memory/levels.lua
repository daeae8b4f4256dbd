-- lua/gpipe/draw/memory/levels.lua - memory over time from spans or levels: steps per area.
--
-- A device is plain data. Its time is in seconds, or counts tasks from 1: then `times` has the name
-- of each task, or the second at which each begins, the last entry being the end of the last one.
-- Whatever was given, a view has steps in ascending order, each with the bytes of every area.

local errors = require "gpipe.errors"

local levels = {}

---@class gpipe.MemorySpan
---@field label string
---@field area string
---@field first number a time; a task that it is alive in
---@field last number a time at which it is gone; the last task that it is alive in
---@field bytes integer

---@class gpipe.MemoryDevice
---@field name string
---@field cap? integer bytes
---@field spans? gpipe.MemorySpan[] what is planned, or
---@field planned? {[1]: number, [2]: table<string, integer>}[] bytes of each area from a time on
---@field measured? {[1]: number, [2]: integer}[] bytes from a time on
---@field times? (string|number)[] of tasks

---@class gpipe.MemoryView
---@field name string
---@field cap integer?
---@field unit string "s", or "" for tasks
---@field names string[]? of tasks
---@field extent number[] first and last time
---@field begin number[] of the steps
---@field finish number of the last step
---@field level table<string, integer[]> bytes of an area at each step
---@field total integer[]
---@field spans {label: string, area: string, begin: number, finish: number, bytes: integer}[]?
---@field measured {at: number, bytes: integer}[]
---@field peak integer of what is planned
---@field peak_step integer where it is; 0: nothing is planned

-- ---- what is given -----------------------------------------------------------------------------

local function fail(device, form, ...)
  errors.raise("memory picture, device '%s': " .. form, errors.name(tostring(device.name)), ...)
end

local function is_finite(value)
  return type(value) == "number" and value == value and math.abs(value) < math.huge
end

local function check_bytes(device, what, value)
  if is_finite(value) and value >= 0 then return value end
  fail(device, "%s is %s, expected bytes", what, errors.show(value))
end

local function check_time(device, what, value)
  if is_finite(value) then return value end
  fail(device, "%s is %s, expected a time", what, errors.show(value))
end

-- Functions from a time as given to the begin and the end of it on the axis; the unit; the names.
local function clock_of(device)
  local times = device.times
  if not times then
    local function same(time) return time end
    return same, same, "s"
  end
  local named = type(times[1]) == "string"
  local function place(task, behind)
    local at = math.tointeger(task)
    if not at or at < 1 or at > #times then
      fail(device, "there is no task %s, expected 1 to %d", errors.show(task), #times)
    end
    if named then return at - 1 + behind end
    return times[math.min(#times, at + behind)]
  end
  for i = 2, named and 0 or #times do
    if not is_finite(times[i]) or times[i] < times[i - 1] then
      fail(device, "times[%d] is %s, expected ascending seconds", i, errors.show(times[i]))
    end
  end
  return function(task) return place(task, 0) end, function(task) return place(task, 1) end,
    named and "" or "s", named and times or nil
end

-- ---- steps -------------------------------------------------------------------------------------

-- Spans on the axis, and what begins and ends at each time.
local function spans_of(device, begin_of, end_of)
  local list, events = {}, {}
  for i, span in ipairs(device.spans) do
    local what = ("spans[%d]"):format(i)
    local one = { label = span.label or "", area = span.area or "memory",
      begin = begin_of(check_time(device, what .. ".first", span.first)),
      finish = end_of(check_time(device, what .. ".last", span.last)),
      bytes = check_bytes(device, what .. ".bytes", span.bytes) }
    if one.finish < one.begin then
      fail(device, "%s ends at %s, before it begins at %s", what, one.finish, one.begin)
    end
    list[i] = one
    events[2 * i - 1] = { at = one.begin, area = one.area, by = one.bytes }
    events[2 * i] = { at = one.finish, area = one.area, by = -one.bytes }
  end
  table.sort(events, function(a, b) return a.at < b.at end)
  return list, events
end

local function add_step(view, at, now)
  local i, sum = #view.begin + 1, 0
  view.begin[i] = at
  for area, bytes in pairs(now) do
    local level = view.level[area] or {}
    for k = #level + 1, i - 1 do level[k] = 0 end
    level[i], view.level[area], sum = bytes, level, sum + bytes
  end
  view.total[i] = sum
  if sum > view.peak then view.peak, view.peak_step = sum, i end
end

local function steps_of_events(view, events)
  local now, i = {}, 1
  while i <= #events do
    local at = events[i].at
    while i <= #events and events[i].at == at do
      now[events[i].area] = (now[events[i].area] or 0) + events[i].by
      i = i + 1
    end
    if i <= #events then add_step(view, at, now) else view.finish = at end
  end
end

local function steps_of_levels(view, device, begin_of, end_of)
  local before = -math.huge
  for i, entry in ipairs(device.planned) do
    local at = begin_of(check_time(device, ("planned[%d][1]"):format(i), entry[1]))
    if at < before then
      fail(device, "planned[%d] is at %s, expected ascending times", i, errors.show(entry[1]))
    end
    for area, bytes in pairs(entry[2]) do
      check_bytes(device, ("planned[%d].%s"):format(i, area), bytes)
    end
    add_step(view, at, entry[2])
    before = at
  end
  local last = device.planned[#device.planned]
  if last then view.finish = end_of(last[1]) end
end

local function measured_of(device, begin_of)
  local list = {}
  for i, entry in ipairs(device.measured or {}) do
    local what = ("measured[%d]"):format(i)
    list[i] = { at = begin_of(check_time(device, what .. "[1]", entry[1])),
      bytes = check_bytes(device, what .. "[2]", entry[2]) }
    if i > 1 and list[i].at < list[i - 1].at then
      fail(device, "%s is before the one ahead of it, expected ascending times", what)
    end
  end
  return list
end

-- ---- views -------------------------------------------------------------------------------------

local function extent_of(view, device)
  local from, to = view.begin[1] or math.huge, view.finish
  local first, last = view.measured[1], view.measured[#view.measured]
  if first then from, to = math.min(from, first.at), math.max(to, last.at) end
  if view.names then from, to = 0, #device.times end
  if from > to then from, to = 0, 1 end
  if from == to then to = from + 1 end
  return { from, to }
end

--- The view of a device.
---@param device gpipe.MemoryDevice
---@return gpipe.MemoryView
function levels.view(device)
  if device.cap then check_bytes(device, "cap", device.cap) end
  local begin_of, end_of, unit, names = clock_of(device)
  local view = { name = tostring(device.name or ""), cap = device.cap, unit = unit, names = names,
    begin = {}, finish = -math.huge, level = {}, total = {}, peak = 0, peak_step = 0 }
  if device.spans then
    local events
    view.spans, events = spans_of(device, begin_of, end_of)
    steps_of_events(view, events)
  elseif device.planned then
    steps_of_levels(view, device, begin_of, end_of)
  end
  view.measured = measured_of(device, begin_of)
  view.extent = extent_of(view, device)
  for _, level in pairs(view.level) do
    for i = #level + 1, #view.begin do level[i] = 0 end
  end
  if view.finish < view.extent[2] and view.names then view.finish = view.extent[2] end
  return view
end

--- The number of the step that a time falls into; 0: nothing is planned then.
---@param view gpipe.MemoryView
---@param time number
---@return integer
function levels.step_at(view, time)
  local low, high = 0, #view.begin
  while low < high do
    local middle = (low + high + 1) // 2
    if view.begin[middle] <= time then low = middle else high = middle - 1 end
  end
  return time > view.finish and 0 or low
end

--- The largest measured value.
---@param view gpipe.MemoryView
---@return integer? bytes nil where nothing was measured
function levels.measured_peak(view)
  local most
  for _, entry in ipairs(view.measured) do most = math.max(most or 0, entry.bytes) end
  return most
end

--- Reduce a view to `count` columns of equal time: of each the step at which most is planned, and
--- the largest measured value. A column between two steps has the earlier one.
---@param view gpipe.MemoryView
---@param from number
---@param to number
---@param count integer
---@return {step: integer, measured: integer?}[]
function levels.columns(view, from, to, count)
  local list, step, probe, width = {}, 0, 0, (to - from) / count
  for c = 1, count do
    local stop = from + c * width
    while step < #view.begin and view.begin[step + 1] <= stop - width do step = step + 1 end
    local best, k = step, step + 1
    while k <= #view.begin and view.begin[k] < stop do
      if best == 0 or view.total[k] > view.total[best] then best = k end
      k = k + 1
    end
    if stop - width >= view.finish then best = 0 end
    while view.measured[probe + 1] and view.measured[probe + 1].at <= stop - width do
      probe = probe + 1
    end
    local most, m = view.measured[probe] and view.measured[probe].bytes, probe + 1
    while view.measured[m] and view.measured[m].at < stop do
      most = math.max(most or 0, view.measured[m].bytes)
      m = m + 1
    end
    list[c] = { step = best, measured = most }
  end
  return list
end

return levels
