-- lua/gpipe/draw/schedule/timeline.lua - a timeline as drawings take it: checked, with its figures.
--
-- A timeline is plain data, predicted (simulate) or measured (a pipeline's):
--   {name =, devices = p, makespan =, unit = "" or "s", [1..p] = {{op =, stage =, micro =,
--   version =, begin =, finish =, joined =}, ...}}, element 1 is device 0; `names` may name
--   devices.
-- Rows are in order of begin. `joined`: the action runs together with the next one of its row.
-- `figures` = {span =, bubble =, peak =, stages =} where they are known: then only the rows that a
-- drawing shows are read, and they may be made on demand (by __index).
-- A view is the checked form: nothing is copied per action.

local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local raster = require "gpipe.draw.schedule.raster"

local timeline = {}

---@class gpipe.View
---@field name string
---@field unit string "" (the unit of the costs) or "s"
---@field devices integer
---@field rows table[] lists of actions, element 1 is device 0
---@field makespan number
---@field extent number what the time axis must cover: > 0
---@field span number longest time between the first begin and the last finish of a device
---@field bubble number[] idle share of the makespan, per device
---@field peak integer[] most activations alive at a time, per device
---@field stages integer[][] stage ids of each device, ascending
---@field ops table<string, boolean> the ops that there are; false for one that takes no time
---@field several boolean whether any device has several stages
---@field versions boolean whether any action names a version of the weights
---@field count integer actions
---@field micros integer micro-batches that went forward
local View = {}
View.__index = View

-- ---- words --------------------------------------------------------------------------------------

--- An action in the text form of the literature: "2F0", "2F5@3", "RECV" without a micro-batch.
---@param action table
---@return string
function timeline.label(action)
  local version = action.version and "@" .. action.version or ""
  return ("%s%s%s%s"):format(action.stage or "", action.op, action.micro or "", version)
end

--- A share as drawings print it: "27.3 %".
---@param share number
---@return string
function timeline.percent(share) return ("%.1f %%"):format(100 * share) end

-- ---- checks -------------------------------------------------------------------------------------

local function is_time(value)
  return type(value) == "number" and value == value and value > -math.huge and value < math.huge
end

local function id_or_nil(value) return value == nil or math.tointeger(value) ~= nil end

-- What is wrong with an action, or nil.
local function fault_of(action, before)
  if type(action) ~= "table" then
    return errors.show(action) .. ", expected {op =, stage =, ...}"
  end
  if type(action.op) ~= "string" or not action.op:find "^%a" then return "without an op" end
  if not (id_or_nil(action.stage) and id_or_nil(action.micro) and id_or_nil(action.version)) then
    return "with a stage, micro or version that is no integer"
  end
  if not is_time(action.begin) or not is_time(action.finish) then
    return "without finite times begin and finish"
  end
  if action.finish < action.begin then return "finished before it began" end
  if before and action.begin < before.begin then return "begun before the one ahead of it" end
end

local function check_row(who, name, device, row)
  if type(row) ~= "table" then
    errors.raise("%s: timeline '%s' has %s as device %d, expected a list of actions", who, name,
      errors.show(row), device)
  end
  local before
  for i, action in ipairs(row) do
    local fault = fault_of(action, before)
    if fault then
      errors.raise("%s: timeline '%s', device %d: action %d is %s", who, name, device, i, fault)
    end
    before = action
  end
end

local function check_fields(who, given)
  if type(given) ~= "table" or not math.tointeger(given.devices) or given.devices < 1 then
    errors.raise("%s: a timeline is %s, expected {devices = p, [1] = {{op =, begin =, finish =}}, "
      .. "...}",
      who, type(given) == "table" and "a table without devices" or errors.show(given))
  end
  if given.unit ~= nil and given.unit ~= "" and given.unit ~= "s" then
    errors.raise('%s: the unit of a timeline is %s, expected "" or "s"', who,
      errors.show(given.unit))
  end
end

-- ---- figures ------------------------------------------------------------------------------------

-- The ops that may be the last to need an activation: W where the backward is split, else B.
local releases = { B = true, W = true }

-- Count the activations alive: each lives from F to the last backward action of its stage and
-- micro-batch.
local function follow_memory(device, action)
  local live = device.live
  if not action.micro then return end
  local key = (action.stage or 0) * 2 ^ 32 + action.micro
  if action.op == "F" and not live[key] then
    live[key], device.alive = true, device.alive + 1
    device.peak = math.max(device.peak, device.alive)
  elseif releases[action.op] and live[key] then
    live[key], device.alive = nil, device.alive - 1
  end
end

local function sorted_keys(set)
  local list = {}
  for key in pairs(set) do list[#list + 1] = key end
  table.sort(list)
  return list
end

-- Measure one row: busy time, first begin, last finish, peak, stages.
local function measure_row(view, d)
  local device = { busy = 0, first = math.huge, last = -math.huge, alive = 0, peak = 0, live = {} }
  local stages = {}
  view:each(d, function(action, begin, finish, half)
    if half < 2 then device.busy = device.busy + finish - begin end -- a pair counts once
    device.first, device.last = math.min(device.first, begin), math.max(device.last, finish)
    if action.stage then stages[action.stage] = true end
    if action.op == "F" then view.micros = math.max(view.micros, (action.micro or -1) + 1) end
    view.ops[action.op] = view.ops[action.op] or finish > begin
    view.count = view.count + 1
    view.versions = view.versions or action.version ~= nil
    follow_memory(device, action)
  end)
  device.stages = sorted_keys(stages)
  return device
end

-- Measure the figures of a view; `rows` are the rows that are read.
local function measure(view, rows, makespan, given)
  local devices, last = {}, 0
  for _, d in ipairs(rows) do
    devices[d] = measure_row(view, d)
    last = math.max(last, devices[d].last)
  end
  view.makespan = makespan or last
  view.extent = math.max(view.makespan, last)
  if view.extent <= 0 then view.extent = 1 end
  for d, device in pairs(given and {} or devices) do
    view.bubble[d] = view.makespan > 0 and 1 - device.busy / view.makespan or 0
    view.span = math.max(view.span, device.last - device.first)
    view.peak[d], view.stages[d] = device.peak, device.stages
  end
  if given then
    view.span, view.bubble, view.peak, view.stages = given.span, given.bubble, given.peak,
      given.stages
  end
  for d = 1, view.devices do view.several = view.several or #view.stages[d] > 1 end
end

-- ---- views --------------------------------------------------------------------------------------

--- Check one timeline and measure its figures. Errors: raises if it is no timeline.
---@param who string the public function, as the user wrote it
---@param given table
---@param most? integer rows that will be looked at, where the figures are known; default all
---@return gpipe.View
function timeline.view(who, given, most)
  check_fields(who, given)
  local name = given.name and tostring(given.name) or "timeline"
  local rows = raster.shown(given.devices, given.figures and most or given.devices)
  for _, d in ipairs(rows) do check_row(who, name, d - 1, given[d]) end
  if given.makespan ~= nil and (not is_time(given.makespan) or given.makespan < 0) then
    errors.raise("%s: the makespan of timeline '%s' is %s, expected a number >= 0", who, name,
      errors.show(given.makespan))
  end
  local view = setmetatable({
    name = name, unit = given.unit or "", devices = given.devices, rows = given,
    names = given.names,
    ops = {}, bubble = {}, peak = {}, stages = {}, span = 0, count = 0, micros = 0, several = false,
    versions = false,
  }, View)
  measure(view, rows, given.makespan, given.figures)
  return view
end

--- Check one timeline or a list of them; all must have as many devices.
---@param who string
---@param given table
---@param most? integer rows that will be looked at; default all
---@return gpipe.View[]
function timeline.views(who, given, most)
  local list = type(given) == "table" and given.devices == nil and given or { given }
  if #list == 0 then errors.raise("%s: there is no timeline to draw", who) end
  local views = {}
  for i, one in ipairs(list) do
    views[i] = timeline.view(who, one, most and math.max(2, most // #list))
    if views[i].devices ~= views[1].devices then
      errors.raise("%s: timeline '%s' has %d devices, expected %d as '%s' has", who, views[i].name,
        views[i].devices, views[1].devices, views[1].name)
    end
  end
  return views
end

--- The ops of several views; false for one that takes no time in any of them.
---@param views gpipe.View[]
---@return table<string, boolean>
function timeline.ops(views)
  local present = {}
  for _, view in ipairs(views) do
    for op, visible in pairs(view.ops) do present[op] = present[op] or visible end
  end
  return present
end

--- Call visit(action, begin, finish, half) for the actions of device d (from 1) in order. An
--- overlapped pair is two calls with the times of both together: half is 1 and 2, else 0.
---@param d integer
---@param visit fun(action: table, begin: number, finish: number, half: integer)
function View:each(d, visit)
  local row, i = self.rows[d], 1
  while row[i] do
    local action, partner = row[i], row[i].joined and row[i + 1] or nil
    if partner then
      local begin = math.min(action.begin, partner.begin)
      local finish = math.max(action.finish, partner.finish)
      visit(action, begin, finish, 1)
      visit(partner, begin, finish, 2)
      i = i + 1
    else
      visit(action, action.begin, action.finish, 0)
    end
    i = i + 1
  end
end

--- The place of a stage among those of its device, from 1, and how many there are.
---@param d integer device, from 1
---@param stage integer?
---@return integer place
---@return integer count
function View:chunk(d, stage)
  local list = self.stages[d]
  for place, id in ipairs(list) do
    if id == stage then return place, #list end
  end
  return 1, math.max(1, #list)
end

--- What a row is called: the given name, or the number from 0.
---@param d integer from 1
---@return string
function View:device_name(d)
  return self.names and self.names[d] and tostring(self.names[d]) or tostring(d - 1)
end

--- The mean idle share of all devices.
---@return number
function View:mean_bubble()
  local sum = 0
  for _, share in ipairs(self.bubble) do sum = sum + share end
  return sum / self.devices
end

--- A number of activations in words. Where devices have several stages, activations are those of
--- one stage: half of a device's layers make an activation of half the size.
---@param count integer
---@return string "8 activations of one stage"
function View:activations(count)
  return counted(count, "activation") .. (self.several and " of one stage" or "")
end

--- The largest peak and the first device (from 0) that has it.
---@return integer peak
---@return integer device
function View:highest_peak()
  local best, device = 0, 0
  for d, peak in ipairs(self.peak) do
    if peak > best then best, device = peak, d - 1 end
  end
  return best, device
end

return timeline
