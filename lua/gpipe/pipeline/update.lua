-- lua/gpipe/pipeline/update.lua - pipe:use(opt): the update as an action of the schedule.

local caps = require "gpipe.pipeline.plan.caps"
local errors = require "gpipe.errors"
local optimizer = require "gpipe.optim.optimizer"
local options = require "gpipe.options"
local plans = require "gpipe.pipeline.plan.plans"
local stream = require "gpipe.pipeline.stream"

local update = {}

--- Check that a step may run with the settings for updates.
function update.check_step(pipe, accumulate)
  if pipe.asynchronous and not pipe.hypers then
    errors.raise("step: schedule '%s' is asynchronous, its updates are part of it: call "
      .. "pipe:use(opt) first",
      tostring(pipe.schedule_name))
  end
  if pipe.hypers and accumulate then
    errors.raise("step: accumulate makes no sense with pipe:use(opt), which updates after every "
      .. "step")
  end
end

local USE = {
  clip_norm = { type = "number", min = 0 },
  barrier = { type = "boolean" },
}

--- Check what pipe:use was given.
---@param pipe table its fields
---@param opt any
---@param opts? table
---@return table? handle of optimizer.open
---@return function hypers
---@return table o the options
---@return boolean free whether stages update by themselves
function update.check_use(pipe, opt, opts)
  local handle, hypers = optimizer.open(opt)
  if not handle then
    errors.raise("use: the optimizer is %s, expected one of gp.optim", errors.show(opt))
  end
  local o = options.check("use", opts, USE)
  if o.barrier == nil then o.barrier = pipe.barrier end
  local free = pipe.asynchronous or o.barrier == false
  if o.clip_norm and free then
    errors.raise("use: clip_norm needs the gradients of all stages, and stages are updated at "
      .. "different times: expected a synchronous schedule with a barrier")
  end
  if pipe.asynchronous and o.barrier then
    errors.raise("use: an asynchronous schedule has no barrier: leave the option out")
  end
  if pipe.copies > pipe.replicas and o.barrier == false then
    errors.raise("use: the schedule runs every stage on %d devices, whose gradients are added "
      .. "before the update: it needs the barrier", pipe.copies)
  end
  if pipe.replicas > 1 and o.barrier == false and not pipe.apart then
    errors.raise("use: %d replicas that update without a barrier have values of their own: "
      .. "expected option 'barrier' = false of gp.pipeline, which plans their memory",
      pipe.replicas)
  end
  if pipe.precision.scale and free then
    errors.raise("use: precision 'f16' skips updates whose gradients overflow, which no stage may "
      .. "do alone: it needs the barrier")
  end
  return handle, hypers, o, free
end

-- Use the optimizer if its moments fit the caps of the devices; else the one before, if any.
local function use_within_caps(pipe, used)
  local before = pipe.used
  pipe.core:use(table.unpack(used, 1, 3))
  local why = caps.moments(pipe)
  if why then
    pipe.core:use(table.unpack(before or {}, 1, 3))
    errors.raise_as("memory", "use: %s", why)
  end
  pipe.used = used
end

--- Make the update an action of the schedule, U, on the device of each stage. Then step() also
--- updates, and opt:step() is an error. Settings such as opt.lr are read at every step.
---
--- clip_norm: first clip the gradients to this global norm. barrier (default true): all stages
--- update or none. barrier = false: a stage updates as soon as its own gradients are ready, and the
--- next step may begin meanwhile, which schedules such as zb_h2 and zbv need. After a failure some
--- stages may be updated and others not; the pipeline then refuses to continue until a state is
--- loaded. Until the next flush (or another call that drains) the pipeline still reads the batches
--- and still changes the parameters: do not write the batches, and do not rely on the parameters,
--- not even through model:state_dict().
---
--- If gradients are not finite, nothing is updated (option `finite` of gp.pipeline). Without a
--- barrier each stage checks only its own gradients, because the others may be updated by then.
---
--- Errors: moments with which a device holds more than its option `memory`; the optimizer before,
--- if any, stays in use.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- pipe:use(gp.optim.SGD(pipe:parameters(), {lr = 0.1}))
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- ```
---@param opt gpipe.Optimizer
---@param opts? {clip_norm?: number, barrier?: boolean}
---@return gpipe.Pipeline self
function update.use(pipe, opt, opts)
  local handle, hypers, o, free = update.check_use(pipe, opt, opts)
  plans.drop(pipe)
  use_within_caps(pipe, { handle, o.clip_norm, not free })
  pipe.hypers, pipe.free, pipe.pending = hypers, free, nil
  optimizer.attach(opt, function()
    if pipe.core then stream.settle(pipe) end
  end)
  return pipe
end

return update
