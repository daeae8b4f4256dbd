-- lua/gpipe/stop.lua - `gp.on_stop`: lets a run finish its step before a signal ends it.
--
-- SIGTERM and SIGHUP end a process at once. A script that wants to save first asks for it here. The
-- signal is then held until the next step, evaluation or forward pass begins, when no work is half
-- done.

local core = require "gpipe.core"
local errors = require "gpipe.errors"

local stop = {}

local handler ---@type function?

--- Register a function that is called when SIGTERM or SIGHUP arrives: on the script's own thread,
--- before the next pass of a pipeline begins. The process then ends by the signal; a second signal
--- ends it at once.
--- ```lua
--- gp.on_stop(function(signal) print("saving, because of " .. signal) end)
--- gp.on_stop(nil) -- end at once again
--- ```
---@param f? fun(signal: "SIGTERM"|"SIGHUP")
function stop.on_stop(f)
  if f ~= nil and type(f) ~= "function" then
    errors.raise("gp.on_stop: the handler is %s, expected a function or nil", errors.show(f))
  end
  handler = f
  core.stop_ask(f and { "SIGTERM", "SIGHUP" } or {})
end

--- Handle a caught signal; every pass calls this before it begins.
function stop.check()
  local signal = handler and core.stop_caught()
  if not signal then return end
  local f = handler
  handler = nil -- the handler may evaluate
  local good, message = pcall(f, signal)
  if not good then
    io.stderr:write(("gpipe: the handler of gp.on_stop failed: %s\n"):format(tostring(message)))
  end
  core.stop_now()
end

return stop
