-- lua/gpipe/sweep/trial.lua - the trial object that the objective gets beside its parameters, and
-- the meaning of what the objective returns.

local errors = require "gpipe.errors"
local options = require "gpipe.options"
local together = require "gpipe.sweep.run.together"

local trial = {}

---@class gpipe.Trial
---@field number integer from 1
---@field params table<string, any>
---@field seed integer of gp.seed in this trial
---@field attempt integer 1, more where it was interrupted before
---@field budget? number with stop = "halving": steps that it may do this time
---@field step? number the last step that was reported, possibly in an earlier attempt
local Trial = {}
Trial.__index = Trial
Trial.__name = "gpipe.Trial"

local NUMBER = { type = "number", required = true }

--- Report the value that the sweep minimizes or maximizes after a step (of any unit: epochs,
--- batches). Returns true where the sweep's rule stops the trial: the function should return then.
--- Errors: a step that is no number, or not after the one before.
--- ```lua
--- local folder = os.tmpname()
--- os.remove(folder)
--- local s = gp.sweep {name = "report", dir = folder, trials = 2, quiet = true,
---   space = {x = gp.sweep.uniform(0, 1)}}
--- s:run(function(params, trial)
---   for epoch = 1, 10 do
---     if trial:report(epoch, params.x / epoch) then return end
---   end
--- end)
--- ```
---@param step number
---@param value number
---@return boolean stop
function Trial:report(step, value)
  local who = "trial:report"
  step = options.argument(who, "step", step, NUMBER)
  value = options.argument(who, "value", value, NUMBER)
  if self.last and step <= self.last.step or step ~= step then
    errors.raise("%s: step is %s, expected more than %s", who, tostring(step),
      self.last and tostring(self.last.step) or "no step")
  end
  self.last, self.step = { step = step, value = value }, step
  if not together.follows() then
    self.sweep.store:report(self.number, step, value == value and value or nil)
    local rule = self.sweep.rule
    if rule and not self.stopped then self.stopped = rule:judge(self, step, value) end
  end
  self.stopped = together.stops(self.stopped or false)
  return self.stopped
end

--- "trial 7 (lr=0.001 width=64)"
---@return string
function Trial:__tostring()
  return ("trial %d (%s)"):format(self.number, require("gpipe.sweep.text").params(self.params))
end

--- Its methods, for the documentation.
trial.methods = { report = Trial.report }

--- Make the object of a trial.
---@param sweep gpipe.Sweep
---@param row table of the file
---@param params table<string, any>
---@return gpipe.Trial
function trial.new(sweep, row, params)
  return setmetatable({
    sweep = sweep, number = row.number, params = params, attempt = row.attempts, row = row,
    seed = sweep.options.seed + row.number,
  }, Trial)
end

-- ---- what it returned --------------------------------------------------------------------------

local function fault(form, ...) return { state = "failed", error = form:format(...) } end

-- The numbers of a table that the objective returned.
local function numbers_of(result)
  local values = {}
  for name, value in pairs(result) do
    if type(name) == "string" and type(value) == "number" then values[name] = value end
  end
  return values
end

local function judged(self, value, values)
  if value ~= value then return fault("its value is nan, expected a number") end
  if value * self.sweep.sign == -math.huge then
    return fault("its value is %s, better than any number: expected a finite one", value)
  end
  return { state = self.stopped and "stopped" or "complete", value = value, values = values }
end

--- The outcome of a trial whose function returned a number, a table of numbers with the objective
--- among them, or nothing, which means the last report.
---@param self gpipe.Trial
---@param result any
---@return {state: string, value: number?, values: table?, error: string?}
function trial.outcome(self, result)
  local name = self.sweep.objective
  if type(result) == "number" then return judged(self, result) end
  if result == nil and self.last then return judged(self, self.last.value) end
  if type(result) ~= "table" or getmetatable(result) ~= nil then
    return fault("the function returned %s, expected a number or a table with '%s'%s",
      errors.show(result), name, result == nil and ", or reports" or "")
  end
  local values = numbers_of(result)
  if not values[name] then
    return fault("the function returned a table without a number '%s'%s", name,
      errors.hint(name, require("gpipe.sweep.text").names(values), "numbers in it"))
  end
  return judged(self, values[name], values)
end

return trial
