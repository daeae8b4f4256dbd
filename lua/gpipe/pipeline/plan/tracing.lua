-- lua/gpipe/pipeline/plan/tracing.lua - traces one pass of a model over symbolic tensors.
--
-- Every layer of the outermost Sequential runs once for each number of rows. The ops that it
-- applies are recorded under its index, so that the record can be cut into stages anywhere.

local arity = require "gpipe.nn.arity"
local core = require "gpipe.core"
local CrossEntropyLoss = require "gpipe.nn.loss.cross_entropy"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local precision = require "gpipe.pipeline.plan.precision"
local random = require "gpipe.random"
local running = require "gpipe.nn.layer.norm.running"
local skips = require "gpipe.nn.skip.values"
local synced = require "gpipe.nn.layer.norm.synced"

local tracing = {}

-- Run the layers one by one; several values may pass between them.
local function run_layers(trace, model, i, ...)
  if i > #model then return ... end
  core.trace_layer(trace, i - 1)
  return run_layers(trace, model, i + 1, model:run_layers(i, i, ...))
end

-- The shape of a tensor with its first dimension replaced.
local function with_rows(tensor, rows)
  local shape = tensor.shape
  shape[1] = rows
  return shape
end

local function declare(trace, kind, tensors, rows)
  local values = {}
  for i, t in ipairs(tensors) do
    values[i] = core.trace_input(trace, kind, t.dtype, with_rows(t, rows))
  end
  return values
end

-- Call a user's loss function, which returns sum and count, or a scalar that is the mean over its
-- rows. It gets all outputs of the model, then all targets.
local function function_terms(loss, values, rows)
  local sum, count = loss(table.unpack(values))
  if not is_tensor(sum) or #sum.shape > 0 and sum:numel() ~= 1 then
    local what = is_tensor(sum) and "a tensor of " .. table.concat(sum.shape, "x")
      or errors.show(sum)
    errors.raise("loss: the function returned %s, expected a scalar tensor (or sum, count)", what)
  end
  if #sum.shape > 0 then sum = sum:reshape {} end
  if count == nil then return sum * rows, rows end
  return sum, count
end

local function terms_of(loss, outputs, targets, rows)
  local values = table.move(targets, 1, #targets, #outputs + 1,
    table.move(outputs, 1, #outputs, 1, {}))
  arity.check_loss(loss, #outputs, table.unpack(values))
  if type(loss) == "table" and loss.terms then
    local sum, count = loss:terms(table.unpack(values))
    return sum, count, count == nil
  end
  return function_terms(loss, values, rows)
end

-- Set the count as the plan needs it: a value of the trace, or an integer.
local function set_count(shape, count)
  if is_tensor(count) then
    if #count.shape > 0 and count:numel() == 1 then count = count:reshape {} end
    shape.loss_count = count.dtype == "i64" and count or count:to("i64")
  else
    local whole = math.type(count) and math.tointeger(count)
    if count ~= nil and (not whole or whole < 0) then
      errors.raise("loss: the count is %s, expected a number of rows >= 0 or an integer tensor",
        errors.show(count))
    end
    shape.constant_count = whole or 0
  end
end

-- Convert the outputs of a model in halves to f32 for the loss. Cross entropy is an exception: it
-- takes halves and computes in f32 itself.
local function widen(trace, request, outputs)
  local half, loss = request.pipe.precision.half, request.with_loss and request.pipe.loss
  if not half then return end
  core.trace_half(trace, "f32")
  if loss and class.of(loss) == class.info(CrossEntropyLoss) then return end
  local _scope <close> = core.enter("output", "from " .. half)
  for i, output in ipairs(outputs) do outputs[i] = precision.convert(output, half, "f32") end
end

-- Finish the trace: pass the outputs on, to a loss all of them.
local function finish(trace, request, shape, outputs, targets)
  local pipe = request.pipe
  core.trace_layer(trace, #pipe.model)
  widen(trace, request, outputs)
  if not request.with_loss then
    shape.outputs = outputs
    return false
  end
  local _scope <close> = core.enter("loss",
    tostring(type(pipe.loss) == "table" and pipe.loss or ""))
  local sum, count, is_sum = terms_of(pipe.loss, outputs, targets, shape.rows)
  shape.loss_sum = sum
  set_count(shape, count)
  return is_sum
end

local active -- {trace, thread}: the current trace, and the coroutine that runs its forward

-- The trace that continues when an inner one ends, unless it belongs to a coroutine that stopped
-- half-way.
local function outer_of()
  local status = active and coroutine.status(active.thread)
  return (status == "running" or status == "normal") and active or nil
end

-- Explain that a forward cannot yield (core.whole), because the trace would record whatever runs
-- meanwhile; Lua's own text does not say so.
local function explain_yield(handler)
  return function(message)
    local raised = debug.getinfo(2, "f")
    if raised and raised.func == coroutine.yield then
      local label = core.label()
      message = (label == "" and "the model" or label)
        .. ": forward yielded, expected it to return (a model is recorded in one go)"
    end
    return handler(message)
  end
end

-- Call f with this trace active. A layer's forward may run another pipeline, so an outer trace is
-- put aside meanwhile.
local function within(trace, request, f)
  local handler, before = request.handler, running.defer(request.pipe.deferred or false)
  local alone = synced.set(request.pipe.synced or 1)
  local _guard <close> = random.guard()
  local outer = outer_of()
  active = { trace = trace, thread = coroutine.running() }
  core.trace_begin(trace)
  local good, result = xpcall(core.whole, explain_yield(handler), skips.within, f)
  active = outer
  running.defer(before)
  synced.set(alone)
  if outer then core.trace_begin(outer.trace) else core.trace_end() end
  if not good then error(result, 0) end
  return result
end

-- Let a model in halves read parameters and inputs of f32 in its dtype; inputs are converted by the
-- stage of the first layer.
local function set_precision(trace, computes, inputs)
  if not computes.half then return end
  core.trace_half(trace, computes.half, computes.scale ~= nil)
  core.trace_layer(trace, 0)
  for i, value in ipairs(inputs) do inputs[i] = precision.convert(value, "f32", computes.half) end
end

--- Trace the model for micro-batches of `rows` rows.
---@param request {pipe: table, training: boolean, with_loss: boolean, inputs: table, targets: table}
---@param rows integer
---@param micros integer
---@return table shape for core's plan
---@return boolean sum_loss
function tracing.run(request, rows, micros)
  local trace = core.trace_new(request.training)
  local shape = { trace = trace, rows = rows, micros = micros }
  local inputs = declare(trace, "batch", request.inputs, rows)
  local targets = declare(trace, "target", request.targets, rows)
  local sum_loss = within(trace, request, function()
    set_precision(trace, request.pipe.precision, inputs)
    local outputs = { run_layers(trace, request.pipe.model, 1, table.unpack(inputs)) }
    return finish(trace, request, shape, outputs, targets)
  end)
  return shape, sum_loss
end

return tracing
