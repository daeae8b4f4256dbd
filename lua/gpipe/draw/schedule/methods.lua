-- lua/gpipe/draw/schedule/methods.lua - the drawing methods of schedules: `s:draw()` and so on.
--
-- They show the last simulation, or one with unit costs. Actions become Lua tables only for the
-- devices that a drawing shows: a thousand devices have millions of actions.

local draw = require "gpipe.draw.schedule"

---@class gpipe.Schedule
local methods = {}

-- ---- timelines ----------------------------------------------------------------------------------

-- Stages of each device, ascending.
local function stages_by_device(self)
  local list = {}
  for d = 1, self.devices do list[d] = {} end
  for stage = 0, self.stages - 1 do
    local places = self.placement[stage]
    for _, device in ipairs(type(places) == "table" and places or { places }) do
      table.insert(list[device + 1], stage)
    end
  end
  return list
end

-- The timeline of a simulation; a row is made when it is first read.
local function timeline_of(self)
  local run = self.last_simulation or self:simulate()
  local rows = {
    __index = function(timeline, d)
      if math.type(d) ~= "integer" or d < 1 or d > run.devices then return nil end
      local row = run:timeline(d - 1)
      rawset(timeline, d, row)
      return row
    end,
  }
  return setmetatable({
    name = run.name, devices = run.devices, makespan = run.makespan, unit = run.unit,
    figures = {
      span = run.span, bubble = run.bubble, peak = run.peak_live, stages = stages_by_device(self),
    },
  }, rows)
end

-- ---- methods ------------------------------------------------------------------------------------

--- Draw the schedule as a text grid with a row for each device; the width of an action is its
--- duration.
---
--- `width`: columns; default COLUMNS, the terminal, 80. `height`: rows of devices (default 32).
--- `colour`: default true on a terminal without NO_COLOR. `measured`: a timeline in seconds to show
--- below each device's row (`scale` is seconds per unit; default: equal makespans). `timelines`:
--- other timelines to show instead.
--- Errors: raises for unknown options and for what is no timeline.
--- ```lua
--- print(gp.schedule.build("1f1b", {devices = 4, chunks = 8}):draw{width = 80})
--- ```
---@param opts? {width?: integer, height?: integer, colour?: boolean, measured?: table, scale?: number,
---  timelines?: table[]}
---@return string
function methods:draw(opts) return draw.text(timeline_of(self), opts, "schedule:draw") end

--- Draw the schedule as an SVG figure. `critical = true` marks the critical path, a list marks its
--- actions; `force = false` keeps an existing file; `width` is in pixels; the other options are
--- `title` and those of `draw`.
--- Errors: raises for unknown options; nil, message, code where the system refuses.
--- ```lua
--- local path = os.tmpname()
--- assert(gp.schedule.build("gpipe", {devices = 4, chunks = 4}):svg(path, {critical = true}))
--- ```
---@param path string
---@param opts? {width?: number, height?: integer, title?: string, critical?: boolean|table,
---  measured?: table, scale?: number, timelines?: table[], force?: boolean}
---@return boolean? true
---@return string? message
---@return string? code "io"; "exists" with force = false
function methods:svg(path, opts)
  local given = timeline_of(self)
  if type(opts) == "table" and opts.critical == true then
    local copy = {}
    for key, value in pairs(opts) do copy[key] = value end
    copy.critical = self.last_simulation.critical
    opts = copy
  end
  return draw.svg(path, given, opts, "schedule:svg")
end

--- Draw the schedule as an HTML page with zoom, tooltips and a table of figures.
--- Errors: raises for unknown options; nil, message, code where the system refuses.
--- ```lua
--- local path = os.tmpname()
--- assert(gp.schedule.build("1f1b", {devices = 4, chunks = 8}):html(path))
--- ```
---@param path string
---@param opts? {title?: string, measured?: table, scale?: number, timelines?: table[],
---  force?: boolean} as in svg
---@return boolean? true
---@return string? message
---@return string? code "io"
function methods:html(path, opts)
  return draw.html(path, timeline_of(self), opts, "schedule:html")
end

--- Write the schedule as Chrome trace JSON with arrows between devices, for ui.perfetto.dev.
--- A unit of cost is shown as a millisecond.
--- Errors: raises for unknown options; nil, message, code where the system refuses.
--- ```lua
--- local path = os.tmpname()
--- assert(gp.schedule.build("1f1b", {devices = 4, chunks = 8}):trace(path))
--- ```
---@param path string
---@param opts? {measured?: table, timelines?: table[], force?: boolean} as in svg
---@return boolean? true
---@return string? message
---@return string? code "io"
function methods:trace(path, opts)
  return draw.trace(path, timeline_of(self), opts, "schedule:trace")
end

return methods
