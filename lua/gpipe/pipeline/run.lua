-- lua/gpipe/pipeline/run.lua - the pipeline object: steps, evaluation, state, figures.
--
-- Each method checks its tensors, finds the plan for their shape and hands them to the runtime; no
-- Lua runs inside a step.

local errors = require "gpipe.errors"
local describe = require "gpipe.pipeline.describe"
local nn_state = require "gpipe.nn.state"
local optimizer = require "gpipe.optim.optimizer"
local options = require "gpipe.options"
local plans = require "gpipe.pipeline.plans"
local create = require "gpipe.tensor.create"

---@class gpipe.Pipeline
---@field stats table of the last pass: seconds, bubble, peak_live, peak_bytes
local Pipeline = {}
local methods = {}
Pipeline.__name = "gpipe.Pipeline"

--- Wrap what gp.pipeline made.
function Pipeline.new(fields)
  fields.plans, fields.plan_count, fields.clock = {}, 0, 0
  fields.mode, fields.missing = "train", {}
  return setmetatable(fields, Pipeline)
end

-- ---- checks ----------------------------------------------------------------------------------

local function is_tensor(value) return getmetatable(value) == "gpipe.Tensor" end

local function live(pipe, who)
  if not pipe.core then errors.raise("%s: the pipeline is closed", who) end
  if pipe.core:lost() then
    errors.raise("%s: the pipeline is lost, a device did not come back from an action: close it", who)
  end
end

-- One tensor, or a list of them, as a list of contiguous ones.
local function tensors_of(who, what, value)
  local list = is_tensor(value) and { value } or value
  if type(list) ~= "table" or #list == 0 then
    errors.raise("%s: the %s is %s, expected a tensor (or a list of tensors)", who, what,
      errors.show(value))
  end
  local dense = {}
  for i, t in ipairs(list) do
    if not is_tensor(t) then
      errors.raise("%s: the %s is %s, expected a tensor", who, what, errors.show(t))
    end
    if #t.shape == 0 then
      errors.raise("%s: the %s is a scalar, expected rows in the first dimension", who, what)
    end
    dense[i] = t:contiguous()
  end
  return dense
end

local function check_rows(who, inputs, targets)
  local rows = inputs[1].shape[1]
  if rows == 0 then errors.raise("%s: the batch is empty, expected at least one row", who) end
  for _, list in ipairs { inputs, targets } do
    for _, t in ipairs(list) do
      if t.shape[1] ~= rows then
        errors.raise("%s: the input has %d rows and the %s %d, expected the same number", who, rows,
          list == targets and "target" or "other input", t.shape[1])
      end
    end
  end
end

local function need_loss(pipe, who)
  if not pipe.loss then
    errors.raise("%s: the pipeline has no loss, expected option 'loss' (or use forward and backward)",
      who)
  end
end

-- ---- training and evaluation -----------------------------------------------------------------

local function is_finite(x) return x == x and x ~= math.huge and x ~= -math.huge end

-- A loss that is not finite is returned as it is, and said once.
local function note_loss(pipe, loss)
  if not is_finite(loss) and not pipe.warned then
    pipe.warned = true
    io.stderr:write(("gpipe: the loss is %s at step %d (said once; finite = true names the layer)\n")
      :format(loss ~= loss and "nan" or loss, pipe.core:steps()))
  end
  return loss
end

-- ---- streams: steps that return while the workers go on ----------------------------------------

-- Losses that became known go to the list that the next step or flush returns.
local function collect(pipe)
  local first = #pipe.missing + 1
  pipe.core:losses(pipe.missing)
  for i = first, #pipe.missing do note_loss(pipe, pipe.missing[i]) end
end

-- Let the workers finish what was fed; nothing to do without a stream.
local function settle(pipe)
  if not pipe.core:stream() then return end
  pipe.core:drain()
  collect(pipe)
end

local function take_missing(pipe)
  local losses = pipe.missing
  pipe.missing = {}
  return losses
end

-- A live pipeline with nothing under way: what everything but step wants.
local function quiet(pipe, who)
  live(pipe, who)
  settle(pipe)
end

local function feed(pipe, inputs, targets, hyper)
  if not plans.is_open(pipe, "step", inputs, targets) then settle(pipe) end
  local plan = plans.get(pipe, "step", inputs, targets)
  pipe.core:feed(plan.handle, { inputs = inputs, targets = targets, hyper = hyper })
  collect(pipe)
  if pipe.asynchronous then return take_missing(pipe) end
  return table.remove(take_missing(pipe))
end

local function check_update(pipe, accumulate)
  if pipe.asynchronous and not pipe.hypers then
    errors.raise("step: schedule '%s' is asynchronous, its updates are part of it: call pipe:use(opt) first",
      tostring(pipe.schedule_name))
  end
  if pipe.hypers and accumulate then
    errors.raise("step: accumulate makes no sense with pipe:use(opt), which updates after every step")
  end
end

--- Forward and backward of all micro-batches; gradients are ready afterwards. After pipe:use(opt) the
--- update is part of it.
---
--- An asynchronous schedule returns a list: the losses that became known, one for each of its mini-batches,
--- in order; the pipeline stays full, pipe:flush() returns the rest.
--- Shapes: x and y have the rows in the first dimension; lists of tensors where there are several.
--- Errors: shapes, dtypes, an id out of range, a failing op: named with the layer; the next step works.
---@param x gpipe.Tensor|gpipe.Tensor[]
---@param y gpipe.Tensor|gpipe.Tensor[]
---@param opts? {accumulate?: boolean} add to the gradients that are there
---@return number|number[] loss the mean over the mini-batch
function methods:step(x, y, opts)
  live(self, "step")
  need_loss(self, "step")
  local o = options.check("step", opts, { accumulate = { type = "boolean", default = false } })
  local inputs, targets = tensors_of("step", "input", x), tensors_of("step", "target", y)
  check_rows("step", inputs, targets)
  check_update(self, o.accumulate)
  local hyper = self.hypers and self.hypers()
  self.pending = nil
  if self.asynchronous or self.free then return feed(self, inputs, targets, hyper) end
  local plan = plans.get(self, "step", inputs, targets)
  return note_loss(self, (self.core:run(plan.handle,
    { inputs = inputs, targets = targets, accumulate = o.accumulate, hyper = hyper })))
end

--- Let an asynchronous pipeline, or one without a barrier, finish what it was given.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- assert(#pipe:flush() == 0)
--- ```
---@return number[] losses that no step returned yet
function methods:flush()
  quiet(self, "flush")
  return take_missing(self)
end

local USE = {
  clip_norm = { type = "number", min = 0 },
  barrier = { type = "boolean" },
}

local function check_use(pipe, o)
  local free = pipe.asynchronous or o.barrier == false
  if o.clip_norm and free then
    errors.raise("use: clip_norm needs the gradients of all stages, and stages are updated at different times: "
      .. "expected a synchronous schedule with a barrier")
  end
  if pipe.asynchronous and o.barrier then
    errors.raise("use: an asynchronous schedule has no barrier: leave the option out")
  end
  if pipe.copies > 1 and o.barrier == false then
    errors.raise("use: the schedule runs every stage on two devices, whose gradients are added before the "
      .. "update: it needs the barrier")
  end
  return free
end

--- Make the update an action of the schedule, U, on the device of each stage: step() then also updates,
--- and opt:step() is an error. Settings such as opt.lr are read at every step.
---
--- clip_norm: clip the gradients to this global norm before. barrier (default true): all stages update or
--- none. barrier = false: a stage updates as soon as its own gradients are there, and the next step may
--- begin meanwhile, which schedules such as zb_h2 and zbv want; after a failure some stages may be updated
--- and others not: the pipeline then refuses to go on until a state is loaded. Until the next flush (or
--- whatever drains) the batches given are still read, and parameters still change: neither write the ones nor
--- rely on the others, model:state_dict() included.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- pipe:use(gp.optim.SGD(pipe:parameters(), {lr = 0.1}))
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- ```
---@param opt gpipe.Optimizer
---@param opts? {clip_norm?: number, barrier?: boolean}
---@return gpipe.Pipeline self
function methods:use(opt, opts)
  quiet(self, "use")
  local handle, hypers = optimizer.open(opt)
  if not handle then
    errors.raise("use: the optimizer is %s, expected one of gp.optim", errors.show(opt))
  end
  local o = options.check("use", opts, USE)
  local free = check_use(self, o)
  plans.drop(self)
  self.core:use(handle, o.clip_norm, not free)
  self.hypers, self.free, self.pending = hypers, free, nil
  optimizer.attach(opt, function()
    if self.core then settle(self) end
  end)
  return self
end

--- Forward only, in evaluation mode; returns the mean loss. Gradients stay as they are.
---@param x gpipe.Tensor|gpipe.Tensor[]
---@param y gpipe.Tensor|gpipe.Tensor[]
---@return number loss
function methods:evaluate(x, y)
  quiet(self, "evaluate")
  need_loss(self, "evaluate")
  local inputs, targets = tensors_of("evaluate", "input", x), tensors_of("evaluate", "target", y)
  check_rows("evaluate", inputs, targets)
  local plan = plans.get(self, "evaluate", inputs, targets)
  return (self.core:run(plan.handle, { inputs = inputs, targets = targets }))
end

-- An output tensor for all rows of the batch: what a micro-batch gives, as often as its rows go into them.
local function output_for(pipe, plan, rows)
  local shape, dtype = pipe.core:output_shape(plan.handle)
  shape[1] = shape[1] // plan.rows * rows
  return create.zeros(shape, { dtype = dtype })
end

--- The output for all rows. In training mode backward(grad) may follow; dropout follows the mode.
---@param x gpipe.Tensor|gpipe.Tensor[]
---@return gpipe.Tensor
function methods:forward(x)
  quiet(self, "forward")
  local inputs = tensors_of("forward", "input", x)
  check_rows("forward", inputs, {})
  self.pending = nil
  local plan = plans.get(self, self.mode == "train" and "split" or "forward", inputs, {})
  local output = output_for(self, plan, inputs[1].shape[1])
  self.core:run(plan.handle, { inputs = inputs, output = output })
  if plan.kind == "split" then self.pending = { plan = plan, inputs = inputs, output = output } end
  return output
end

local function check_grad(grad, output)
  if not is_tensor(grad) then
    errors.raise("backward: the gradient is %s, expected a tensor", errors.show(grad))
  end
  local have, want = table.concat(grad.shape, "x"), table.concat(output.shape, "x")
  if have ~= want or grad.dtype ~= output.dtype then
    errors.raise("backward: the gradient is %s %s, expected %s %s as forward returned", grad.dtype,
      have, output.dtype, want)
  end
end

--- Backward of the last forward, once, in training mode.
---@param grad gpipe.Tensor gradient of the output
---@param opts? {accumulate?: boolean}
function methods:backward(grad, opts)
  live(self, "backward")
  local o = options.check("backward", opts, { accumulate = { type = "boolean", default = false } })
  local pending = self.pending
  if not pending then
    errors.raise("backward: there is no forward to go back through: call it once after each forward in "
      .. "training mode, with no step in between")
  end
  check_grad(grad, pending.output)
  self.pending = nil
  self.core:run(pending.plan.handle, { inputs = pending.inputs, output = pending.output,
    out_grad = grad:contiguous(), accumulate = o.accumulate })
end

--- Plan for a batch of these shapes now, so that memory is taken (or refused) before the first step.
function methods:prepare(x, y)
  local inputs = tensors_of("sample", "input", x)
  local targets = y and tensors_of("sample", "target", y) or {}
  check_rows("sample", inputs, targets)
  plans.get(self, self.loss and "step" or "split", inputs, targets)
end

function methods:train() self.mode = "train" return self end
function methods:eval() self.mode = "eval" return self end
function methods:zero_grad()
  quiet(self, "zero_grad")
  self.core:zero_grad()
end

-- ---- parameters and state --------------------------------------------------------------------

-- The entry of model:parameters() with the stage that owns it.
local function with_stage(pipe, entry)
  rawset(entry, "stage", pipe.stage_of[(pipe.layer_of[entry.param] or 0) + 1])
  return entry
end

--- A list of {name, value, grad, stage}, ordered as model:parameters(); pattern filters names.
---@param pattern? string
---@return table[]
function methods:parameters(pattern)
  local list = self.model:parameters(pattern)
  for i, entry in ipairs(list) do list[i] = with_stage(self, entry) end
  return list
end

function methods:state_dict()
  if self.core then settle(self) end
  return self.model:state_dict()
end

function methods:load_state_dict(t, opts)
  quiet(self, "load_state_dict")
  nn_state.set(self.model, t, opts)
  self.core:mend()
  return self
end

--- Stop the workers and give the model back; its parameters keep their values.
function methods:close()
  if not self.core then return end
  self.core:close()
  self.core, self.plans, self.pending = nil, {}, nil
end

-- ---- figures ---------------------------------------------------------------------------------

--- What every device did, and what it waited for, when the last pass was given up: because it made no
--- progress for the time of option `watchdog`, or because of Ctrl-C. nil where it was not.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss(), watchdog = 60})
--- assert(pipe:post_mortem() == nil)
--- ```
---@return string?
function methods:post_mortem()
  if self.core then return self.core:report() end
end

--- Write the last pass as a Chrome trace (ui.perfetto.dev opens it).
---@param path string
---@return boolean? true, or nil, message, code
function methods:trace(path)
  quiet(self, "trace")
  options.argument("trace", "path", path, { type = "string", required = true })
  return self.core:trace(path)
end

for _, name in ipairs { "lowered", "timeline", "costs", "draw", "svg", "html" } do
  methods[name] = function(self, ...)
    quiet(self, name)
    return describe[name](self, ...)
  end
end

local function stats_of(pipe)
  quiet(pipe, "stats")
  local raw = pipe.core:stats()
  local stats = { seconds = raw.seconds, bubble = {}, peak_live = {}, peak_bytes = {}, busy = {} }
  for d, device in ipairs(raw) do
    stats.bubble[d] = raw.seconds > 0 and math.max(0, 1 - device.busy / raw.seconds) or 0
    stats.busy[d] = device.busy
    stats.peak_live[d], stats.peak_bytes[d] = device.peak_live, device.peak_bytes
  end
  return stats
end

function Pipeline.__index(pipe, key)
  if key == "stats" then return stats_of(pipe) end
  return methods[key]
end

Pipeline.__close = methods.close

-- "stage 0 on cpu:0 (1 thread): layers 1-3, 1,234 parameters"
local function stage_line(pipe, stage, first)
  local count = 0
  for i = first, first + pipe.balance[stage] - 1 do
    for _, entry in ipairs(pipe.model[i]:parameters()) do count = count + entry.param:numel() end
  end
  local device = pipe.devices[pipe.placement[(stage - 1) * pipe.copies + 1] + 1]
  return ("  stage %d on %s (%d %s): layers %d-%d, %d parameters"):format(stage - 1, device.name,
    device.threads, device.threads == 1 and "thread" or "threads", first,
    first + pipe.balance[stage] - 1, count)
end

function Pipeline.__tostring(pipe)
  local name = type(pipe.schedule) == "table" and (pipe.schedule.name or pipe.schedule[1])
    or pipe.schedule
  local lines, first = {
    ("pipeline%s: %d stages, chunks %d, schedule %s, checkpoint %s"):format(
      pipe.core and "" or " (closed)", pipe.stages, pipe.chunks, name, pipe.checkpoint),
  }, 1
  for stage = 1, pipe.stages do
    lines[#lines + 1] = stage_line(pipe, stage, first)
    first = first + pipe.balance[stage]
  end
  return table.concat(lines, "\n")
end

return Pipeline
