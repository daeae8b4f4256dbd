-- lua/gpipe/schedule.lua - `gp.schedule`: pipeline schedules as data, by name or as a function.
--
-- A schedule is one list of actions per device. A generator is a function (p, m, opts) that returns
-- {placement = {[stage] = device}, rows = ...}; rows are text ("0F0,0B0") or lists of
-- {op=, stage=, micro=}. What it returns is verified before anything runs it.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"

local schedule = {}

-- ---- the table of generators -----------------------------------------------------------------

-- Each entry: its generator (or the module that returns it) and the options of its own.
local generators = {
  naive = { module = "gpipe.schedules.naive", options = {} },
  gpipe = { module = "gpipe.schedules.gpipe", options = {} },
  ["1f1b"] = {
    module = "gpipe.schedules.1f1b",
    options = { warmup = { type = "integer", min = 1, default = 1 } },
  },
}

--- Names of the schedules there are, in alphabetical order.
--- ```lua
--- print(table.concat(gp.schedule.names(), " "))
--- ```
---@return string[]
function schedule.names()
  local names = {}
  for name in pairs(generators) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- Make a schedule of your own known under a name. Its options are passed through unchecked.
--- ```lua
--- gp.schedule.define("mine", function(p, m)
---   local rows, placement = {}, {}
---   for r = 0, p - 1 do
---     local row = {}
---     for i = 0, m - 1 do row[#row + 1] = r .. "F" .. i end
---     for i = 0, m - 1 do row[#row + 1] = r .. "B" .. i end
---     rows[r + 1], placement[r] = table.concat(row, ","), r
---   end
---   return {placement = placement, rows = rows}
--- end)
--- ```
---@param name string
---@param generator fun(p: integer, m: integer, opts: table): {placement: table, rows: table}
function schedule.define(name, generator)
  options.argument("gp.schedule.define", "name", name, { type = "string", required = true })
  options.argument("gp.schedule.define", "generator", generator,
    { type = "callable", required = true })
  generators[name] = { generator = generator }
end

-- ---- building --------------------------------------------------------------------------------

---@class gpipe.Schedule
---@field name string
---@field placement table<integer, integer> stage -> device, both from 0
---@field devices integer
---@field chunks integer
---@field checked any? the verified form, for the runtime
local Schedule = {}
Schedule.__index = Schedule
Schedule.__name = "gpipe.Schedule"

-- An action as text, whether its parts make sense or not: verify says what does not.
local function action_text(who, action)
  if type(action) == "string" then return action end
  if type(action) ~= "table" then
    errors.raise('%s: an action is %s, expected {op = "F", stage = 0, micro = 0}', who,
      errors.show(action))
  end
  return ("%s%s%s"):format(action.stage, action.op, action.micro)
end

local function row_text(who, row)
  if type(row) == "string" then return (row:gsub("%s", "")) end
  if type(row) ~= "table" then
    errors.raise('%s: a row is %s, expected text such as "0F0,0B0" or a list of actions', who,
      errors.show(row))
  end
  local texts = {}
  for i, action in ipairs(row) do texts[i] = action_text(who, action) end
  return table.concat(texts, ",")
end

-- Stages 0 .. n-1 of a placement as a list.
local function stages_of(who, placement)
  local list, stage = {}, 0
  while placement[stage] do
    list[stage + 1], stage = placement[stage], stage + 1
  end
  if stage == 0 then errors.raise("%s: placement[0] is nil, expected the device of stage 0", who) end
  for key, device in pairs(placement) do
    if not math.tointeger(device) or device < 0 or not list[(math.tointeger(key) or -2) + 1] then
      errors.raise("%s: placement[%s] is %s, expected devices (from 0) of stages 0, 1, ...", who,
        key, errors.show(device))
    end
  end
  return list
end

--- Make a schedule object of what a generator returned.
---@param name string
---@param made {placement: table, rows: table}
---@param m integer micro-batches
---@return gpipe.Schedule
function schedule.wrap(name, made, m)
  local who = ("schedule '%s'"):format(name)
  if type(made) ~= "table" or type(made.rows) ~= "table" or type(made.placement) ~= "table" then
    errors.raise("%s: the generator returned %s, expected {placement = ..., rows = ...}", who,
      errors.show(made))
  end
  local texts = {}
  for d, row in ipairs(made.rows) do texts[d] = row_text(who, row) end
  return setmetatable({
    name = name, devices = #texts, chunks = m, placement = made.placement, texts = texts,
    stages = stages_of(who, made.placement),
  }, Schedule)
end

local function entry_of(who, name)
  local entry = generators[name]
  if entry then return entry end
  errors.raise("%s: there is no schedule %s%s", who, errors.show(name),
    errors.hint(name, schedule.names(), "schedules"))
end

--- Build a schedule.
--- Errors: an unknown name or option. `verify` tells whether what a generator made is a schedule.
--- ```lua
--- local s = gp.schedule.build("1f1b", {devices = 4, chunks = 8})
--- assert(s:rows()[4]:sub(1, 11) == "3F0,3B0,3F1")
--- ```
---@param name string
---@param opts {devices: integer, chunks: integer} and the schedule's own options
---@return gpipe.Schedule
function schedule.build(name, opts)
  local who = "gp.schedule.build"
  local entry = entry_of(who, name)
  local spec = {
    devices = { type = "integer", min = 1, required = true },
    chunks = { type = "integer", min = 1, required = true },
  }
  for key, rule in pairs(entry.options or {}) do spec[key] = rule end
  local checked = entry.options and options.check(who, opts, spec) or opts or {}
  local generator = entry.generator or require(entry.module)
  local p, m = checked.devices, checked.chunks
  return schedule.wrap(name, generator(p, m, checked), m)
end

--- Whether a value is a schedule that was built.
---@param value any
---@return boolean
function schedule.is(value) return getmetatable(value) == Schedule end

--- Build what the pipeline option `schedule` names: a name, {name, option = ...}, or a schedule.
---@param wanted string|table
---@param p integer stages
---@param m integer micro-batches
---@return gpipe.Schedule
function schedule.resolve(wanted, p, m)
  if schedule.is(wanted) then return wanted end
  local opts, name = { devices = p, chunks = m }, wanted
  if type(wanted) == "table" then
    name = wanted[1]
    for key, value in pairs(wanted) do
      if key ~= 1 then opts[key] = value end
    end
  end
  return schedule.build(name, opts)
end

-- ---- methods ---------------------------------------------------------------------------------

--- One string per device in the field's text form: "0F0,0F1,0B0,0B1".
---@return string[]
function Schedule:rows() return table.move(self.texts, 1, #self.texts, 1, {}) end

-- What verify found: a list with one entry per fault, which prints as the marked grid.
local Report = { __name = "gpipe.Report" }
function Report:__tostring() return self.text end

--- Check the schedule: complete and unique, on the right devices, in a possible order, no cycle.
---
--- The report's entries are {check, message, device, position}: which check failed ("text", "placement",
--- "op", "unique", "complete", "order" of two actions of a device, "cycle" between devices), what it says,
--- and where: the device from 0, the position in its row from 1. `tostring(report)` shows the grid with the faulty
-- action in >brackets<.
--- ```lua
--- local good, report = gp.schedule.build("gpipe", {devices = 2, chunks = 4}):verify()
--- assert(good, report)
--- ```
---@return gpipe.Schedule? self, or nil
---@return table? report
function Schedule:verify()
  if self.checked then return self end
  local checked, text, check, device, position = core.schedule(self.texts, self.stages)
  if not checked then
    local entry = { check = check, message = text:match "^[^\n]*", device = device, position = position }
    return nil, setmetatable({ entry, text = text }, Report)
  end
  self.checked = checked
  return self
end

function Schedule:__tostring()
  return ("schedule %s: %d devices, %d micro-batches\n  %s"):format(self.name, self.devices,
    self.chunks, table.concat(self.texts, "\n  "))
end

return schedule
