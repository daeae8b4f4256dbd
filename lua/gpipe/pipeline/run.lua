-- lua/gpipe/pipeline/run.lua - the methods of a pipeline: steps, evaluation, state, figures.
--
-- Each method checks its tensors, finds the plan for their shape and hands them to the runtime; no
-- Lua runs inside a step. The methods work on the pipeline's own fields, which scripts can read
-- (object.lua).

local errors = require "gpipe.errors"
local accuracy = require "gpipe.pipeline.accuracy"
local activations = require "gpipe.pipeline.activations"
local areas = require "gpipe.pipeline.areas"
local batch = require "gpipe.pipeline.batch"
local describe = require "gpipe.pipeline.describe"
local fields = require "gpipe.pipeline.plan.fields"
local nn_state = require "gpipe.nn.state"
local object = require "gpipe.pipeline.object"
local options = require "gpipe.options"
local passes = require "gpipe.pipeline.passes"
local paths = require "gpipe.pipeline.paths"
local plans = require "gpipe.pipeline.plan.plans"
local post_mortem = require "gpipe.ranks.post_mortem"
local precision = require "gpipe.pipeline.plan.precision"
local progress = require "gpipe.pipeline.progress"
local readable = require "gpipe.readable"
local stop = require "gpipe.stop"
local stream = require "gpipe.pipeline.stream"
local text_of = require "gpipe.pipeline.text"
local traced = require "gpipe.pipeline.plan.traced"
local update = require "gpipe.pipeline.update"
local create = require "gpipe.tensor.create"

---@class gpipe.Pipeline
---@field stats table of the last training pass: seconds, bubble, peak_live, peak_bytes; in total:
--- skipped; in f16 loss_scale
local methods = {}

-- Loaded when it is needed, which is rare.
local function automatic() return require "gpipe.pipeline.profile.automatic" end

-- ---- checks ----------------------------------------------------------------------------------

local function live(pipe, who)
  if not pipe.core then errors.raise("%s: the pipeline is closed", who) end
  if pipe.core:lost() then
    errors.raise("%s: the pipeline is lost, a device did not come back from an action: close it",
      who)
  end
  fields.check_layers(who, pipe.made_of)
end

local function need_loss(pipe, who)
  if not pipe.loss then
    errors.raise("%s: the pipeline has no loss, expected option 'loss' (or use forward and "
      .. "backward)",
      who)
  end
end

-- Check that the pipeline is open, and wait until nothing is running, as all methods but step need.
local function quiet(pipe, who)
  live(pipe, who)
  stream.settle(pipe)
end

-- Do the sums of a step follow a tree of several leaves? Then they are added to earlier ones as a
-- whole.
local function adds_apart(pipe)
  return pipe.sum_group ~= nil and pipe.replicas * pipe.chunks > pipe.sum_group
end

-- ---- training and evaluation -----------------------------------------------------------------

--- Run forward and backward of all micro-batches; the gradients are ready afterwards. After
--- pipe:use(opt) the update is part of the step.
---
--- With an asynchronous schedule a step returns a list: the losses that have become known, one for
--- each of its mini-batches, in order. The pipeline stays full; pipe:flush() returns the rest.
--- Shapes: x and y have the rows in the first dimension; they are lists if there are several
--- tensors.
--- Errors: shapes, dtypes, an id out of range, a failing op; the error names the layer, and the
--- next step works.
---@param x gpipe.Tensor|gpipe.Tensor[]
---@param y gpipe.Tensor|gpipe.Tensor[]
---@param opts? {accumulate?: boolean} add to the existing gradients
---@return number|number[] loss the mean over the mini-batch
function methods:step(x, y, opts)
  live(self, "step")
  stop.check()
  if self.automatic then automatic().step(self, stream.settle) end
  need_loss(self, "step")
  local o = options.check("step", opts, { accumulate = { type = "boolean", default = false } })
  local inputs, targets = batch.tensors("step", "input", x), batch.tensors("step", "target", y)
  batch.check_rows("step", inputs, targets)
  batch.check_gradients("step", x)
  update.check_step(self, o.accumulate)
  local hyper = self.hypers and self.hypers()
  self.pending = nil
  passes.trains(self)
  if self.asynchronous or self.free then return stream.submit(self, inputs, targets, hyper) end
  local plan = plans.get(self, "step", inputs, targets)
  local loss = stream.note_loss(self, (self.core:run(plan.handle,
    { inputs = inputs, targets = targets, accumulate = o.accumulate, apart = adds_apart(self),
      hyper = hyper })))
  if hyper then stream.note_skips(self) end
  return loss
end

--- Let an asynchronous pipeline, or one without a barrier, finish all its mini-batches.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- assert(#pipe:flush() == 0)
--- ```
---@return number[] losses that no step has returned yet
function methods:flush()
  quiet(self, "flush")
  return stream.take_missing(self)
end

--- Make the update an action of the schedule; see gpipe.pipeline.update.
function methods:use(opt, opts)
  quiet(self, "use")
  return update.use(self, opt, opts)
end

--- Run only forward, in evaluation mode, and return the mean loss. Gradients stay as they are.
---@param x gpipe.Tensor|gpipe.Tensor[]
---@param y gpipe.Tensor|gpipe.Tensor[]
---@return number loss
function methods:evaluate(x, y)
  quiet(self, "evaluate")
  stop.check()
  need_loss(self, "evaluate")
  local inputs, targets = batch.tensors("evaluate", "input", x),
    batch.tensors("evaluate", "target", y)
  batch.check_rows("evaluate", inputs, targets)
  passes.looks(self)
  local plan = plans.get(self, "evaluate", inputs, targets)
  return (self.core:run(plan.handle, { inputs = inputs, targets = targets }))
end

--- The share of rows that are classified right, in evaluation mode: rows whose largest score is
--- that of their class. Targets with more dimensions (a class for each token) count one by one;
--- targets equal to the loss's ignore_index do not count. Shapes: scores [.., classes], y [..] ids
--- from 0.
--- Errors: targets that are not ids of the scores' shape; no target that counts.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 3)}, {})
--- local share = pipe:accuracy(gp.ones {8, 4}, gp.randint(0, 3, {8}))
--- assert(share >= 0 and share <= 1)
--- ```
---@param x gpipe.Tensor|gpipe.Tensor[]
---@param y gpipe.Tensor i64
---@return number share from 0 to 1
---@return integer right
---@return integer count number of targets that count
function methods:accuracy(x, y)
  local mode = self.mode
  self.mode = "eval"
  local good, scores = pcall(methods.forward, self, x)
  self.mode = mode
  if not good then error(scores, 0) end
  return accuracy(scores, y, self.loss)
end

-- Allocate a tensor for all rows of the batch, from the shape that a micro-batch gives.
local function room_for(plan, rows, shape, dtype)
  if not shape then return nil end
  shape[1] = shape[1] // plan.rows * rows
  return create.zeros(shape, { dtype = dtype })
end

local function outputs_for(pipe, plan, rows)
  local outputs = {}
  repeat
    local k = #outputs + 1
    outputs[k] = room_for(plan, rows, pipe.core:output_shape(plan.handle, k))
  until not outputs[k]
  return outputs
end

-- Allocate a gradient for each input; false for inputs that have none.
local function input_grads_for(pipe, plan, inputs)
  local grads = {}
  for k, input in ipairs(inputs) do
    local rows = input.shape[1]
    grads[k] = room_for(plan, rows, pipe.core:input_grad_shape(plan.handle, k)) or false
  end
  return grads
end

--- The outputs for all rows, as many as the model returns. In training mode backward may follow;
--- dropout depends on the mode.
---@param x gpipe.Tensor|gpipe.Tensor[]
---@return gpipe.Tensor ...
function methods:forward(x, ...)
  quiet(self, "forward")
  if select("#", ...) > 0 then
    errors.raise("forward: %d arguments, expected one: several inputs are a list",
      1 + select("#", ...))
  end
  stop.check()
  local inputs = batch.tensors("forward", "input", x)
  batch.check_rows("forward", inputs, {})
  self.pending = nil
  local trains = self.mode == "train"
  if trains then passes.trains(self) else passes.looks(self) end
  local plan = plans.get(self, trains and "split" or "forward", inputs, {})
  local outputs = outputs_for(self, plan, inputs[1].shape[1])
  self.core:run(plan.handle, { inputs = inputs, outputs = outputs })
  if plan.kind == "split" then
    self.pending = { plan = plan, inputs = inputs, outputs = outputs }
  end
  return table.unpack(outputs)
end

-- Check that there is a gradient for each output of the last forward, without gaps.
local function check_grads(grad, outputs)
  local grads = batch.tensors("backward", "gradient", grad)
  if #grads ~= #outputs then
    errors.raise("backward: %d gradients, expected %d: one per output of the model", #grads,
      #outputs)
  end
  for k, g in ipairs(grads) do
    local have, want = table.concat(g.shape, "x"), table.concat(outputs[k].shape, "x")
    if have ~= want or g.dtype ~= outputs[k].dtype then
      errors.raise("backward: %s is %s %s, expected %s %s as forward returned",
        #grads == 1 and "the gradient" or "gradient " .. k, g.dtype, have, outputs[k].dtype, want)
    end
  end
  return grads
end

--- Run backward of the last forward, once, in training mode. It returns the gradient of each input,
--- so that the source of an input (another pipeline, or eager tensors) can continue from there.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(3, 2), nn.Tanh()}, {})
--- local y = pipe:forward(gp.ones {4, 3})
--- assert(pipe:backward(gp.ones(y.shape)).shape == gp.ones {4, 3}.shape)
--- ```
---@param grad gpipe.Tensor|gpipe.Tensor[] gradient of the output; for a model that returns several
--- values a list with one for each (zeros where there is none)
---@param opts? {accumulate?: boolean}
---@return gpipe.Tensor? ... one for each input; nil for ids and for inputs that no output depends
--- on
function methods:backward(grad, opts)
  live(self, "backward")
  local o = options.check("backward", opts, { accumulate = { type = "boolean", default = false } })
  local pending = self.pending
  if not pending then
    errors.raise("backward: there is no forward to go back through: call it once after each "
      .. "forward in training mode, with no step in between")
  end
  local grads = check_grads(grad, pending.outputs)
  self.pending = nil
  local input_grads = input_grads_for(self, pending.plan, pending.inputs)
  self.core:run(pending.plan.handle, { inputs = pending.inputs, out_grads = grads,
    input_grads = input_grads, accumulate = o.accumulate, apart = adds_apart(self) })
  for k = 1, #input_grads do input_grads[k] = input_grads[k] or nil end
  return table.unpack(input_grads, 1, #pending.inputs)
end

--- Plan for a batch of these shapes now, so that memory is allocated (or refused) before the first
--- step.
function methods:prepare(x, y)
  local inputs = batch.tensors("sample", "input", x)
  local targets = y and batch.tensors("sample", "target", y) or {}
  batch.check_rows("sample", inputs, targets)
  plans.get(self, self.loss and "step" or "split", inputs, targets)
end

--- What the pipeline takes of each device's memory: a list of {name, planned, measured,
--- lower_bound, cap, areas = {parameters, gradients, saved, transient, edges, ...}}, in bytes.
--- Printed, it is a table; `draw`, `svg` and `html` show it over the tasks of each device, `alive`
--- lists what is alive during one. Over ranks every rank has to call, and gets all devices.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(2, 1)}, {loss = nn.MSELoss()})
--- pipe:step(gp.ones {4, 2}, gp.ones {4, 1})
--- local memory = pipe:memory()
--- assert(memory[1].planned == memory[1].measured)
--- ```
---@return gpipe.Memory
function methods:memory()
  quiet(self, "memory")
  return areas.of(self)
end

--- What a micro-batch saves between its forward and its backward pass, by the plan that was used
--- last: a list of {layer, stage, name, op, shape, bytes, why}. Printed, it is a table.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(2, 1)}, {loss = nn.MSELoss()})
--- pipe:step(gp.ones {4, 2}, gp.ones {4, 1})
--- print(pipe:activations())
--- ```
---@return table[]
function methods:activations()
  quiet(self, "activations")
  local last
  for _, plan in pairs(self.plans) do
    local trains = plan.kind == "step" or plan.kind == "split"
    if trains and (not last or plan.used > last.used) then last = plan end
  end
  if not last then
    errors.raise("activations: nothing is planned yet, expected a step (or option 'sample') first")
  end
  return activations.of(self.core, last.handle)
end

--- Switch `forward` to training: dropout drops, batch norms use the batch's own statistics. `step`
--- always trains.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Dropout(0.5)}, {})
--- pipe:train():forward(gp.ones {2, 2})
--- ```
---@return gpipe.Pipeline self
function methods:train() self.mode = "train" return self end

--- Switch `forward` to evaluation: nothing is dropped, batch norms use their running statistics.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Dropout(0.5)}, {})
--- assert(pipe:eval():forward(gp.ones {2, 2}):sum():item() == 4)
--- ```
---@return gpipe.Pipeline self
function methods:eval() self.mode = "eval" return self end

--- Set the gradients of all stages to zero. `step` starts from zero by itself, unless it
--- accumulates.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(2, 1)}, {})
--- pipe:zero_grad()
--- ```
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

--- A list of {name, value, grad, stage} in the order of model:parameters(); pattern filters names.
---@param pattern? string
---@return table[]
function methods:parameters(pattern)
  local list = self.model:parameters(pattern)
  for i, entry in ipairs(list) do list[i] = with_stage(self, entry) end
  return list
end

--- Copies of all parameters and buffers by name: model:state_dict(), after running work has
--- finished.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {})
--- assert(pipe:state_dict()["1.weight"].shape[1] == 2)
--- ```
---@return table<string, gpipe.Tensor>
function methods:state_dict()
  if self.core then stream.settle(self) end
  return self.model:state_dict()
end

--- Copy named tensors into the parameters and buffers of that name, from whatever cut they come.
--- Optimizer state stays.
--- Errors: one text names all faults (missing, unexpected, wrong shape or dtype); nothing is
--- changed.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {})
--- pipe:load_state_dict(pipe:state_dict())
--- ```
---@param t table<string, gpipe.Tensor>
---@param opts? {strict?: boolean} false: names that only one side has are skipped
---@return gpipe.Pipeline self
function methods:load_state_dict(t, opts)
  quiet(self, "load_state_dict")
  nn_state.set(self.model, t, opts)
  self.core:mend()
  return self
end

--- The counters that a checkpoint holds beside state_dict() and opt:state_dict(): a plain table of
--- numbers. With all three, training continues with the same bits as if it had never stopped.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 2), nn.Dropout(0.1)}
--- local pipe <close> = gp.pipeline(model, {loss = nn.MSELoss()})
--- pipe:step(gp.ones {8, 4}, gp.ones {8, 2})
--- assert(pipe:progress().steps == 1)
--- ```
---@return gpipe.Progress
function methods:progress()
  quiet(self, "progress")
  return progress.get(self)
end

--- Restore what progress() returned, for example in an earlier run.
--- Errors: unknown fields, numbers out of range, a loss scale if the precision has none; nothing is
--- set then.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- pipe:load_progress {steps = 1000}
--- ```
---@param t gpipe.Progress
---@return gpipe.Pipeline self
function methods:load_progress(t)
  quiet(self, "load_progress")
  progress.set(self, t)
  return self
end

--- Stop the workers and give the model back; its parameters keep their values.
function methods:close(failure)
  if not self.core then return end
  -- over ranks all of them finish a stream, unless the script has failed: then only this one may
  if self.spread and failure == nil then pcall(stream.settle, self) end
  if self.automatic then automatic().stop(self) end
  self.core:close()
  self.core, self.plans, self.pending = nil, {}, nil
end

--- The current loss scale of a pipeline in f16, nil in other precisions. Given a table, it first
--- sets these fields. It belongs in a checkpoint, beside state_dict() and opt:state_dict().
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss()})
--- assert(pipe:loss_scale() == nil)
--- ```
---@param values? gpipe.LossScale any of its fields
---@return gpipe.LossScale?
function methods:loss_scale(values)
  quiet(self, "loss_scale")
  return precision.loss_scale(self.core, values)
end

-- ---- figures ---------------------------------------------------------------------------------

--- What every device did, and what it waited for, when the last pass was given up: because it made
--- no progress for the time of option `watchdog`, or because of Ctrl-C. nil if it was not given up.
--- Over ranks, after the watchdog's time, it is what the devices of all ranks did.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(4, 2)}, {loss = nn.MSELoss(), watchdog
--- = 60}) assert(pipe:post_mortem() == nil)
--- ```
---@return string?
function methods:post_mortem()
  if self.core then return post_mortem.of(self.core:report()) end
end

for _, name in ipairs { "lowered", "timeline", "costs", "draw", "svg", "html", "trace" } do
  local method = describe[name]
  methods[name] = function(self, ...)
    quiet(self, name)
    return method(self, ...)
  end
end

--- Return the time of each instruction in a step, or in a function's work; see
--- gpipe.pipeline.profile.
function methods:profile(...)
  quiet(self, "profile")
  if self.automatic then automatic().stop(self, true) end
  local function step(x, y) return self:step(x, y) end
  return require("gpipe.pipeline.profile").take(self, step, ...)
end

local function stats_of(pipe)
  quiet(pipe, "stats")
  local raw = passes.stats(pipe)
  local stats = readable {
    seconds = raw.seconds, bubble = {}, peak_live = {}, peak_bytes = {}, busy = {},
  }
  for d, device in ipairs(raw) do
    stats.bubble[d] = raw.seconds > 0 and math.max(0, 1 - device.busy / raw.seconds) or 0
    stats.busy[d] = device.busy
    stats.peak_live[d], stats.peak_bytes[d] = device.peak_live, device.peak_bytes
  end
  local scale = pipe.core:loss_scale()
  stats.skipped = pipe.core:skipped()
  if scale then stats.loss_scale, stats.skipped = scale.scale, scale.skipped + stats.skipped end
  return stats
end

--- Describe what the pipeline runs on, and by which paths: see gpipe.pipeline.paths.
function methods:describe()
  quiet(self, "describe")
  return paths.describe(self, text_of(self))
end

local wrap = object.class(methods, { stats = stats_of }, text_of)

--- Make a pipeline from the facts that gp.pipeline has collected.
---@param facts table
---@return gpipe.Pipeline
local function new(facts)
  facts.plans, facts.plan_count, facts.clock = {}, 0, 0
  facts.forwards = traced.functions(facts.model, facts.loss)
  facts.mode, facts.missing, facts.skips = "train", {}, 0
  facts.automatic = os.getenv "GPIPE_GPU_PROFILE" == "1" and { steps = 0 } or nil
  return wrap(facts)
end

return { new = new }
