-- lua/gpipe/sweep/stop/halving.lua - successive halving in rounds.
--
-- Every trial may do `least` steps at first; `trial.budget` says how many. When all have done them,
-- the best 1 / reduction of the trials are run again with a budget `reduction` times as large, and
-- so on up to `most` steps. A function that saves checkpoints resumes at `trial.step`; one that
-- does not starts again, which costs at most 1 / (reduction - 1) more.
-- Source: K. Jamieson, A. Talwalkar, Non-stochastic best arm identification and hyperparameter
-- optimization, AISTATS 2016, figure 3.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local halving = {}

local OPTIONS = {
  { type = "string" },
  least = { type = "number", above = 0, default = 1 },
  most = { type = "number", above = 0, required = true },
  reduction = { type = "number", above = 1, default = 3 },
}

local Halving = {}
Halving.__index = Halving

local function budget_of(self, rung)
  return math.min(self.least * self.reduction ^ rung, self.most)
end

--- Begin a trial. Its reports stay, because a function may resume where it was.
function Halving:begin(trial)
  trial.budget = budget_of(self, trial.row.rung or 0)
  trial.step = self.sweep.store:last_step(trial.number)
end

--- Whether the trial's budget is spent. The last budget is the whole training, which ends by
--- itself.
function Halving:judge(trial, step, value)
  return value ~= value or (step >= trial.budget and trial.budget < self.most)
end

-- How many trials reached a rung, which stopped there with a value, and whether any of them may
-- still run.
local function at(rows, rung)
  local reached, stopped, open = 0, {}, false
  for _, row in ipairs(rows) do
    local own = row.rung or 0
    if own >= rung then reached = reached + 1 end
    if own == rung and row.state == "stopped" and row.value then stopped[#stopped + 1] = row end
    open = open or (own == rung and row.is_open == 1)
  end
  return reached, stopped, open
end

--- Give the best trials of a finished round a larger budget. Called inside of a transaction, where
--- no other trial is left.
---@return boolean whether there are trials now
function Halving:promote(retries)
  local rows = self.sweep.store:rungs(retries)
  for rung = 0, math.huge do
    local reached, stopped, open = at(rows, rung)
    if reached == 0 or open or budget_of(self, rung) >= self.most then return false end
    local further = at(rows, rung + 1)
    local count = further > 0 and 0 or math.min(math.max(1, reached // self.reduction), #stopped)
    table.sort(stopped, function(a, b)
      local x, y = self.sign * a.value, self.sign * b.value
      return x < y or x == y and a.number < b.number
    end)
    for i = 1, math.tointeger(count // 1) do
      self.sweep.store:promote(stopped[i].number, rung + 1)
    end
    if count > 0 then return true end
  end
end

--- The rule of a sweep.
---@param sweep gpipe.Sweep
---@param opts table
function halving.new(sweep, opts)
  local o = options.check("gp.sweep: stop", opts, OPTIONS)
  if o.most < o.least then
    errors.raise("gp.sweep: stop: most is %g and least is %g, expected most >= least", o.most,
      o.least)
  end
  return setmetatable({ sign = sweep.sign, sweep = sweep, least = o.least, most = o.most,
    reduction = o.reduction }, Halving)
end

return halving
