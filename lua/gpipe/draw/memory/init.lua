-- lua/gpipe/draw/memory/init.lua - pictures of a device's memory over time, and what is alive at a
-- moment.
--
-- Areas that are planned are stacked, what was measured is a line over them, the cap another one.
-- All pictures are made from plain data: nothing here knows a pipeline.

local columns = require "gpipe.draw.columns"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local file = require "gpipe.draw.file"
local levels = require "gpipe.draw.memory.levels"
local options = require "gpipe.options"
local scale = require "gpipe.draw.memory.scale"
local screen = require "gpipe.screen"
local sizes = require "gpipe.sizes"

local memory = {}

-- One device, or a list of them.
local function list_of(devices)
  if type(devices) ~= "table" then
    errors.raise("memory picture: the devices are %s, expected a table", errors.show(devices))
  end
  return devices[1] and devices or next(devices) and { devices } or {}
end

local TEXT = { title = { type = "string" } }
for name, rule in pairs(screen.PICTURE) do TEXT[name] = rule end
local FILE = { title = { type = "string" }, width = screen.PICTURE.width,
  force = { type = "boolean", default = true } } -- as pictures of schedules and steps

--- Draw memory over time as text for a terminal, a row for each device.
--- Errors: raises for data that cannot be drawn.
---@param devices gpipe.MemoryDevice|gpipe.MemoryDevice[]
---@param opts? {title?: string, width?: integer, height?: integer, colour?: boolean,
---  unicode?: boolean} height: lines of a device's plot
---@return string
function memory.text(devices, opts)
  local o = options.check("memory picture", opts, TEXT)
  local given = o.height
  screen.fill_in(o)
  local made = scale.of(list_of(devices))
  o.height = given or (#made.views > 4 and 5 or 8)
  return core.plain_numbers(function()
    return require "gpipe.draw.memory.text".render(made, o)
  end)
end

local function write(render, devices, path, opts)
  local o = options.check("memory picture", opts, FILE)
  local made = scale.of(list_of(devices))
  return file.write("memory picture", path, o.force, function() return render(made, o) end)
end

--- Write memory over time as an SVG figure; `force = false` keeps an existing file.
--- Errors: raises for data that cannot be drawn; nil, message, code where the file cannot be
--- written ("io") or, with force = false, is there ("exists").
---@param devices gpipe.MemoryDevice|gpipe.MemoryDevice[]
---@param path string
---@param opts? {title?: string, width?: integer, force?: boolean} width: points
---@return boolean? true
---@return string? message
---@return string? code
function memory.svg(devices, path, opts)
  return write(require "gpipe.draw.memory.svg".render, devices, path, opts)
end

--- Write memory over time as a page: a click on a moment lists what is alive. Errors: as `svg`.
---@param devices gpipe.MemoryDevice|gpipe.MemoryDevice[]
---@param path string
---@param opts? {title?: string, force?: boolean}
---@return boolean? true
---@return string? message
---@return string? code
function memory.html(devices, path, opts)
  return write(require "gpipe.draw.memory.html".render, devices, path, opts)
end

-- ---- what is alive -----------------------------------------------------------------------------

-- The time of a moment: a time as given, or the name of a task.
local function time_of(view, moment)
  if type(moment) == "number" then return view.names and moment - 1 or moment end
  for i, name in ipairs(view.names or {}) do
    if name == moment then return i - 1 end
  end
  errors.raise("memory picture, device '%s': there is no task %s, expected one of its %d tasks",
    errors.name(view.name), errors.show(moment), #(view.names or {}))
end

local function larger(a, b)
  if a.bytes ~= b.bytes then return a.bytes > b.bytes end
  if a.area ~= b.area then return a.area < b.area end
  return a.label < b.label
end

--- List what is alive on a device at a moment, the largest first. Where only levels are given, each
--- area is one entry.
---@param device gpipe.MemoryDevice
---@param moment number|string a time in the axis' unit, the number of a task, or its name
---@return {label: string, area: string, bytes: integer}[]
function memory.alive(device, moment)
  local view, list = levels.view(device), {}
  local time = time_of(view, moment)
  for _, span in ipairs(view.spans or {}) do
    if span.bytes > 0 and span.begin <= time and time < span.finish then
      list[#list + 1] = { label = span.label, area = span.area, bytes = span.bytes }
    end
  end
  local step = view.spans and 0 or levels.step_at(view, time)
  for area, level in pairs(step > 0 and view.level or {}) do
    if level[step] > 0 then list[#list + 1] = { label = area, area = area, bytes = level[step] } end
  end
  table.sort(list, larger)
  return list
end

--- Such a list as a table for the terminal, with the sum of all.
---@param list {label: string, area: string, bytes: integer}[]
---@param most? integer entries that are listed; the rest is one line
---@return string
function memory.list_text(list, most)
  local rows, sum, rest = {}, 0, 0
  for i, entry in ipairs(list) do
    sum = sum + entry.bytes
    if i <= (most or 20) then
      rows[i] = { entry.label, entry.area, sizes.text(entry.bytes) }
    else
      rest = rest + entry.bytes
    end
  end
  if rest > 0 then
    rows[#rows + 1] = { ("%d more"):format(#list - #rows), "", sizes.text(rest) }
  end
  rows[#rows + 1] = { "together", "", sizes.text(sum) }
  return columns.text(rows)
end

--- What is alive at a moment as a table for the terminal.
---@param device gpipe.MemoryDevice
---@param moment number|string
---@param most? integer entries that are listed
---@return string
function memory.alive_text(device, moment, most)
  return memory.list_text(memory.alive(device, moment), most)
end

return memory
