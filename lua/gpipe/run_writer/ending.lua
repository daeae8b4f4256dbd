-- lua/gpipe/run_writer/ending.lua - why a run ends early: signals, and the time that it may take.
--
-- The first SIGTERM, SIGHUP, SIGINT or SIGUSR1 (which SLURM sends with --signal) waits for the end
-- of the step; a second one acts at once. In the interactive mode Ctrl-C belongs to the prompt.

local core = require "gpipe.core"
local remark = require "gpipe.ranks.remark"

local ending = {}

--- The exit code of a run that was stopped and wants to be started again (EX_TEMPFAIL).
ending.AGAIN = 75

local SIGNALS = { "SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1" }

local function is_interactive() return rawget(package.loaded, "gpipe.shell.repl") ~= nil end

local listeners = 0 -- runs that are open

--- From now on keep signals for the end of a step, or stop doing so. They are kept until every run
--- that asked for it is closed.
---@param whether boolean
function ending.listen(whether)
  local before = listeners
  listeners = listeners + (whether and 1 or -1)
  if is_interactive() or (before > 0) == (listeners > 0) then return end
  core.stop_ask(listeners > 0 and SIGNALS or {})
end

--- Say why a run should end now; nil where it should go on.
---@param deadline? number seconds of core.seconds
---@param margin number seconds that ending takes
---@return string?
function ending.reason(deadline, margin)
  local signal = core.stop_caught()
  if signal then return signal end
  if deadline and core.seconds() + margin >= deadline then return "the time is over" end
end

--- Flush all output and end the process, as all ranks do at this step; in the interactive mode
--- raise instead.
---@param text string for people
function ending.leave(text)
  if is_interactive() then error(text, 0) end
  io.stdout:flush()
  remark("%s", text)
  os.exit(ending.AGAIN, true)
end

return ending
