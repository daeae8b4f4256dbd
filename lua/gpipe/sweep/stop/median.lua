-- lua/gpipe/sweep/stop/median.lua - the median rule: a trial stops after a step if its best value
-- so far is worse than the median over complete trials, each counted by the mean of its values up
-- to that step.
--
-- Source: D. Golovin et al., Google Vizier, KDD 2017, section 3.2.2.

local options = require "gpipe.options"

local median = {}

local OPTIONS = {
  { type = "string" },
  least = { type = "number", min = 0, default = 1 }, -- steps that every trial may do
  first = { type = "integer", min = 1, default = 5 }, -- complete trials before any is stopped
}

local Median = {}
Median.__index = Median

function Median:begin(trial) self.sweep.store:forget_reports(trial.number) end

-- The middle of the rows, or the mean of the two in the middle.
local function middle(rows)
  table.sort(rows, function(a, b) return a.mean < b.mean end)
  local n = #rows
  return (rows[(n + 1) // 2].mean + rows[n // 2 + 1].mean) / 2
end

function Median:judge(trial, step, value)
  if value ~= value then return true end
  trial.best = math.min(trial.best or math.huge, self.sign * value)
  if step <= self.least then return false end
  local rows = self.sweep.store:means(step, self.sign)
  return #rows >= self.first and trial.best > middle(rows)
end

--- The rule of a sweep.
---@param sweep gpipe.Sweep
---@param opts table
function median.new(sweep, opts)
  local o = options.check("gp.sweep: stop", opts, OPTIONS)
  return setmetatable({ sign = sweep.sign, sweep = sweep, least = o.least,
    first = o.first }, Median)
end

return median
