-- lua/gpipe/pipeline/run.lua - the methods of a pipeline, first those that run it: step, evaluate.
--
-- Each method checks its tensors, finds the plan for their shape and hands them to the runtime; no
-- Lua runs inside a step. The methods work on the pipeline's own fields, which scripts can read
-- (object.lua).

local accuracy = require "gpipe.pipeline.accuracy"
local batch = require "gpipe.pipeline.batch"
local checks = require "gpipe.pipeline.checks"
local figures = require "gpipe.pipeline.figures"
local forward = require "gpipe.pipeline.forward"
local object = require "gpipe.pipeline.object"
local options = require "gpipe.options"
local passes = require "gpipe.pipeline.passes"
local plans = require "gpipe.pipeline.plan.plans"
local replicas = require "gpipe.pipeline.plan.replicas"
local state = require "gpipe.pipeline.state"
local stop = require "gpipe.stop"
local stream = require "gpipe.pipeline.stream"
local text_of = require "gpipe.pipeline.text"
local traced = require "gpipe.pipeline.plan.traced"
local update = require "gpipe.pipeline.update"

-- It is loaded where it is needed, which is rare.
local AUTOMATIC = "gpipe.pipeline.profile.automatic"

---@class gpipe.Pipeline
---@field stats table of the last training pass: seconds, bubble, peak_live, peak_bytes; in total:
--- skipped; in f16 loss_scale
local methods = {}

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
  checks.live(self, "step")
  stop.check()
  if self.automatic then require(AUTOMATIC).step(self, stream.settle) end
  checks.need_loss(self, "step")
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
    { inputs = inputs, targets = targets, accumulate = o.accumulate,
      apart = replicas.adds_apart(self), hyper = hyper })))
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
  checks.quiet(self, "flush")
  return stream.take_missing(self)
end

--- Make the update an action of the schedule; see gpipe.pipeline.update.
function methods:use(opt, opts)
  checks.quiet(self, "use")
  return update.use(self, opt, opts)
end

--- Run only forward, in evaluation mode, and return the mean loss. Gradients stay as they are.
---@param x gpipe.Tensor|gpipe.Tensor[]
---@param y gpipe.Tensor|gpipe.Tensor[]
---@return number loss
function methods:evaluate(x, y)
  checks.quiet(self, "evaluate")
  stop.check()
  checks.need_loss(self, "evaluate")
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

--- Plan for a batch of these shapes now, so that memory is allocated (or refused) before the first
--- step.
function methods:prepare(x, y)
  local inputs = batch.tensors("sample", "input", x)
  local targets = y and batch.tensors("sample", "target", y) or {}
  batch.check_rows("sample", inputs, targets)
  plans.get(self, self.loss and "step" or "split", inputs, targets)
end

--- Set the gradients of all stages to zero. `step` starts from zero by itself, unless it
--- accumulates.
--- ```lua
--- local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(2, 1)}, {})
--- pipe:zero_grad()
--- ```
function methods:zero_grad()
  checks.quiet(self, "zero_grad")
  self.core:zero_grad()
end

--- Stop the workers and give the model back; its parameters keep their values.
function methods:close(failure)
  if not self.core then return end
  -- over ranks all of them finish a stream, unless the script has failed: then only this one may
  if self.spread and failure == nil then pcall(stream.settle, self) end
  if self.automatic then require(AUTOMATIC).stop(self) end
  self.core:close()
  self.core, self.plans, self.pending = nil, {}, nil
end

-- ---- the object ------------------------------------------------------------------------------

for _, more in ipairs { forward, state, figures.methods } do
  for name, method in pairs(more) do methods[name] = method end
end

local wrap = object.class(methods, { stats = figures.stats }, text_of)

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
