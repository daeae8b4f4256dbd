-- lua/gpipe/pipeline/checks.lua - what the methods of a pipeline check before they do anything.

local errors = require "gpipe.errors"
local fields = require "gpipe.pipeline.plan.fields"
local stream = require "gpipe.pipeline.stream"

local checks = {}

--- Check that the pipeline can still be used: that it is open and its layers are as they were.
---@param pipe gpipe.Pipeline
---@param who string the method, for the error's text
function checks.live(pipe, who)
  if not pipe.core then errors.raise("%s: the pipeline is closed", who) end
  if pipe.core:lost() then
    errors.raise("%s: the pipeline is lost, a device did not come back from an action: close it",
      who)
  end
  fields.check_layers(who, pipe.made_of)
end

--- Check that the pipeline can still be used, and wait until nothing is running, as all methods
--- but step need.
---@param pipe gpipe.Pipeline
---@param who string
function checks.quiet(pipe, who)
  checks.live(pipe, who)
  stream.settle(pipe)
end

--- Check that the pipeline has a loss.
---@param pipe gpipe.Pipeline
---@param who string
function checks.need_loss(pipe, who)
  if not pipe.loss then
    errors.raise("%s: the pipeline has no loss, expected option 'loss' (or use forward and "
      .. "backward)", who)
  end
end

return checks
