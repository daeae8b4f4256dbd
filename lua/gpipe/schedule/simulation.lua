-- lua/gpipe/schedule/simulation.lua - the result of a simulation: figures, timeline, critical path.
--
-- The begins and ends of millions of actions stay in C; the list of a device is made when it is
-- asked for.

local columns = require "gpipe.draw.columns"
local counted = require "gpipe.counted"
local errors = require "gpipe.errors"

local PATH = 10000 -- actions of the critical path that are kept as tables
local SHOWN = 16   -- devices, and actions of the path, that a summary shows

---@class gpipe.Simulation
---@field name string the schedule's
---@field devices integer
---@field chunks integer
---@field stages integer
---@field unit string of all times: "" or "s"
---@field makespan number from the start to the end of the last action
---@field span number the longest time from a device's first action to its last
---@field work number[] per device (element 1 is device 0): sum of its actions
---@field finish number[] per device: end of its last action
---@field bubble number[] per device: idle / makespan
---@field peak_live integer[] per device: activations of one (stage, micro-batch) held at once
---@field peak_bytes number[] per device
---@field versions integer[] per device: versions of the weights of one stage held at once
---@field critical table[] actions {op, stage, micro, device, begin, finish, after}
---@field critical_length integer actions of the whole path; `critical` may have only the first ones
local Simulation = {}
local meta = { __name = "gpipe.Simulation", methods = Simulation }

-- The critical path becomes tables when it is asked for: a planner simulates thousands of schedules
-- and looks at the path of one.
function meta:__index(key)
  if key == "critical" or key == "critical_length" then
    self.critical, self.critical_length = self.run:critical(PATH)
    return rawget(self, key)
  end
  return Simulation[key]
end

--- Read the figures of a run.
---@param schedule gpipe.Schedule
---@param run any from core.simulate
---@param unit string
---@return gpipe.Simulation
function Simulation.new(schedule, run, unit)
  local self = {
    name = schedule.name, devices = schedule.devices, chunks = schedule.chunks,
    stages = schedule.stages, unit = unit, run = run,
    finish = {}, work = {}, bubble = {}, peak_live = {}, peak_bytes = {}, versions = {},
  }
  self.makespan, self.span = run:total()
  if self.makespan >= math.huge then
    errors.raise("schedule:simulate: the costs add up to more than a number can say, expected "
      .. "smaller ones")
  end
  for d = 1, self.devices do
    local _, finish, work, live, bytes, versions = run:device(d - 1)
    self.finish[d], self.work[d], self.versions[d] = finish, work, versions
    self.peak_live[d], self.peak_bytes[d] = live, bytes
    self.bubble[d] = self.makespan > 0 and (self.makespan - work) / self.makespan or 0
  end
  return setmetatable(self, meta)
end

--- When each action begins and ends: {name, devices, makespan, unit, [1 ... devices] = list of {op,
--- stage, micro, version, begin, finish, joined}}, element 1 for device 0. A `joined` action runs
--- together with the next one. With a device (from 0) only the list of that device.
--- Cost: a table per action.
--- ```lua
--- local r = gp.schedule.build("gpipe", {devices = 2, chunks = 1}):simulate()
--- local last = r:timeline()[2][2]
--- assert(last.op == "B" and last.begin == 2 and last.finish == 4)
--- ```
---@param device? integer
---@return table
function Simulation:timeline(device)
  if device then return self.run:timeline(device) end
  local timeline = {
    name = self.name, devices = self.devices, makespan = self.makespan, unit = self.unit,
  }
  for d = 1, self.devices do timeline[d] = self.run:timeline(d - 1) end
  return timeline
end

-- ---- text --------------------------------------------------------------------------------------

-- A row for each device; bytes and versions only where there are any.
local function device_rows(self)
  local bytes, versions = columns.largest(self.peak_bytes) > 0, columns.largest(self.versions) > 1
  local rows = { { "device", "work", "idle", "bubble", "live" } }
  if bytes then table.insert(rows[1], "bytes") end
  if versions then table.insert(rows[1], "versions") end
  for d = 1, math.min(self.devices, SHOWN) do
    local row = {
      tostring(d - 1), columns.number(self.work[d]), columns.number(self.makespan - self.work[d]),
      ("%.1f %%"):format(100 * self.bubble[d]), tostring(self.peak_live[d]),
    }
    if bytes then row[#row + 1] = columns.number(self.peak_bytes[d]) end
    if versions then row[#row + 1] = tostring(self.versions[d]) end
    rows[d + 1] = row
  end
  if self.devices > SHOWN then rows[SHOWN + 2] = { "...", "", "", "", "" } end
  return rows
end

local function path_text(self)
  local words = {}
  for i, action in ipairs(self.critical) do
    if i > SHOWN then break end
    words[i] = ("%s%s%s"):format(action.stage, action.op, action.micro or "")
  end
  local dots = self.critical_length > SHOWN and " ..." or ""
  return ("critical path, %d actions: %s%s"):format(self.critical_length, table.concat(words, " "),
    dots)
end

--- A summary for people.
function meta:__tostring()
  local unit = self.unit ~= "" and " " .. self.unit or ""
  return table.concat({
    ("schedule %s: %s, %s, %s"):format(self.name, counted(self.devices, "device"),
      counted(self.stages, "stage"), counted(self.chunks, "micro-batch")),
    ("  makespan %s%s, span %s%s, bubble %.1f %%"):format(columns.number(self.makespan), unit,
      columns.number(self.span), unit, 100 * columns.mean(self.bubble)),
    columns.text(device_rows(self), "  "),
    columns.text({ { path_text(self), note = 1 } }, "  "),
  }, "\n")
end

return Simulation
