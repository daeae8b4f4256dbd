-- lua/gpipe/pipeline/progress.lua - the counters of a pipeline, which a checkpoint holds beside its
-- tensors.
--
-- Dropout draws by the number of the training pass, and the loss scale of f16 moves with every
-- step: without them a resumed run has other bits than one that never stopped.

local errors = require "gpipe.errors"
local options = require "gpipe.options"
local precision = require "gpipe.pipeline.plan.precision"

local progress = {}

local RULES = {
  steps = { type = "integer", min = 0, max = 0xffffffff, required = true },
  skipped = { type = "integer", min = 0, default = 0 },
  loss_scale = { type = "table" },
}

---@class gpipe.Progress
---@field steps integer training passes so far: the clock of dropout
---@field skipped integer updates that were left out so far, because gradients were not finite
---@field loss_scale gpipe.LossScale? in f16

---@param inner userdata
---@return gpipe.Progress
function progress.get(inner)
  return { steps = inner:steps(), skipped = inner:skipped(), loss_scale = inner:loss_scale() }
end

--- Nothing is set where anything is wrong.
---@param inner userdata
---@param given gpipe.Progress
function progress.set(inner, given)
  local who = "load_progress"
  if type(given) ~= "table" then
    errors.raise("%s: the progress is %s, expected a table as pipe:progress() returns", who,
      errors.show(given))
  end
  local o = options.check(who, given, RULES)
  if o.loss_scale then precision.loss_scale(inner, o.loss_scale) end
  inner:set_steps(o.steps)
  inner:set_skipped(o.skipped)
end

return progress
