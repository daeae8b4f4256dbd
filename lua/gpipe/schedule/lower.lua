-- lua/gpipe/schedule/lower.lua - s:lower(): a schedule with the actions that are added to it before
-- it runs.
--
-- These are the passes that the engine's plans start from. Actions that depend on a model (which
-- values cross which cut) are in pipe:lowered().

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"

local SPEC = {
  checkpoint = { choices = core.checkpoints, default = "never" }, -- rematerialization
  update = { choices = { "barrier", "free", "none" }, default = "barrier" },
  norm = { type = "boolean" },
  clip = { type = "boolean", default = false },
  tied = { type = "boolean", default = false },
  comms = { type = "boolean", default = true },
}

-- A schedule with these rows and the placement of another one.
local function like(schedule, rows)
  return getmetatable(schedule).new(schedule.name, {
    placement = schedule.placement, rows = rows, batch = schedule.batch,
    replicas = schedule.replicas, replica_chunks = schedule.replica_chunks,
  }, schedule.chunks)
end

-- The schedule with what lowering adds. It is as right as the one that it was made of: verifying
-- thousands of devices once more would be long work.
local function lowered_of(schedule, o)
  local checked, text = schedule.checked:lowered(o.checkpoint, o.update, o)
  if text then errors.raise("lower: %s", text) end
  local lowered = like(schedule, checked or schedule.source)
  lowered.checked = checked or schedule.checked
  return lowered
end

-- The schedule with sends and receives.
local function with_comms(schedule)
  local made = like(schedule, schedule.checked:comms())
  local good, report = made:verify()
  if not good then errors.raise("lower: %s", report) end
  return made
end

--- Add to the schedule: recomputation (R), weight gradients in ascending order (B is split into I
--- and W where the schedule runs its backward passes in another order), reductions over the copies
--- of a stage, the actions that join all stages before an update, updates (U), and sends and
--- receives where a value crosses devices.
---
--- NORM is a stage's part of the norm of all gradients, which also says whether they are finite;
--- CLIP scales the gradients when all parts are there; REDUCE_TIED adds the gradients of a
--- parameter that several layers use.
--- Errors: a schedule that does not verify.
--- ```lua
--- local s = gp.schedule.build("1f1b", {devices = 2, chunks = 1}):lower()
--- assert(s:rows()[1] == "0F0,0SEND_F0,0RECV_B0,0B0,0NORM,0U0")
--- ```
---@param opts? {checkpoint: string?, update: string?, norm: boolean?, clip: boolean?, tied: boolean?, comms: boolean?}
---  update: "barrier" after all devices, "free" after the stage's own last gradient, "none"; norm:
---  by default with a barrier
---@return gpipe.Schedule
return function(schedule, opts)
  local o = options.check("lower", opts, SPEC)
  local good, report = schedule:verify()
  if not good then errors.raise("lower: %s", report) end
  if o.norm == nil then o.norm = o.update == "barrier" or o.clip end
  if (o.norm or o.clip or o.tied) and (schedule.batch > 0 or o.update == "free") then
    o.norm, o.clip, o.tied = false, false, false -- each stage updates alone: nothing joins them
  end
  local lowered = lowered_of(schedule, o)
  return o.comms and with_comms(lowered) or lowered
end
