-- lua/gpipe/pipeline/stream.lua - steps that return while the workers still run, and the losses
-- that they return later.
--
-- Asynchronous schedules, and synchronous ones without a barrier, receive one mini-batch after
-- another. Losses that have become known are kept in pipe.missing until a step or flush returns
-- them.

local optimizer = require "gpipe.optim.optimizer"
local plans = require "gpipe.pipeline.plan.plans"
local remark = require "gpipe.ranks.remark"

local stream = {}

local function is_finite(x) return x == x and x ~= math.huge and x ~= -math.huge end

--- Report once that a loss is not finite; it is returned as it is.
function stream.note_loss(pipe, loss)
  if not is_finite(loss) and not pipe.warned then
    pipe.warned = true
    remark("the loss is %s at step %d (reported once; finite = true names the layer)",
      loss ~= loss and "nan" or loss, pipe.core:steps())
  end
  return loss
end

--- Report once that updates were skipped because gradients were not finite; pipe.stats.skipped
--- counts them.
function stream.note_skips(pipe)
  if pipe.skip_said or pipe.core:skipped() == pipe.skips then return end
  pipe.skip_said = true
  optimizer.say_skipped()
end

-- Append the losses that have become known to the list that the next step or flush returns.
local function collect(pipe)
  local first = #pipe.missing + 1
  pipe.core:losses(pipe.missing)
  for i = first, #pipe.missing do stream.note_loss(pipe, pipe.missing[i]) end
end

--- Let the workers finish their mini-batches; without a stream there is nothing to do.
function stream.settle(pipe)
  if not pipe.core:stream() then return end
  pipe.core:drain()
  collect(pipe)
  stream.note_skips(pipe)
end

--- Take the losses that no step has returned yet.
function stream.take_missing(pipe)
  local losses = pipe.missing
  pipe.missing = {}
  return losses
end

--- Submit a mini-batch to the workers; return the losses that have become known, or, in a
--- synchronous pipeline, its own loss.
function stream.submit(pipe, inputs, targets, hyper)
  if not plans.is_open(pipe, "step", inputs, targets) then stream.settle(pipe) end
  local plan = plans.get(pipe, "step", inputs, targets)
  pipe.core:submit(plan.handle, { inputs = inputs, targets = targets, hyper = hyper })
  collect(pipe)
  if pipe.asynchronous then return stream.take_missing(pipe) end
  return table.remove(stream.take_missing(pipe))
end

return stream
