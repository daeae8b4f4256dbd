-- lua/gpipe/pipeline/profile/automatic.lua - GPIPE_GPU_PROFILE=1: the profile of a step, for a
-- script that does not ask.
--
-- The fifth step of each pipeline, with what follows until the sixth begins (opt:step), because the
-- first ones plan, load libraries and capture. The table goes to standard error, once a pipeline.

local profile = require "gpipe.pipeline.profile"

local automatic = {}

local FIRST = 5
local OPTIONS = { by = "op", eager = false }

local function say(format, ...)
  io.stderr:write("gpipe: GPIPE_GPU_PROFILE: ", format:format(...), "\n")
end

-- The step that was timed is over.
local function show(pipe)
  local state = pipe.automatic
  pipe.automatic = nil
  local made = profile.finish(pipe, OPTIONS, state.before)
  say("step %d\n%s", FIRST, tostring(made))
end

-- A drained pipeline is another training run where schedules are asynchronous.
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

--- A step of the pipeline begins.
---@param pipe table
---@param settle fun(pipe: table) lets the workers finish what they were given
function automatic.step(pipe, settle)
  local state = pipe.automatic
  state.steps = state.steps + 1
  if state.open then return show(pipe) end
  if state.steps == FIRST then begin(pipe, settle) end
end

--- The pipeline is about to close, or the script profiles it by itself (quietly).
---@param pipe table
---@param quietly boolean?
function automatic.stop(pipe, quietly)
  local state = pipe.automatic
  if quietly or pipe.core:lost() then
    pipe.automatic = nil
    return profile.drop(pipe)
  end
  if state.open then -- closing never fails
    if not pcall(show, pipe) then profile.drop(pipe) end
    return
  end
  pipe.automatic = nil
  if state.steps > 0 then
    say("the pipeline closes after %d steps, expected %d or more", state.steps, FIRST)
  end
end

return automatic
