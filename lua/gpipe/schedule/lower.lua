-- lua/gpipe/schedule/lower.lua - s:lower(): a schedule with what is added to it before it runs.
--
-- The same passes that the engine's plans start from, made visible: what depends on a model (which
-- values cross which cut) is in pipe:lowered().

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

-- A schedule of these rows with the placement of another one.
local function like(schedule, rows)
  local Schedule = getmetatable(schedule)
  local made = Schedule.new(schedule.name, {
    placement = schedule.placement, rows = rows, batch = schedule.batch,
  }, schedule.chunks)
  local good, report = made:verify()
  if not good then errors.raise("lower: %s", report) end
  return made
end

--- The schedule with recomputation (R), weight gradients in ascending order (B split into I and W
--- where the schedule runs its backward passes in another one), reductions over two copies of a
--- stage, what joins all stages before they are updated, updates (U), and sends and receives where
--- a value crosses devices.
---
--- NORM is a stage's part of the norm of all gradients, which says too whether they are finite;
--- CLIP scales them when all parts are there; REDUCE_TIED adds the gradients of a parameter that
--- several layers use.
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
    o.norm, o.clip, o.tied = false, false, false -- each stage updates by itself: nothing joins them
  end
  local lowered = like(schedule, schedule.checked:lowered(o.checkpoint, o.update, o))
  if not o.comms then return lowered end
  return like(schedule, lowered.checked:comms())
end
