-- lua/gpipe/schedule/verify.lua - check a schedule, and count what it needs: methods of
-- gpipe.Schedule.
--
-- The checks run in C over the lists of actions; here their results get names. A schedule is
-- verified once; limits are checked at each call.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local grid = require "gpipe.schedule.grid"
local options = require "gpipe.options"

local verify = {}

-- ---- the report ---------------------------------------------------------------------------------

---@class gpipe.Report a list of {check, message, device, position}; prints as the grid with the fault marked
local Report = { __name = "gpipe.Report" }
function Report:__tostring() return self.text end

local function report_of(text, check, device, position)
  local entry = { check = check, message = text:match "^[^\n]*", device = device,
    position = position }
  return setmetatable({ entry, text = text }, Report)
end

-- ---- verify -------------------------------------------------------------------------------------

-- The lists of actions as core.rows, or nil and a report where a text cannot be read.
function verify.parsed(self)
  if self.source == self.checked then return self.checked:rows() end
  if type(self.source) == "userdata" then return self.source end
  local rows = core.rows(self.devices)
  for d, text in ipairs(self.source) do
    local good, message, position = rows:read(d - 1, text)
    if not good then
      return nil, report_of(message .. grid.marked(self.source, d, position), "text", d - 1,
        position)
    end
  end
  return rows
end

local function check_lists(self)
  local rows, report = self:parsed()
  if not rows then return nil, report end
  local checked, text, name, device, position =
    core.schedule(rows, self.device_list, {
      copies = self.copies, batch = self.batch, micros = self.batch == 0 and self.chunks or 0,
      replicas = self.replicas, replica_micros = self.replica_chunks,
    })
  if checked then return checked end
  return nil, report_of(text, name, device, position)
end

local LIMITS = {
  capacity = { type = "integer", min = 0 },
  versions = { type = "integer", min = 1 },
  buffers = { type = "integer", min = 1 },
  peak_live = { type = { "integer", "table" }, min = 1 },
}

-- One number for each device.
local function per_device(self, limit)
  if limit == nil then return nil end
  local list = {}
  for d = 1, self.devices do
    local value = limit
    if type(limit) == "table" then value = limit[d] end
    if not math.tointeger(value) or value < 0 then
      errors.raise("verify: peak_live[%d] is %s, expected activations for each of %d devices", d,
        errors.show(value), self.devices)
    end
    list[d] = math.tointeger(value)
  end
  return list
end

-- Check a verified form against limits.
local function keep_within(self, form, limits)
  local checked = options.check("verify", limits, LIMITS)
  checked.peak_live = per_device(self, checked.peak_live)
  local within, text, name, device, position = form:limit(checked)
  if within then return self end
  return nil, report_of(text, name, device, position)
end

-- Verify once, with the limits that the generator has stated.
local function check(self)
  if self.checked then return self end
  local form, report = check_lists(self)
  if not form then return nil, report end
  if self.limits then
    local good, fault = keep_within(self, form, self.limits)
    if not good then return nil, fault end
  end
  self.checked = form
  -- it has all that rows have, and of thousands of devices the lists are large
  if type(self.source) == "userdata" then self.source = form end
  return self
end

--- Check that the schedule is complete and unique, on the right devices, in a possible order and
--- without a cycle; and that it keeps within limits, if any are given or its generator has stated
--- some.
---
--- The report's entries are {check, message, device, position}: which check failed, why, on which
--- device (from 0) and where in its row (from 1; nil if no single action is at fault).
--- `tostring(report)` shows the grid with the faulty action in >brackets< and an arrow below.
---
--- The checks are "text" (an action cannot be read), "op" (not an op of a schedule), "placement"
--- (on another device than its stage), "unique" and "complete" (each (stage, micro-batch) has one
--- F, and B or I and W), "order" (of two actions of a device) and "cycle" (of several devices),
--- "pairing" (a send without its receive), "versions" (of the weights) and "updates" (one per stage
--- and batch, after its gradients). With limits there are also "capacity" (devices block each other
--- for ever when a channel holds only that many messages; 0: sender and receiver meet), "liveness"
--- (`peak_live` activations at once, for all devices or per device), "versions" (alive at once per
--- stage, the newest included) and "buffers" (per stage; micro-batch i uses buffer i mod buffers).
--- ```lua
--- local s = gp.schedule.build("1f1b", {devices = 4, chunks = 8})
--- assert(s:verify{capacity = 1, peak_live = {4, 3, 2, 1}})
--- local good, report = s:verify{capacity = 0}
--- assert(not good and report[1].check == "capacity")
--- ```
---@param limits? {capacity: integer?, peak_live: integer|integer[]|nil, versions: integer?, buffers: integer?}
---@return gpipe.Schedule? self, or nil
---@return gpipe.Report? report
function verify.verify(self, limits)
  local good, report = check(self)
  if not good then return nil, report end
  if limits == nil then return self end
  return keep_within(self, self.checked, limits)
end

-- ---- what it takes ------------------------------------------------------------------------------

-- The verified form; raises if the schedule does not verify.
local function checked_of(self, who)
  local good, report = check(self)
  if not good then errors.raise("%s: %s", who, tostring(report)) end
  return self.checked
end

-- {[stage] = the larger figure of its copies}.
local function by_stage(self, list)
  local stages = {}
  for stage = 0, self.stages - 1 do
    stages[stage] = math.max(table.unpack(list, stage * self.copies + 1, (stage + 1) * self.copies))
  end
  return stages
end

--- How many messages a channel (an edge, a direction, a pair of devices) must hold if senders
--- block: `works` is the least without a deadlock, `full_speed` the least that (at unit costs)
--- delays no device.
--- ```lua
--- local need = gp.schedule.build("1f1b", {devices = 4, chunks = 8}):capacity()
--- assert(need.works == 1 and need.full_speed == 1) -- 0 would be a deadlock
--- ```
---@return {works: integer, full_speed: integer}
function verify.capacity(self)
  local works, full_speed = checked_of(self, "capacity"):capacity()
  return { works = works, full_speed = full_speed }
end

--- How many activations of one (stage, micro-batch) are alive at once; each lives from F (or R) to
--- its last backward action.
--- ```lua
--- local live = gp.schedule.build("1f1b", {devices = 4, chunks = 8}):peak_live()
--- assert(live.devices[1] == 4 and live.stages[3] == 1)
--- ```
---@return {devices: integer[], stages: table<integer, integer>} devices: element 1 is device 0; stages: from 0
function verify.peak_live(self)
  local devices, stages = checked_of(self, "peak_live"):peaks()
  return { devices = devices, stages = by_stage(self, stages) }
end

--- For how many micro-batches at once I has run and W has not: they hold what one leaves for the
--- other.
--- ```lua
--- local carried = gp.schedule.build("zb_h1", {devices = 4, chunks = 8}):peak_carried()
--- assert(carried.devices[4] > carried.devices[2])
--- ```
---@return {devices: integer[], stages: table<integer, integer>} as of peak_live
function verify.peak_carried(self)
  local devices, stages = checked_of(self, "peak_carried"):carried()
  return { devices = devices, stages = by_stage(self, stages) }
end

--- What a device's stages hold at the same time, in micro-batches: a row for each moment that is
--- not exceeded in every number by another one. A row has four numbers for each stage of the
--- device, stage after stage: what lives from F on, whatever runs again; what F or R leaves; the
--- part of that which W does not read; and what I leaves for W.
--- ```lua
--- local rows = gp.schedule.build("zb_h1", {devices = 2, chunks = 4}):moments(1)
--- assert(rows[1][4] == 2 and rows[1][3] == 1) -- W of two is left, while I of one runs
--- ```
---@param device integer from 0
---@param away? boolean of what F leaves only what is on the device, while the rest of it waits in
--- the host's memory
---@return integer[][]
function verify.moments(self, device, away)
  return checked_of(self, "moments"):moments(device, away == true)
end

--- How many versions of each stage's weights are alive at once, the newest included: 1 in
--- synchronous schedules.
--- ```lua
--- assert(gp.schedule.build("gpipe", {devices = 2, chunks = 4}):versions()[0] == 1)
--- ```
---@return table<integer, integer> versions stage (from 0) -> number
function verify.versions(self) return by_stage(self, checked_of(self, "versions"):versions()) end

--- Assign activations to slots that are reused as soon as they are free: `slots[stage][micro]` is a
--- slot from 0, `slots[stage].count` how many the stage needs (on each device, if it has two).
--- ```lua
--- local slots = gp.schedule.build("1f1b", {devices = 2, chunks = 4}):slots()
--- assert(slots[0].count == 2 and slots[0][2] == 0)
--- ```
---@return table<integer, table<integer|string, integer>>
function verify.slots(self)
  local list, counts = checked_of(self, "slots"):slots()
  local slots, stages = {}, by_stage(self, counts)
  local micros = #list // self.stages
  for stage = 0, self.stages - 1 do
    slots[stage] = { count = stages[stage] }
    table.move(list, stage * micros + 1, (stage + 1) * micros, 0, slots[stage])
  end
  return slots
end

return verify
