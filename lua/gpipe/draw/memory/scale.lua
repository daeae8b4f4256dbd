-- lua/gpipe/draw/memory/scale.lua - the axes that all devices of a picture share, and its words.
--
-- All rows have one scale of bytes: how unequal devices are is what one looks for. A cap far above
-- what is planned would flatten everything, so it is named then, not drawn.

local areas = require "gpipe.draw.memory.areas"
local axis = require "gpipe.draw.axis"
local levels = require "gpipe.draw.memory.levels"
local sizes = require "gpipe.sizes"

local scale = {}

local FAR = 2.5 -- times the highest value: a cap further away is not drawn

---@class gpipe.MemoryScale
---@field views gpipe.MemoryView[]
---@field areas gpipe.AreaColour[] from the bottom to the top
---@field from number
---@field to number
---@field unit string of times
---@field most number bytes at the upper edge
---@field names string[]? of tasks, where all devices have the same

local UNITS = { { 1 << 40, "TiB" }, { 1 << 30, "GiB" }, { 1 << 20, "MiB" }, { 1 << 10, "KiB" } }

-- The largest unit of which `bytes` has at least one.
local function unit_of(bytes)
  for _, unit in ipairs(UNITS) do
    if bytes >= unit[1] then return unit[1], unit[2] end
  end
  return 1, "bytes"
end

--- Ticks of an axis of bytes from 0 on, with units.
---@param most number bytes at its end
---@param count integer about so many
---@return {at: number, text: string}[]
function scale.byte_ticks(most, count)
  local divisor, name = unit_of(most)
  local list = {}
  local whole = axis.new(0, most / divisor, { most = count, whole = name == "bytes" })
  for i, tick in ipairs(whole.ticks) do
    local text = tick.at == 0 and "0" or tick.text .. " " .. name
    list[i] = { at = tick.at * divisor, text = text }
  end
  return list
end

--- Is the cap of a device within the picture?
---@param made gpipe.MemoryScale
---@param view gpipe.MemoryView
---@return boolean
function scale.shows_cap(made, view) return view.cap ~= nil and view.cap <= made.most end

-- The names of tasks for the axis. Where devices have different ones, there are numbers instead.
local function common_names(views)
  local names, same = nil, true
  for _, view in ipairs(views) do
    for i, name in ipairs(view.names or {}) do same = same and (not names or names[i] == name) end
    if view.names and (not names or #view.names > #names) then names = view.names end
  end
  for i = 1, not same and #names or 0 do
    if i == 1 then names = { table.unpack(names) } end
    names[i] = tostring(i)
  end
  return names
end

--- The scale of several devices.
---@param devices gpipe.MemoryDevice[]
---@return gpipe.MemoryScale
function scale.of(devices)
  local made = { views = {}, from = math.huge, to = -math.huge, unit = "s" }
  local present, most = {}, 0
  for i, device in ipairs(devices) do
    local view = levels.view(device)
    made.views[i], made.unit = view, view.unit
    made.from, made.to = math.min(made.from, view.extent[1]), math.max(made.to, view.extent[2])
    for area in pairs(view.level) do present[area] = true end
    most = math.max(most, view.peak, levels.measured_peak(view) or 0)
  end
  if most == 0 then most = 1 end
  local top = most
  for _, view in ipairs(made.views) do
    if view.cap and view.cap <= FAR * most then top = math.max(top, view.cap) end
  end
  made.most, made.areas, made.names = top * 1.04, areas.order(present), common_names(made.views)
  if not made.views[1] then made.from, made.to = 0, 1 end
  return made
end

--- What a moment of a device is called: the name of its task, or its time.
---@param view gpipe.MemoryView
---@param time number
---@return string
function scale.moment(view, time)
  if view.names then
    return view.names[math.min(#view.names, math.floor(time) + 1)] or tostring(time)
  end
  return time == 0 and "0 s" or axis.time(time, view.unit)
end

--- The figures of a device in a line: "peak 12.3 GiB at 3F1, 77 % of the cap 16.0 GiB".
---@param view gpipe.MemoryView
---@return string
function scale.figures(view)
  local parts, measured = {}, levels.measured_peak(view)
  if view.peak_step > 0 then
    parts[1] = ("peak %s at %s"):format(sizes.text(view.peak),
      scale.moment(view, view.begin[view.peak_step]))
  end
  if measured then parts[#parts + 1] = ("measured %s"):format(sizes.text(measured)) end
  if view.cap then
    local share = view.cap > 0 and 100 * math.max(view.peak, measured or 0) / view.cap or math.huge
    local words = share < 0.5 and "less than 1 %" or ("%.0f %%"):format(share)
    parts[#parts + 1] = ("%s of the cap %s"):format(words, sizes.text(view.cap))
  end
  return #parts > 0 and table.concat(parts, ", ") or "nothing planned"
end

--- Ticks of the time axis. Tasks have their names, as many as have room.
---@param made gpipe.MemoryScale
---@param most integer about so many
---@return {at: number, text: string}[] ticks
---@return string name of the axis
function scale.time_ticks(made, most)
  if not made.names then
    local shown = axis.new(made.from, made.to, { most = most, time = made.unit == "s" })
    return shown.ticks, ("time (%s)"):format(shown.unit)
  end
  local list, every = {}, math.max(1, math.ceil(#made.names / math.max(1, most)))
  for i = 1, #made.names, every do
    list[#list + 1] = { at = i - 0.5, text = made.names[i] }
  end
  return list, "task"
end

return scale
