-- lua/gpipe/run_reader/folder.lua - one run, read from its folder.
--
-- The run may be writing to the folder at this moment. So nothing here writes, an incomplete line
-- is skipped until it is complete, and `faults` lists what is damaged beside what could be read.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local process = require "gpipe.run_reader.process"
local read = require "gpipe.run_reader.read"

---@class gpipe.RunFolder
---@field path string
---@field name string
---@field state string "running", "killed", "finished", "stopped", "failed", or "unknown"
---@field reason? string why it stopped or failed
---@field step? integer
---@field steps? integer of the whole run
---@field loss? number the last one
---@field best? {name: string, value: number, step: integer?}
---@field rate? number of `unit`
---@field unit? string "rows/s"
---@field seconds? number spent, over all resumes
---@field created? number seconds since 1970
---@field updated? number
---@field config table what the script gave
---@field about table all of config.json
---@field faults string[] what of the folder could not be read
local Run = {}
Run.__index, Run.__name = Run, "gpipe.RunFolder"

local folder = {}

local STATES = { running = true, finished = true, stopped = true, failed = true }

-- ---- state -------------------------------------------------------------------------------------

-- A run whose state is "running" while its process is gone was killed. The process can only be
-- looked up on its own host.
local function state_of(state)
  local word = read.string(state, "state")
  if not STATES[word] then return "unknown" end
  if word ~= "running" or read.string(state, "host") ~= process.host() then return word end
  local pid = math.tointeger(read.number(state, "pid"))
  return pid and process.runs(pid) == false and "killed" or word
end

local function best_of(state)
  local best = read.table(state, "best")
  local name, value = read.string(best, "name"), read.number(best, "value")
  return name and value and { name = name, value = value, step = read.number(best, "step") } or nil
end

local function read_state(self)
  local state, fault = read.object(self.path .. "/state.json")
  self.faults[#self.faults + 1] = fault
  self.state, self.reason = state_of(state), read.string(state, "reason")
  self.step = math.tointeger(read.number(state, "step"))
  self.steps = math.tointeger(read.number(state, "steps"))
  self.loss, self.best = read.number(state, "loss"), best_of(state)
  self.rate, self.unit = read.number(state, "rate"), read.string(state, "unit")
  self.created = read.number(state, "created") or self.created
  self.updated, self.seconds = read.number(state, "updated"), read.number(state, "seconds")
end

local function read_config(self)
  local about, fault = read.object(self.path .. "/config.json")
  self.faults[#self.faults + 1] = fault
  self.about = about or {}
  self.name = read.string(about, "name") or self.path:match "([^/]+)/*$" or self.path
  self.created = read.number(about, "created")
  self.config = read.table(about, "config") or {}
end

-- ---- records -----------------------------------------------------------------------------------

-- Read the records that were appended since the last time, and note their faults.
local function update_records(self, records)
  local count, message = core.records_update(records)
  if not count then self.faults[#self.faults + 1] = message end
  local damaged, first = core.records_damage(records)
  if damaged > 0 then
    self.faults[#self.faults + 1] = damaged == 1 and first
      or ("%s (and %d more lines)"):format(first, damaged - 1)
  end
  return records
end

--- The records of log.jsonl, opened when first asked for.
---@return userdata
function folder.log(run)
  run.records = run.records
    or update_records(run, core.records_open(run.path .. "/log.jsonl"))
  return run.records
end

--- The records of timing.jsonl, which hold the time of each step.
---@return userdata
function folder.timing(run)
  run.times = run.times or update_records(run, core.records_open(run.path .. "/timing.jsonl"))
  return run.times
end

-- Take step and loss from the log: the state of the run cannot be read.
local function step_of_log(self)
  local log = folder.log(self)
  self.loss = self.loss or core.records_last(log, "loss")
  for _, name in ipairs(core.records_names(log)) do
    local _, step = core.records_last(log, name)
    self.step = math.max(self.step or 0, math.tointeger(step) or 0)
  end
end

-- ---- methods -----------------------------------------------------------------------------------

--- Read what the run has written since the last time.
---
--- ```lua
--- for _, r in ipairs(gp.runs "runs" or {}) do r:update() end
--- ```
---@return gpipe.RunFolder self
function Run:update()
  self.faults = {}
  read_config(self)
  read_state(self)
  if self.records then update_records(self, self.records) end
  if self.times then update_records(self, self.times) end
  if not self.step then step_of_log(self) end
  return self
end

--- List the names of the values that the run logged, in alphabetical order.
---
--- ```lua
--- for _, r in ipairs(gp.runs "runs" or {}) do print(table.concat(r:names(), " ")) end
--- ```
---@return string[]
function Run:names()
  local names = core.records_names(folder.log(self))
  table.sort(names)
  return names
end

--- Read all values of a name and the steps at which they were logged.
--- Shapes: f64 [N] both, N records that have the name, in the order of the log. Values that were
--- not finite are nan, inf or -inf.
--- Errors: raises for a name that the run did not log.
---
--- ```lua
--- for _, r in ipairs(gp.runs "runs" or {}) do
---   local loss, steps = r:column("loss")
---   print(loss:min():item(), steps[loss:argmin():item()])
--- end
--- ```
---@param name string
---@return gpipe.Tensor values
---@return gpipe.Tensor steps
function Run:column(name)
  name = options.argument("run:column", "name", name, { type = "string", required = true })
  local steps, values = core.records_column(folder.log(self), name)
  if not steps then
    errors.raise("run:column: '%s' has no '%s'%s", self.name, name,
      errors.hint(name, self:names(), "names"))
  end
  return values, steps
end

--- Draw the curves of the run as text for a terminal.
--- Errors: raises for names that the run did not log.
---
--- ```lua
--- for _, r in ipairs(gp.runs "runs" or {}) do
---   print(r:plot())                                         -- the losses
---   print(r:plot({"loss,val_loss", "lr"}, {smooth = 0.9}))  -- two pictures
--- end
--- ```
---@param names? string|string[] a picture each; "loss,val_loss" is one of both
---@param opts? {x?: "step"|"time", smooth?: number, log?: boolean, width?: integer, height?: integer,
---  colour?: boolean, unicode?: boolean} smooth: share of the past in each point, below 1; log: of
---  values; height: lines of a picture
---@return string
function Run:plot(names, opts)
  return require("gpipe.draw.runs").text("run:plot", { self }, names, opts)
end

function Run:__tostring() return require("gpipe.run_reader.table").text { self } end

--- Read the run in a folder.
---@param path string
---@return gpipe.RunFolder
function folder.open(path)
  return Run.update(setmetatable({ path = path }, Run))
end

folder.methods = Run

return folder
