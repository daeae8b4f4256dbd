-- lua/gpipe/pipeline/forward.lua - the methods of a pipeline that a script calls one after the
-- other where it has the loss itself: forward, then backward.

local batch = require "gpipe.pipeline.batch"
local checks = require "gpipe.pipeline.checks"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local passes = require "gpipe.pipeline.passes"
local plans = require "gpipe.pipeline.plan.plans"
local replicas = require "gpipe.pipeline.plan.replicas"
local stop = require "gpipe.stop"

---@class gpipe.Pipeline
local methods = {}

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
  checks.quiet(self, "forward")
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
  checks.live(self, "backward")
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
    input_grads = input_grads, accumulate = o.accumulate, apart = replicas.adds_apart(self) })
  for k = 1, #input_grads do input_grads[k] = input_grads[k] or nil end
  return table.unpack(input_grads, 1, #pending.inputs)
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

return methods
