-- lua/gpipe/schedule/init.lua - `gp.schedule`: pipeline schedules as data, by name or as a
-- function.
--
-- A schedule is one list of actions per device. A generator is a function (p, m, opts) that returns
-- {placement = {[stage] = device}, rows = ...}; rows are text ("0F0,0B0"), lists of
-- {op=, stage=, micro=}, or made by gp.schedule.rows. The result is verified before anything runs
-- it.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local catalog = require "gpipe.schedule.catalog"
local csv = require "gpipe.schedule.csv"
local Schedule = require "gpipe.schedule.object"
local namespace = require "gpipe.namespace"
local replicate = require "gpipe.schedule.replicate"

local schedule = {}

--- List the names of the known schedules in alphabetical order.
--- ```lua
--- print(table.concat(gp.schedule.names(), " "))
--- ```
---@return string[]
function schedule.names() return catalog.names() end

--- Make empty lists of actions for p devices. A generator appends to them: `rows:F(device, stage,
--- micro)`, and likewise B, I, W and U (a version of the weights may follow); `rows:idle(device)`
--- leaves a cell empty; `rows:join(device, "F", stage, micro, "B", stage, micro)` appends an
--- overlapped pair; `rows:series(device, times, "F", stage, micro, ...)` appends one to three
--- actions so many times, each time with the next micro-batches.
--- Cost: 16 bytes an action; a generator may return rows of text instead.
---@param p integer
function schedule.rows(p) return core.rows(p) end

local DEFINE = { replace = { type = "boolean", default = false } }

--- Register a schedule of your own under a name. Its options are passed through unchecked. The
--- generator may also return `batch`, the micro-batches per update, and `limits`, which `verify`
--- then holds it to: {peak_live = 4}. A name of your own may be defined again.
---
--- Errors: the name of a published schedule, unless `replace = true` says that it is to be another
--- one from now on.
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
---@param generator fun(p: integer, m: integer, opts: table): table {placement, rows, batch?, limits?}
---@param opts? {replace?: boolean} replace: the name may be that of a published schedule (false)
function schedule.define(name, generator, opts)
  options.argument("gp.schedule.define", "name", name, { type = "string", required = true })
  options.argument("gp.schedule.define", "generator", generator,
    { type = "callable", required = true })
  local o = options.check("gp.schedule.define", opts, DEFINE)
  if catalog.is_published(name) and not o.replace then
    errors.raise("gp.schedule.define: schedule '%s' is a published one, expected another name, or "
      .. "{replace = true}", name)
  end
  catalog.define(name, generator)
end

-- ---- building --------------------------------------------------------------------------------

local function entry_of(who, name)
  local entry = catalog.find(name)
  if entry then return entry end
  errors.raise("%s: there is no schedule %s%s", who, errors.show(name),
    errors.hint(name, schedule.names(), "schedules"))
end

-- A name and its options, to build the same schedule for other numbers.
local function recipe_of(name, opts)
  local recipe = { name }
  for key, value in pairs(opts) do
    if key ~= "devices" and key ~= "chunks" and key ~= "replicas" then recipe[key] = value end
  end
  return recipe
end

local SIZE = {
  devices = { type = "integer", min = 1, required = true },
  chunks = { type = "integer", min = 1, required = true },
  replicas = { type = "integer", min = 1, default = 1 },
}
local LARGEST = 1 << 27 -- devices x chunks: 2 GiB of rows for each op

-- The options of a schedule that a script defined, without the two that all schedules have.
local function own_options(who, opts)
  local all = {}
  for key, value in pairs(opts) do all[key] = value end
  local size = options.check(who, {
    devices = opts.devices, chunks = opts.chunks, replicas = opts.replicas,
  }, SIZE)
  all.devices, all.chunks, all.replicas = size.devices, size.chunks, size.replicas
  return all
end

local function check_options(who, entry, opts)
  local own = not entry.options and type(opts) == "table"
  local spec = { devices = SIZE.devices, chunks = SIZE.chunks, replicas = SIZE.replicas }
  for key, rule in pairs(entry.options or {}) do spec[key] = rule end
  local checked = own and own_options(who, opts) or options.check(who, opts, spec)
  if checked.devices > LARGEST // checked.chunks then
    errors.raise("%s: %d devices and %d micro-batches, expected at most %d of both multiplied", who,
      checked.devices, checked.chunks, LARGEST)
  end
  return checked
end

-- Build the schedule of one replica for m micro-batches.
local function build_one(name, entry, checked, p, m)
  local generator = entry.generator or require(entry.module)
  local made = Schedule.new(name, generator(p, m, checked), m)
  made.asked, made.recipe = p, recipe_of(name, checked)
  return made
end

--- Build a schedule. With `replicas`, devices are those of all replicas and chunks the
--- micro-batches of each.
--- Errors: an unknown name or option. `verify` says whether the result is a correct schedule.
--- ```lua
--- local s = gp.schedule.build("1f1b", {devices = 4, chunks = 8})
--- assert(s:rows()[4]:sub(1, 11) == "3F0,3B0,3F1")
--- ```
---@param name string
---@param opts {devices: integer, chunks: integer, replicas: integer?} and the schedule's own
--- options
---@return gpipe.Schedule
function schedule.build(name, opts)
  local who = "gp.schedule.build"
  local entry = entry_of(who, name)
  local checked = check_options(who, entry, opts)
  local p, m, replicas = checked.devices, checked.chunks, checked.replicas
  if replicas == 1 then return build_one(name, entry, checked, p, m) end
  if p % replicas ~= 0 then
    errors.raise("%s: %d devices for %d replicas, expected as many for each", who, p, replicas)
  end
  checked.devices = p // replicas
  local function of(count)
    checked.chunks = count
    return build_one(name, entry, checked, p // replicas, count)
  end
  return replicate(of, replicas, m, replicas * m)
end

--- Whether a value is a schedule that was built.
schedule.is = Schedule.is

-- A name and its options, as the pipeline option `schedule` gives them.
local function parts_of(wanted)
  if type(wanted) ~= "table" then return wanted, {} end
  local opts = {}
  for key, value in pairs(wanted) do
    if key ~= 1 then opts[key] = value end
  end
  return wanted[1], opts
end

--- Build what the pipeline option `schedule` names: a name, {name, option = ...}, or a schedule.
---@param wanted string|table
---@param p integer devices
---@param m integer micro-batches
---@param more? table options that go before those of `wanted`
---@return gpipe.Schedule
function schedule.resolve(wanted, p, m, more)
  if schedule.is(wanted) then return wanted end
  local name, opts = parts_of(wanted)
  opts.devices, opts.chunks = p, m
  for key, value in pairs(more or {}) do opts[key] = value end
  return schedule.build(name, opts)
end

--- Whether a script defined the schedule of this name.
function schedule.is_own(wanted)
  local entry = catalog.find((parts_of(wanted)))
  return entry ~= nil and entry.generator ~= nil
end

--- Whether the schedule of this name has an option.
function schedule.takes(wanted, option)
  local entry = catalog.find((parts_of(wanted)))
  return entry ~= nil and entry.options ~= nil and entry.options[option] ~= nil
end

schedule.parse = csv.parser(Schedule)

schedule.compare = require "gpipe.schedule.compare"

schedule.greedy = require "gpipe.schedule.build.greedy"

--- Make a schedule object from the result of a generator: {placement =, rows =, batch = nil}.
schedule.wrap = Schedule.new

return namespace("gp.schedule", schedule)
