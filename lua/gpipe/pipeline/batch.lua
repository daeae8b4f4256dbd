-- lua/gpipe/pipeline/batch.lua - checks the tensors of a pass: they are dense, have the same number
-- of rows, and lie in host memory, from where every stage takes its inputs.

local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local batch = {}

--- Make a tensor contiguous, on the host.
---@param t gpipe.Tensor
function batch.dense(t) return t:to("cpu"):contiguous() end

--- One tensor, or a list of them, as a list; plans need only the shapes.
function batch.list(who, what, value)
  local list = is_tensor(value) and { value } or value
  if type(list) ~= "table" or #list == 0 then
    errors.raise("%s: the %s is %s, expected a tensor (or a list of tensors)", who, what,
      errors.show(value))
  end
  for _, t in ipairs(list) do
    if not is_tensor(t) then
      errors.raise("%s: the %s is %s, expected a tensor", who, what, errors.show(t))
    end
    if #t.shape == 0 then
      errors.raise("%s: the %s is a scalar, expected rows in the first dimension", who, what)
    end
  end
  return list
end

--- The same as a list of contiguous ones.
function batch.tensors(who, what, value)
  local dense = {}
  for i, t in ipairs(batch.list(who, what, value)) do dense[i] = batch.dense(t) end
  return dense
end

--- Refuse inputs that require a gradient, because no gradient leaves a step.
function batch.check_gradients(who, value)
  for i, t in ipairs(is_tensor(value) and { value } or value) do
    if t.requires_grad then
      errors.raise("%s: input %d requires a gradient, which leaves a pipeline by pipe:forward and "
        .. "pipe:backward alone (what backward returns), expected x:detach() here", who, i)
    end
  end
end

--- Check that all have the same number of rows, and at least one.
function batch.check_rows(who, inputs, targets)
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

return batch
