-- lua/gpipe/draw/runs/data.lua - the data of the page of runs, as one table that becomes JSON.

local colours = require "gpipe.draw.colours"
local core = require "gpipe.core"
local curves = require "gpipe.run_reader.curves"
local folder = require "gpipe.run_reader.folder"
local progress = require "gpipe.progress"
local read = require "gpipe.run_reader.read"
local runs_table = require "gpipe.run_reader.table"

local data = {}

-- Points of all curves together, so that a page of many runs still opens quickly; and of one curve.
local ALL_POINTS, MOST_POINTS, LEAST_POINTS = 300000, 1000, 60

local LARGEST_TIMELINE = 2 << 20 -- bytes of a picture that is put into the page

local FIELDS = { "name", "path", "state", "reason", "step", "steps", "loss", "best", "rate",
  "unit" }

-- ---- points ------------------------------------------------------------------------------------

-- Six digits are more than a screen shows; the text is a third as long.
local function short(list)
  local rounded = {}
  for i, value in ipairs(list) do
    local whole = math.tointeger(value)
    rounded[i] = whole or tonumber(("%.6g"):format(value))
  end
  return rounded
end

-- The curve of a name; nil where the records have nothing to show.
local function curve_of(records, name, most, run)
  local x, low, high, mean, _, left_out = core.records_curve(records, name, most, 0)
  if not x or #x == 0 then return nil end
  return { run = run, x = short(x), low = short(low), high = short(high), mean = short(mean),
    left_out = left_out, last = (core.records_last(records, name)) }
end

-- Charts of all names of some records of the runs.
local function charts_of(runs, names, records_of, most)
  local charts = {}
  for _, name in ipairs(names) do
    local chart = { name = name, curves = {} }
    for r, run in ipairs(runs) do
      chart.curves[#chart.curves + 1] = curve_of(records_of(run), name, most, r - 1)
    end
    if #chart.curves > 0 then charts[#charts + 1] = chart end
  end
  return charts
end

-- Sort names: "loss" first, then other losses.
local function losses_first(names)
  local function rank(name)
    return name == "loss" and 0 or name:find "loss$" and 1 or 2
  end
  table.sort(names, function(a, b)
    if rank(a) ~= rank(b) then return rank(a) < rank(b) end
    return a < b
  end)
  return names
end

-- The names in timing.jsonl, without the clock itself.
local function machine_names(runs)
  local seen, names = { time = true, seconds = true }, {}
  for _, run in ipairs(runs) do
    for _, name in ipairs(core.records_names(folder.timing(run))) do
      if not seen[name] then seen[name], names[#names + 1] = true, name end
    end
  end
  table.sort(names)
  return names
end

-- ---- runs --------------------------------------------------------------------------------------

-- Seconds over steps, for the axis of time.
local function clock_of(run, most)
  local timing = folder.timing(run)
  local name = core.records_last(timing, "seconds") and "seconds" or "time"
  local x, _, _, mean = core.records_curve(timing, name, most, 0)
  if not x or #x == 0 then return nil end
  local zero, times = name == "time" and mean[1] or 0, {}
  for i, time in ipairs(mean) do times[i] = time - zero end
  return { x = short(x), mean = short(times) }
end

local function timeline_of(run)
  local text = read.text(run.path .. "/timeline.svg")
  local is_image = text and (text:find "^%s*<svg[%s>]" or text:find "^%s*<%?xml[^>]*>%s*<svg[%s>]")
  return is_image and #text <= LARGEST_TIMELINE and utf8.len(text) and text or nil
end

-- A list of devices; nil where the file is missing or holds something else.
local function memory_of(run)
  local list = read.object(run.path .. "/memory.json")
  local devices = {}
  for i, entry in ipairs(list or devices) do
    local parts = {}
    for name in pairs(read.table(entry, "parts") or parts) do
      parts[name] = read.number(entry.parts, name)
    end
    devices[i] = { device = read.string(entry, "device") or tostring(i), parts = parts,
      planned = read.number(entry, "planned"), measured = read.number(entry, "measured") }
  end
  return #devices > 0 and devices or nil
end

local function facts_of(run, most, now)
  local facts = { config = run.config, clock = clock_of(run, most), timeline = timeline_of(run),
    memory = memory_of(run), faults = #run.faults > 0 and run.faults or nil,
    spent = run.seconds and progress.clock(run.seconds),
    when = runs_table.age(run.updated, now) }
  for _, field in ipairs(FIELDS) do facts[field] = run[field] end
  return facts
end

local function palette()
  local list = {}
  for place, colour in ipairs(colours.curves) do list[place] = { colour.day, colour.night } end
  return list
end

--- Collect everything that the page shows.
---@param runs gpipe.RunFolder[]
---@param live boolean the page is served and asks for more
---@return table
function data.of(runs, live)
  local names, machine = losses_first(curves.names(runs)), machine_names(runs)
  local count = math.max(1, #runs * (#names + #machine))
  local most = math.max(LEAST_POINTS, math.min(MOST_POINTS, ALL_POINTS // count))
  local made = { live = live, now = os.time(), palette = palette(), runs = {},
    charts = charts_of(runs, names, folder.log, most),
    machine = charts_of(runs, machine, folder.timing, most) }
  for i, run in ipairs(runs) do made.runs[i] = facts_of(run, most, made.now) end
  return made
end

return data
