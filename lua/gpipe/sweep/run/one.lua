-- lua/gpipe/sweep/run/one.lua - run one trial in this process: whatever its function does, its
-- outcome is written, and the sweep goes on.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local random = require "gpipe.random"
local show = require "gpipe.show"
local together = require "gpipe.sweep.run.together"
local trial = require "gpipe.sweep.trial"

local one = {}

local function is_interrupt(object)
  return type(object) == "table" and object.code == "interrupt"
end

-- A traceback with frames of the script only: ours say nothing about its mistake.
local function traceback_of(object)
  local message = type(object) == "string" and object or show.value(object)
  local lines = {}
  for line in debug.traceback(message, 3):gmatch "[^\n]+" do
    local ours = line:find("^\t" .. errors.own_prefix:sub(2):gsub("%p", "%%%0"))
      or line:find "^\t%.%.%.[^:]*gpipe/" or line:find "in function 'xpcall'"
    if not ours then lines[#lines + 1] = line end
  end
  return table.concat(lines, "\n")
end

-- Call f(params, trial) for at most `seconds`. The alarm is cancelled inside the protected call, so
-- that it cannot interrupt anything outside.
local function call(f, self, seconds)
  local params, rang = {}, false
  for name, value in pairs(self.params) do params[name] = value end
  local function protected()
    core.alarm(seconds or 0)
    local result = f(params, self)
    rang = core.alarm(0)
    return result
  end
  local function handler(object)
    rang = core.alarm(0) or rang
    return { object = object, text = not is_interrupt(object) and traceback_of(object) or nil }
  end
  local good, result = xpcall(protected, handler)
  return good, result, rang
end

-- Free the pipelines and tensors that the trial made: the garbage collector hardly sees how large
-- they are. It runs twice, because a finalizer may release more garbage.
local function collect(live)
  if core.memory().live <= live then return end
  collectgarbage()
  collectgarbage()
end

local function outcome_of(self, good, result, rang, seconds)
  if rang then
    return { state = "timeout", error = ("it ran for more than %g seconds"):format(seconds) }
  end
  if good then return trial.outcome(self, result) end
  if is_interrupt(result.object) then return nil, result.object end
  return { state = "failed", error = result.text }
end

--- Run a claimed trial and write how it ended.
--- Errors: Ctrl-C is passed on to the caller; `Store:leave` then gives the trial back.
---@param sweep gpipe.Sweep
---@param number integer
---@param f fun(params: table, trial: gpipe.Trial): any
---@return table? row nil where another process took the trial
function one.run(sweep, number, f)
  local store, opts = sweep.store, sweep.options
  local row = store:refresh()[number]
  local params = next(row.params) and row.params or sweep:suggest(number)
  if not next(row.params) then store:set_params(number, params) end
  local self = trial.new(sweep, row, params)
  if sweep.rule then sweep.rule:begin(self) else store:forget_reports(number) end
  together.next { number = number, attempts = row.attempts, params = params, budget = self.budget }
  local before, live, began = random.state(), core.memory().live, core.seconds()
  random.seed(self.seed)
  local good, result, rang = call(f, self, opts.timeout)
  random.restore(before)
  local outcome, interrupt = outcome_of(self, good, result, rang, opts.timeout)
  result = nil -- luacheck: ignore
  if interrupt then error(interrupt, 0) end
  if not good and together.is_on() then together.check() end
  local reason = together.meet(not good and outcome.error or nil)
  if reason and (good or outcome.state == "failed") then
    outcome = { state = "failed", error = reason }
  end
  outcome.seconds, outcome.step = core.seconds() - began, self.step
  store:finish(number, outcome)
  self = nil -- luacheck: ignore
  collect(live)
  return store:refresh()[number]
end

--- Run a trial that rank 0 has taken; that writes how the trial ended, on all ranks.
---@param sweep gpipe.Sweep
---@param told gpipe.ToldTrial
---@param f fun(params: table, trial: gpipe.Trial): any
---@return string? text of this rank's error
function one.follow(sweep, told, f)
  local self = trial.new(sweep, told, told.params)
  self.budget = told.budget
  local before, live = random.state(), core.memory().live
  random.seed(self.seed)
  local good, result = call(f, self)
  random.restore(before)
  if not good and is_interrupt(result.object) then error(result.object, 0) end
  local text = not good and result.text or nil
  self, result = nil, nil -- luacheck: ignore
  collect(live)
  return text
end

return one
