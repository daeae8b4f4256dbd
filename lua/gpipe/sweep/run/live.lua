-- lua/gpipe/sweep/run/live.lua - what is said while a sweep runs, on standard error: a line for
-- each trial that ended.

local core = require "gpipe.core"
local text = require "gpipe.sweep.text"

local live = {}

local Live = {}
Live.__index = Live

-- The first line of an error, which the table of trials has in full.
local function outcome(row, objective)
  if row.error then return row.state .. ": " .. row.error:match "[^\n]*" end
  return ("%s, %s %s"):format(row.state, objective, text.short(row.value))
end

--- After a trial; without one while others are waited for.
---@param row table?
function Live:see(row)
  if self.quiet or not row then return end
  local sweep = self.sweep
  if row.state == "complete" and (not self.best or sweep.sign * row.value
      < sweep.sign * self.best.value) then
    self.best = row
  end
  io.stderr:write(("trial %d/%d %s (best %s) %s\n"):format(row.number, sweep.most,
    outcome(row, sweep.objective), self.best and text.short(self.best.value) or "none yet",
    text.params(row.params)))
end

function Live.__close() end

--- The view of a sweep.
---@param sweep gpipe.Sweep
function live.new(sweep)
  return setmetatable({ sweep = sweep, quiet = sweep.options.quiet, best = sweep.best,
    started = core.seconds() }, Live)
end

return live
