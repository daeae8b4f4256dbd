-- lua/gpipe/schedule/compare.lua - `gp.schedule.compare{"gpipe", "1f1b", ...}`: one table for many
-- schedules.
--
-- Schedules cut the model into different numbers of stages. So the costs here are those of a whole
-- device's share, which each schedule divides by its stages per device; activations are counted in
-- the same way.

local catalog = require "gpipe.schedule.catalog"
local columns = require "gpipe.draw.columns"
local errors = require "gpipe.errors"
local noise = require "gpipe.schedule.noise"
local options = require "gpipe.options"
local slowest = require "gpipe.schedule.slowest"

local WHO = "gp.schedule.compare"

local cost = { type = "number", min = 0, below = math.huge }
local SHARES = { "F", "I", "W", "B", "R", "U" } -- costs that are divided by the stages per device
local MEMORY = { "activation", "after_input", "resident", "version" }

local spec = {
  ["..."] = { type = { "string", "table" } },
  devices = { type = "integer", min = 1 },
  chunks = { type = "integer", min = 1 },
  comm = cost,
  link = { type = "table" },
  bytes = cost,
  contention = { type = "boolean" },
  overlap = { type = "boolean" },
  capacity = { type = "integer", min = 0 },
  joined = cost,
  barrier = { type = "boolean" },
  memory = { type = "table" },
  unit = { type = "string" },
}
for _, op in ipairs(SHARES) do spec[op] = cost end
for key, rule in pairs(noise.SPEC) do spec[key] = rule end
spec.samples = { type = "integer", min = 1, max = 1 << 20, default = 200 }
spec.replicas = { type = "integer", min = 1, max = 1 << 20, default = 1 }

local memory_spec = {}
for _, key in ipairs(MEMORY) do memory_spec[key] = cost end

-- ---- entries -----------------------------------------------------------------------------------

-- "interleaved_1f1b stages_per_device=2"
local function label_of(name, opts)
  local words = {}
  for key, value in pairs(opts) do
    if key ~= 1 then words[#words + 1] = ("%s=%s"):format(key, value) end
  end
  table.sort(words)
  table.insert(words, 1, name)
  return table.concat(words, " ")
end

-- The sizes of a schedule that was built elsewhere, where they differ from those built here.
local function size_of(schedule, given)
  local differs = {}
  for _, key in ipairs { "devices", "chunks" } do
    if schedule[key] ~= given[key] then differs[key] = schedule[key] end
  end
  return differs
end

-- An unknown name is a mistake and raises; a schedule that these numbers do not allow is a row.
local function check_name(name)
  if type(name) == "string" and catalog.find(name) then return end
  errors.raise("%s: there is no schedule %s%s", WHO, errors.show(name),
    errors.hint(name, catalog.names(), "schedules"))
end

-- A table {label =, build = function}: entries are a name, {name, option = ...} or a schedule.
local function read_entry(entry, given)
  local schedules = require "gpipe.schedule" -- not at the top: it requires this file
  if schedules.is(entry) then
    return { label = label_of(entry.name, size_of(entry, given)),
      build = function() return entry end }
  end
  local opts = type(entry) == "table" and entry or { entry }
  check_name(opts[1])
  local all = { devices = given.devices, chunks = given.chunks }
  for key, value in pairs(opts) do
    if key ~= 1 then all[key] = value end
  end
  return {
    label = label_of(opts[1], opts), build = function() return schedules.build(opts[1], all) end,
  }
end

-- ---- rows --------------------------------------------------------------------------------------

-- The costs of one stage, where a device has `share` stages.
local function costs_of(given, share)
  local costs = {}
  for _, key in ipairs { "comm", "link", "bytes", "contention", "overlap", "capacity", "joined",
    "barrier", "unit" } do
    costs[key] = given[key]
  end
  for _, op in ipairs(SHARES) do costs[op] = given[op] and given[op] / share end
  for _, op in ipairs { "F", "I", "W" } do
    if not given[op] and (op == "F" or not given.B) then costs[op] = 1 / share end
  end
  if given.memory then
    costs.memory = {}
    for _, key in ipairs(MEMORY) do
      costs.memory[key] = given.memory[key] and given.memory[key] / share
    end
  end
  return costs
end

local function varies(given) return given.jitter or given.stragglers or given.slow end

-- The mean makespan of the slowest of the replicas, whose times vary.
local function slowest_of(schedule, costs, given)
  for key in pairs(noise.SPEC) do costs[key] = given[key] end
  costs.count = math.max(given.samples, given.replicas)
  return slowest.mean(schedule:makespans(costs), given.replicas)
end

---@class gpipe.ComparedSchedule
---@field label string
---@field reason? string why there is no such schedule; then no other field is set
---@field schedule gpipe.Schedule
---@field simulation gpipe.Simulation
---@field stages integer
---@field makespan number
---@field span number
---@field bubble number idle share of the makespan, mean over the devices
---@field peak number activations of one micro-batch on a whole device's share, the most on any
--- device
---@field peak_bytes number the most on any device
---@field slowest? number where times vary: the mean makespan of the slowest of the replicas
---@field weights integer copies of a stage's weights on a device, times versions held at once
local function measure(entry, given)
  local schedule = entry.build()
  local share = schedule.stages / schedule.devices
  local costs = costs_of(given, share)
  local run = schedule:simulate(costs)
  return {
    label = entry.label, schedule = schedule, simulation = run, stages = schedule.stages,
    makespan = run.makespan, span = run.span, bubble = columns.mean(run.bubble),
    peak = columns.largest(run.peak_live) / share, peak_bytes = columns.largest(run.peak_bytes),
    weights = schedule.copies * columns.largest(run.versions),
    slowest = varies(given) and slowest_of(schedule, costs, given) or nil,
  }
end

-- The reason alone, without the place where it was raised and without the grid.
local function reason_of(message)
  return (message:gsub("\n.*", ""):gsub("^[^%s:]+:%d+: ", ""))
end

local function row_of(entry, given)
  local good, row = pcall(measure, entry, given)
  if good then return row end
  if type(row) ~= "string" then error(row, 0) end -- an interrupt
  return { label = entry.label, reason = reason_of(row) }
end

-- ---- text --------------------------------------------------------------------------------------

local function cells_of(row, bytes)
  if row.reason then return { row.label, row.reason, note = 2 } end
  local cells = {
    row.label, tostring(row.stages), columns.number(row.makespan), columns.number(row.span),
    ("%.1f %%"):format(100 * row.bubble), columns.number(row.peak), tostring(row.weights),
  }
  if bytes then cells[#cells + 1] = columns.number(row.peak_bytes) end
  if row.slowest then
    cells[#cells + 1] = columns.number(row.slowest)
    cells[#cells + 1] = ("%.3f"):format(row.slowest / row.makespan)
  end
  return cells
end

local function text_of(rows, given)
  local lines = { { "schedule", "stages", "makespan", "span", "bubble", "live", "weights" } }
  if given.memory then table.insert(lines[1], "bytes") end
  if varies(given) then
    lines[1][#lines[1] + 1] = given.replicas > 1 and "slowest" or "varying"
    lines[1][#lines[1] + 1] = "times"
  end
  for _, row in ipairs(rows) do lines[#lines + 1] = cells_of(row, given.memory) end
  return columns.text(lines)
end

-- ---- the call -----------------------------------------------------------------------------------

local function check(opts)
  local given = options.check(WHO, opts, spec)
  if given.memory then options.check(WHO .. ": memory", given.memory, memory_spec) end
  if #given == 0 then
    errors.raise('%s: no schedules are given, expected names such as "1f1b"', WHO)
  end
  return given
end

--- Simulate schedules and print one table: stages, makespan, span, mean bubble, the most
--- activations alive on a device (of a whole device's share of the model), copies of a stage's
--- weights a device holds (two directions, versions), and bytes where `memory` is given.
---
--- Elements are names, {name, option = ...} and schedules; `devices` and `chunks` hold for those
--- built here. The costs `F`, `I`, `W`, `B`, `R`, `U` and `memory` are those of a whole device's
--- share of the model; `comm`, `link`, `bytes`, `contention`, `overlap`, `capacity`, `joined`,
--- `barrier` and `unit` are as in `schedule:simulate`. A schedule that cannot be built or run with
--- these numbers becomes a row with the reason.
---
--- With `jitter`, `stragglers` or `slow` (as in `schedule:simulate`) a column has the mean makespan
--- of `samples` (200) runs whose times vary, or of the slowest of so many `replicas`, and how many
--- times longer that is: the schedule with the smallest figure suffers least.
--- Errors: an unknown schedule, an unknown option of compare itself.
--- ```lua
--- local rows = gp.schedule.compare{"naive", "gpipe", {"1f1b", warmup = 2}, devices = 4,
---   chunks = 8, B = 2}
--- assert(rows[3].makespan == 33 and rows[3].peak == 7)
--- ```
---@param opts table
---@return gpipe.ComparedSchedule[]
return function(opts)
  local given, entries, rows = check(opts), {}, {}
  for i, entry in ipairs(given) do entries[i] = read_entry(entry, given) end
  for i, entry in ipairs(entries) do rows[i] = row_of(entry, given) end
  io.write(text_of(rows, given), "\n")
  return rows
end
