-- lua/gpipe/sweep/stop/asha.lua - asynchronous successive halving.
--
-- Rungs lie at least, least * reduction, least * reduction^2, ... steps. A trial that reaches a
-- rung goes on if its value is among the best 1 / reduction of those that have reached it so far,
-- or is the best of fewer; no trial waits for another. This is the stopping form: a trial is a call
-- of a function, which cannot be suspended, so a stopped trial is not promoted later.
-- Source: L. Li et al., A system for massively parallel hyperparameter tuning, MLSys 2020,
-- section 3.2, algorithm 2; the stopping form as in its section 3.3 on Ray Tune.

local options = require "gpipe.options"

local asha = {}

local OPTIONS = {
  { type = "string" },
  least = { type = "number", above = 0, default = 1 },
  reduction = { type = "number", above = 1, default = 4 },
}

local Asha = {}
Asha.__index = Asha

--- Begin a trial: what it reported before it was interrupted does not count.
function Asha:begin(trial)
  self.sweep.store:forget_reports(trial.number)
  trial.next_rung = self.least
end

-- Whether a trial with this value goes on from a rung.
local function goes_on(rows, value, reduction)
  local ahead = 0
  for _, row in ipairs(rows) do
    if row.value < value then ahead = ahead + 1 end
  end
  return ahead < math.max(1, #rows // reduction)
end

--- Whether the trial is to stop after a step. With NaN it always stops.
function Asha:judge(trial, step, value)
  if value ~= value then return true end
  while step >= trial.next_rung do
    local rung = trial.next_rung
    trial.next_rung = rung * self.reduction
    -- a report that jumps over rungs counts at all of them
    local rows = self.sweep.store:rung(rung, trial.number, self.sign * value)
    if not goes_on(rows, self.sign * value, self.reduction) then return true end
  end
  return false
end

--- The rule of a sweep.
---@param sweep gpipe.Sweep
---@param opts table
function asha.new(sweep, opts)
  local o = options.check("gp.sweep: stop", opts, OPTIONS)
  return setmetatable({ sign = sweep.sign, sweep = sweep, least = o.least,
    reduction = o.reduction }, Asha)
end

return asha
