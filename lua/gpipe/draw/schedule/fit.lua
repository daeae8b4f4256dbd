-- lua/gpipe/draw/schedule/fit.lua - choose how many columns a unit of time gets, and what labels
-- say.
--
-- The fullest labels that fit are chosen: with stage and version, then less, then the op alone.
-- Where the times have a common quantum, it gets a whole number of columns, so that equal actions
-- are equally wide.

local fit = {}

-- ---- labels -------------------------------------------------------------------------------------

-- A style is a function (action, place) that returns the label of an action; `place` is that of its
-- stage among the stages of the device.

local function micro_of(action) return action.micro or "" end
local function version_of(action) return "@" .. (action.version or 0) end

local function with_op(action) return action.op:sub(1, 1) end
local function with_micro(action) return action.op .. micro_of(action) end
local function with_version(action) return with_micro(action) .. version_of(action) end
local function with_stage(action) return (action.stage or "") .. with_micro(action) end
local function with_all(action) return with_stage(action) .. version_of(action) end

-- With two stages a device, write the second one in lower case where its number has no room.
local function in_case(style)
  return function(action, place)
    return place > 1 and style(action):lower() or style(action)
  end
end

-- The styles from the fullest to the shortest; and whether case tells stages apart.
local function styles_of(views)
  local most, versions = 1, false
  for _, view in ipairs(views) do
    versions = versions or view.versions
    for d = 1, view.devices do most = math.max(most, #view.stages[d]) end
  end
  local case = most == 2 and in_case or function(style) return style end
  local list = {}
  if versions then list[1] = most > 1 and with_all or with_version end
  if most > 1 then list[#list + 1] = with_stage end
  list[#list + 1] = case(with_micro)
  list[#list + 1] = case(with_op)
  return list, most == 2
end

-- ---- times --------------------------------------------------------------------------------------

local MOST_PARTS = 20     -- quanta that the shortest action may have
local TOLERANCE = 1e-6    -- of a quantum

-- Call visit(action, begin, finish) for the actions of the shown rows, in the axis' unit.
local function each_shown(layout, views, axis, visit)
  for k, view in ipairs(views) do
    local factor = axis.factors[k]
    for _, d in ipairs(layout.shown) do
      view:each(d, function(action, begin, finish, half)
        visit(action, begin * factor, finish * factor, half > 0, view:chunk(d, action.stage))
      end)
    end
  end
end

local function is_multiple(time, quantum)
  local times = time / quantum
  return math.abs(times - math.floor(times + 0.5)) <= TOLERANCE * math.max(1, times)
end

-- The largest time of which all begins and finishes are multiples; nil where it would be too small.
local function quantum_of(times, shortest)
  if shortest == math.huge then return nil end
  for parts = 1, MOST_PARTS do
    local quantum, good = shortest / parts, true
    for i = 1, #times do
      good = is_multiple(times[i], quantum)
      if not good then break end
    end
    if good then return quantum end
  end
end

-- The distinct times, the shortest duration, and all durations. Halves of a pair count as actions.
local function collect(layout, views, axis)
  local times, seen, shortest, durations = {}, {}, math.huge, {}
  local function add(time)
    if not seen[time] then seen[time], times[#times + 1] = true, time end
  end
  each_shown(layout, views, axis, function(_, begin, finish, paired)
    add(begin)
    add(finish)
    if paired then add((begin + finish) / 2) end
    local duration = (finish - begin) / (paired and 2 or 1)
    if duration > 0 then
      shortest = math.min(shortest, duration)
      durations[#durations + 1] = duration
    end
  end)
  table.sort(durations)
  return times, shortest, durations
end

-- The columns per time that the labels of a style need; actions much shorter than most do not
-- count.
local function need_of(style, gap, layout, views, axis, median)
  local need = 0
  each_shown(layout, views, axis, function(action, begin, finish, paired, place)
    local duration = (finish - begin) / (paired and 2 or 1)
    if duration < 0.45 * median then return end
    need = math.max(need, (#style(action, place) + gap) / duration)
  end)
  return need
end

-- What is tried, in order: each style with a gap after the label; labels that begin with a letter
-- are also tried without one.
local function attempts_of(styles)
  local list = {}
  for i, style in ipairs(styles) do
    list[#list + 1] = { style = i, label = style, gap = 1 }
    if i == #styles - 1 then list[#list + 1] = { style = i, label = style, gap = 0 } end
  end
  return list
end

--- Choose layout.columns, columns_per_time (of the axis), styles and style (the fullest to try),
--- and dense: whether several actions share a column. Where there is no room for numbers of
--- micro-batches, layout.numbers is how many columns they would need.
---@param layout table shown: the devices with rows
---@param views gpipe.View[]
---@param axis gpipe.Scale
---@param room integer columns there are
function fit.choose(layout, views, axis, room)
  local times, shortest, durations = collect(layout, views, axis)
  local quantum = quantum_of(times, shortest)
  local median = durations[(#durations + 1) // 2] or axis.extent
  layout.styles, layout.case = styles_of(views)
  layout.style, layout.columns_per_time = #layout.styles, room / axis.extent
  local function settle(style, per_time)
    layout.style, layout.columns_per_time = style, per_time
    layout.columns = math.max(1, math.min(room, math.ceil(axis.extent * per_time - 1e-6)))
  end
  for _, try in ipairs(attempts_of(layout.styles)) do
    local need = need_of(try.label, try.gap, layout, views, axis, median)
    local whole = quantum and math.ceil(need * quantum - 1e-9) / quantum
    if whole and whole * axis.extent <= room + 1e-6 then return settle(try.style, whole) end
    if need * axis.extent <= room then return settle(try.style, room / axis.extent) end
  end
  -- labels without micro-batches; note how many columns would have room for them
  local least = need_of(layout.styles[#layout.styles - 1], 0, layout, views, axis, median)
  local exact = quantum and math.ceil(least * quantum - 1e-9) / quantum or least
  layout.numbers = math.ceil(exact * axis.extent - 1e-6)
  -- no room for a letter and a gap each: whole columns per quantum if there are enough of them
  local per_quantum = quantum and math.floor(room / (axis.extent / quantum) + 1e-6) or 0
  layout.dense = per_quantum < 1
  settle(#layout.styles, per_quantum >= 1 and per_quantum / quantum or room / axis.extent)
end

return fit
