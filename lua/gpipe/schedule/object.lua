-- lua/gpipe/schedule/object.lua - a schedule as a script sees it: placement, rows, verified once.
--
-- Its lists of actions live in C (core.rows): 16 bytes an action, where a Lua table would take a
-- hundred. Most methods are in other files (verify, simulate, lower, csv, draw); the end of this
-- one collects them.

local counted = require "gpipe.counted"
local errors = require "gpipe.errors"
local screen = require "gpipe.screen"

---@class gpipe.Schedule
---@field name string
---@field placement table<integer, integer|integer[]> stage -> device (or two of them), all from 0
---@field devices integer
---@field chunks integer
---@field recipe table? {name, option = ...}: what it was built from, for other numbers
---@field stages integer
---@field asked integer? the number of devices that the generator was given
---@field copies integer devices per stage: 1, or 2 in bidirectional schedules, for each replica
---@field replicas integer of one schedule, each with devices and micro-batches of its own; 1: none
---@field replica_chunks integer? micro-batches of a replica
---@field batch integer micro-batches per update; 0: synchronous
---@field limits table? what the generator has stated that the schedule keeps within
---@field checked any? the verified form, for the runtime
---@field last_simulation gpipe.Simulation?
local Schedule = {}
Schedule.__index = Schedule
Schedule.__name = "gpipe.Schedule"
setmetatable(Schedule, { __index = function(_, key)
  local names = {}
  for name in next, Schedule do names[#names + 1] = name end
  table.sort(names)
  errors.refuse_near("schedule", key, names)
end })

-- ---- rows --------------------------------------------------------------------------------------

-- A number of an action as an integer; 2.0, the result of a division, is 2.
local function whole(who, action, key, optional)
  local value = action[key]
  if value == nil and optional then return "" end
  local number = type(value) == "number" and math.tointeger(value)
  if number and number >= 0 then return number end
  errors.raise("%s: the %s of an action is %s, expected an integer >= 0", who, key,
    errors.show(value))
end

-- An action as text. The op is not checked here: verify does that.
local function action_text(who, action)
  if type(action) == "string" then return action end
  if type(action) ~= "table" then
    errors.raise('%s: an action is %s, expected {op = "F", stage = 0, micro = 0}', who,
      errors.show(action))
  end
  if type(action.op) ~= "string" then
    errors.raise('%s: the op of an action is %s, expected "F" or such', who, errors.show(action.op))
  end
  local version = action.version and "@" .. whole(who, action, "version") or ""
  return whole(who, action, "stage") .. action.op .. whole(who, action, "micro", true) .. version
end

local function row_text(who, row)
  if type(row) == "string" then
    return (row:gsub("%s*,%s*", ","):gsub("^%s+", ""):gsub("%s+$", ""))
  end
  if type(row) ~= "table" then
    errors.raise('%s: a row is %s, expected text such as "0F0,0B0" or a list of actions', who,
      errors.show(row))
  end
  local texts = {}
  for i, action in ipairs(row) do texts[i] = action_text(who, action) end
  return table.concat(texts, ",")
end

local function is_rows(value) return type(value) == "userdata" end

-- The rows of a generator as texts; those made by gp.schedule.rows stay as they are.
local function rows_of(who, rows)
  if is_rows(rows) then return rows, #rows end
  if type(rows) ~= "table" then
    errors.raise("%s: the rows are %s, expected a list of texts (or gp.schedule.rows)", who,
      errors.show(rows))
  end
  local texts = {}
  for d, row in ipairs(rows) do texts[d] = row_text(who, row) end
  if #texts == 0 then errors.raise("%s: there are no rows, expected one for each device", who) end
  return texts, #texts
end

-- ---- placement ----------------------------------------------------------------------------------

-- The devices of a stage as a list.
local function devices_of(who, stage, entry)
  local list = {}
  for i, device in ipairs(type(entry) == "table" and entry or { entry }) do
    list[i] = type(device) == "number" and math.tointeger(device)
    if not list[i] or list[i] < 0 then
      errors.raise("%s: placement[%s] is %s, expected devices (from 0) of stages 0, 1, ...", who,
        stage, errors.show(device))
    end
  end
  return list
end

-- The placement of stages 0 .. n-1 as one list, and how many devices each stage has.
local function stages_of(who, placement, most)
  local list, stage, copies = {}, 0, nil
  while placement[stage] ~= nil do
    local devices = devices_of(who, stage, placement[stage])
    copies = copies or #devices
    if #devices ~= copies or copies < 1 or copies > most then
      errors.raise("%s: placement[%d] has %d devices, expected one for every stage, or two", who,
        stage,
        #devices)
    end
    table.move(devices, 1, copies, #list + 1, list)
    stage = stage + 1
  end
  if stage == 0 then
    errors.raise("%s: placement[0] is nil, expected the device of stage 0", who)
  end
  for key, device in pairs(placement) do
    if math.type(key) ~= "integer" or key < 0 or key >= stage then
      errors.raise("%s: placement[%s] is %s, expected devices (from 0) of stages 0, 1, ...", who,
        key, errors.show(device))
    end
  end
  return list, stage, copies
end

-- ---- making -------------------------------------------------------------------------------------

-- What a generator may return; replicate.lua adds the last two.
local RETURNED = { "placement", "rows", "batch", "limits", "replicas", "replica_chunks" }

local function check_keys(who, made)
  local known = {}
  for _, key in ipairs(RETURNED) do known[key] = true end
  for key in pairs(made) do
    if not known[key] then
      local near = type(key) == "string" and errors.suggest(key, RETURNED)
      errors.raise("%s: the generator returned a table with %s, expected placement, rows, batch "
        .. "and limits%s", who, errors.show(key),
        near and (" (did you mean '%s'?)"):format(near) or "")
    end
  end
  if made.limits ~= nil and type(made.limits) ~= "table" then
    errors.raise("%s: the generator's limits are %s, expected limits of verify such as "
      .. "{peak_live = 4}", who, errors.show(made.limits))
  end
end

local function check_made(who, made)
  local is = type(made) == "table"
  local lacks = is and (made.rows == nil and "rows" or made.placement == nil and "placement")
  if not is or lacks then
    errors.raise("%s: the generator returned %s%s, expected {placement = ..., rows = ...}", who,
      errors.show(made), lacks and " without " .. lacks or "")
  end
  check_keys(who, made)
  if type(made.placement) ~= "table" then
    errors.raise("%s: the generator's placement is %s, expected {[0] = device of stage 0, ...}",
      who,
      errors.show(made.placement))
  end
  local batch = made.batch
  if batch ~= nil and (math.type(batch) ~= "integer" or batch < 0 or batch > 999999) then
    errors.raise("%s: the generator's batch is %s, expected micro-batches per update (0: "
      .. "synchronous)", who,
      errors.show(batch))
  end
end

--- Make a schedule object from the result of a generator.
---@param name string
---@param made {placement: table, rows: table, batch: integer?, limits: table?}
---@param m integer micro-batches
---@return gpipe.Schedule
function Schedule.new(name, made, m)
  local who = ("schedule '%s'"):format(name)
  check_made(who, made)
  local replicas = made.replicas or 1
  local list, stages, copies = stages_of(who, made.placement, 2 * replicas)
  local rows, devices = rows_of(who, made.rows)
  return setmetatable({
    name = name, devices = devices, chunks = m, stages = stages, copies = copies,
    batch = made.batch or 0, placement = made.placement, source = rows, device_list = list,
    replicas = replicas, replica_chunks = made.replica_chunks, limits = made.limits,
  }, Schedule)
end

--- Whether a value is a schedule.
---@param value any
---@return boolean
function Schedule.is(value) return getmetatable(value) == Schedule end

-- ---- methods ------------------------------------------------------------------------------------

--- One string per device in the text form of the literature: "0F0,0F1,0B0,0B1".
---@return string[]
function Schedule:rows()
  if not is_rows(self.source) then return table.move(self.source, 1, self.devices, 1, {}) end
  local texts = {}
  for d = 1, self.devices do texts[d] = self.source:text(d - 1) end
  return texts
end

-- Whether two placements are equal, with one device per stage or two.
local function same_list(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

--- Schedules are equal if they do the same on the same devices, whatever their names.
function Schedule.__eq(a, b)
  return Schedule.is(a) and Schedule.is(b) and a.batch == b.batch and a.copies == b.copies
    and same_list(a.device_list, b.device_list) and same_list(a:rows(), b:rows())
end

-- How many rows of a large schedule are printed, and how many characters of each: those that fit on
-- the terminal, elsewhere as many as people read.
local function shown_size()
  if screen.is_bounded() then return screen.rows() - 3, screen.columns() - 2 end
  return 32, 2000
end

local function shown(row, most)
  if #row <= most then return row end
  return (row:sub(1, most - 3):match "^.*," or "") .. "..."
end

--- The rows; of a large schedule only their beginnings, so that the output at a prompt stays
--- readable. s:rows() has all.
function Schedule:__tostring()
  local most_rows, most = shown_size()
  local lines = { ("schedule %s: %s, %s"):format(self.name,
    counted(self.devices, "device"), counted(self.chunks, "micro-batch")) }
  for d = 1, math.min(self.devices, most_rows) do
    local row = is_rows(self.source) and self.source:text(d - 1) or self.source[d]
    lines[#lines + 1] = "  " .. shown(row, most)
  end
  if self.devices > most_rows then
    lines[#lines + 1] = ("  ... (%d more devices)"):format(self.devices - most_rows)
  end
  return table.concat(lines, "\n")
end

for name, method in pairs(require "gpipe.schedule.verify") do Schedule[name] = method end
Schedule.csv = require("gpipe.schedule.csv").csv
local simulate = require "gpipe.schedule.simulate"
Schedule.simulate, Schedule.makespans = simulate.simulate, simulate.makespans
Schedule.lower = require "gpipe.schedule.lower"
for name, method in pairs(require "gpipe.draw.schedule.methods") do Schedule[name] = method end

return Schedule
