-- lua/gpipe/pipeline/progress.lua - the counters of a pipeline, which a checkpoint holds together
-- with its tensors.
--
-- Dropout draws by the number of the training pass, and the loss scale of f16 changes from step to
-- step: without these counters a resumed run has other bits than one that never stopped.

local errors = require "gpipe.errors"
local options = require "gpipe.options"
local precision = require "gpipe.pipeline.plan.precision"

local progress = {}

local RULES = {
  steps = { type = "integer", min = 0, max = 0xffffffff, required = true },
  skipped = { type = "integer", min = 0, default = 0 },
  loss_scale = { type = "table" },
  losses = { type = "table" },
}

---@class gpipe.Progress
---@field steps integer training passes so far: the clock of dropout
---@field skipped integer updates that were left out so far, because gradients were not finite
---@field loss_scale gpipe.LossScale? in f16
---@field losses number[]? of an asynchronous schedule: losses that the next step still has to
--- return

---@param pipe table fields of a pipeline whose workers are idle
---@return gpipe.Progress
function progress.get(pipe)
  local inner, owed = pipe.core, pipe.missing
  return {
    steps = inner:steps(), skipped = inner:skipped(), loss_scale = inner:loss_scale(),
    losses = #owed > 0 and table.move(owed, 1, #owed, 1, {}) or nil,
  }
end

local function check_losses(who, losses)
  for _, loss in ipairs(losses) do
    if type(loss) ~= "number" then
      errors.raise("%s: a loss is %s, expected a number", who, errors.show(loss))
    end
  end
end

--- Check a progress, and set nothing. With `drop`, for a checkpoint, a loss scale is left out if
--- the precision has none: training continues in another precision without it.
---@param pipe table fields of a pipeline
---@param given gpipe.Progress
---@param drop? boolean
---@return gpipe.Progress
function progress.check(pipe, given, drop)
  local who = "load_progress"
  if type(given) ~= "table" then
    errors.raise("%s: the progress is %s, expected a table as pipe:progress() returns", who,
      errors.show(given))
  end
  local o = options.check(who, given, RULES)
  check_losses(who, o.losses or {})
  if drop and not pipe.core:loss_scale() then o.loss_scale = nil end
  return o
end

--- Set a progress; if anything is wrong, nothing is set.
---@param pipe table fields of a pipeline whose workers are idle
---@param given gpipe.Progress
---@param drop? boolean see progress.check
function progress.set(pipe, given, drop)
  local o, inner = progress.check(pipe, given, drop), pipe.core
  if o.loss_scale then precision.loss_scale(inner, o.loss_scale) end
  inner:set_steps(o.steps)
  inner:set_skipped(o.skipped)
  pipe.missing = table.move(o.losses or {}, 1, #(o.losses or {}), 1, {})
end

return progress
