-- lua/gpipe/run_writer/ending.lua - when a run is told to end: signals, and the time that it may
-- take.
--
-- The first SIGTERM, SIGHUP, SIGINT or SIGUSR1 (which SLURM is asked for with --signal) is kept for
-- the end of the step; a second one acts at once. In the interactive mode Ctrl-C is the prompt's.

local core = require "gpipe.core"

local ending = {}

--- The exit code of a run that was stopped and wants to be started again (EX_TEMPFAIL).
ending.AGAIN = 75

local SIGNALS = { "SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1" }

local function is_interactive() return rawget(package.loaded, "gpipe.shell.repl") ~= nil end

local listeners = 0 -- runs that are open

--- Keep signals for the end of a step from now on, or not any more: until every run that asked for
--- it is closed.
---@param whether boolean
function ending.listen(whether)
  local before = listeners
  listeners = listeners + (whether and 1 or -1)
  if is_interactive() or (before > 0) == (listeners > 0) then return end
  core.stop_ask(listeners > 0 and SIGNALS or {})
end

--- Why a run should end now; nil where it should not.
---@param deadline? number seconds of core.seconds
---@param margin number seconds that ending takes
---@return string?
function ending.reason(deadline, margin)
  local signal = core.stop_caught()
  if signal then return signal end
  if deadline and core.seconds() + margin >= deadline then return "the time is over" end
end

--- End the process with everything written out; in the interactive mode raise.
---@param text string for people
function ending.leave(text)
  if is_interactive() then error(text, 0) end
  io.stdout:flush()
  io.stderr:write("gpipe: ", text, "\n")
  os.exit(ending.AGAIN, true)
end

return ending
