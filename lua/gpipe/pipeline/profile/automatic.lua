-- lua/gpipe/pipeline/profile/automatic.lua - GPIPE_GPU_PROFILE=1: profiles a step of a script that
-- does not ask for it.
--
-- The profile covers the fifth step of each pipeline, until the sixth begins (so opt:step is
-- included), because the first steps plan, load libraries and capture. The table goes to standard
-- error, once for each pipeline.

local profile = require "gpipe.pipeline.profile"

local automatic = {}

local FIRST = 5
local OPTIONS = { by = "op", eager = false }

local function say(format, ...)
  io.stderr:write("gpipe: GPIPE_GPU_PROFILE: ", format:format(...), "\n")
end

-- Print the profile of the step that was timed.
local function show(pipe)
  local state = pipe.automatic
  pipe.automatic = nil
  local made = profile.finish(pipe, OPTIONS, state.before)
  say("step %d\n%s", FIRST, tostring(made))
end

-- Begin to time, except for an asynchronous schedule: draining it would change the training.
local function begin(pipe, settle)
  if pipe.asynchronous then
    pipe.automatic = nil
    return say("an asynchronous pipeline would be drained, which changes its training: "
      .. "pipe:profile does that where a script asks for it")
  end
  settle(pipe)
  pipe.automatic.before = profile.begin(pipe, OPTIONS)
  pipe.automatic.open = true
end

--- Note that a step of the pipeline begins.
---@param pipe table
---@param settle fun(pipe: table) lets the workers finish
function automatic.step(pipe, settle)
  local state = pipe.automatic
  state.steps = state.steps + 1
  if state.open then return show(pipe) end
  if state.steps == FIRST then begin(pipe, settle) end
end

--- Stop: the pipeline is about to close, or the script profiles it itself (quietly).
---@param pipe table
---@param quietly boolean?
function automatic.stop(pipe, quietly)
  local state = pipe.automatic
  if quietly or pipe.core:lost() then
    pipe.automatic = nil
    return profile.drop(pipe)
  end
  if state.open then -- closing must not fail
    if not pcall(show, pipe) then profile.drop(pipe) end
    return
  end
  pipe.automatic = nil
  if state.steps > 0 then
    say("the pipeline closes after %d steps, expected %d or more", state.steps, FIRST)
  end
end

return automatic
