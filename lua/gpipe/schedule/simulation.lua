-- lua/gpipe/schedule/simulation.lua - what a simulated schedule came to: figures, timeline,
-- critical path.
--
-- Begin and end of millions of actions stay in C; a device's list is made when somebody looks at
-- it.

local columns = require "gpipe.draw.columns"

local PATH = 10000 -- actions of the critical path that are kept as tables
local SHOWN = 16   -- devices, and actions of the path, that a summary shows

---@class gpipe.Simulation
---@field name string the schedule's
---@field devices integer
---@field chunks integer
---@field stages integer
---@field unit string of all times: "" or "s"
---@field makespan number from the start to the end of the last action
---@field span number the longest that a device takes, first to last action
---@field work number[] per device (element 1 is device 0): sum of its actions
---@field bubble number[] per device: idle / makespan
---@field peak_live integer[] per device: activations of one (stage, micro-batch) held at once
---@field peak_bytes number[] per device
---@field versions integer[] per device: versions of the weights of one stage held at once
---@field critical table[] actions {op, stage, micro, device, begin, finish, after}
---@field critical_length integer of the whole path, where `critical` has its first actions only
local Simulation = {}
Simulation.__index = Simulation
Simulation.__name = "gpipe.Simulation"

--- Read the figures off a run.
---@param schedule gpipe.Schedule
---@param run any from core.simulate
---@param unit string
---@return gpipe.Simulation
function Simulation.new(schedule, run, unit)
  local self = {
    name = schedule.name, devices = schedule.devices, chunks = schedule.chunks,
    stages = schedule.stages, unit = unit, run = run,
    work = {}, bubble = {}, peak_live = {}, peak_bytes = {}, versions = {},
  }
  self.makespan, self.span = run:total()
  for d = 1, self.devices do
    local _, _, work, live, bytes, versions = run:device(d - 1)
    self.work[d], self.peak_live[d], self.peak_bytes[d], self.versions[d] = work, live, bytes,
      versions
    self.bubble[d] = self.makespan > 0 and (self.makespan - work) / self.makespan or 0
  end
  self.critical, self.critical_length = run:critical(PATH)
  return setmetatable(self, Simulation)
end

--- When each action begins and ends: {name, devices, makespan, unit, [1 ... devices] = list of {op,
--- stage, micro, version, begin, finish, joined}}, element 1 for device 0; `joined`: with the next
--- one.
--- With a device (from 0) only that device's list. Cost: a table per action.
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

-- Devices as rows, bytes and versions only where there are any.
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

--- A summary to read.
function Simulation:__tostring()
  local unit = self.unit ~= "" and " " .. self.unit or ""
  return table.concat({
    ("schedule %s: %d devices, %d stages, %d micro-batches"):format(self.name, self.devices,
      self.stages,
      self.chunks),
    ("  makespan %s%s, span %s%s, bubble %.1f %%"):format(columns.number(self.makespan), unit,
      columns.number(self.span), unit, 100 * columns.mean(self.bubble)),
    columns.text(device_rows(self), "  "),
    columns.text({ { path_text(self), note = 1 } }, "  "),
  }, "\n")
end

return Simulation
