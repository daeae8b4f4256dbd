-- lua/gpipe/linalg/matrices.lua - shared by all of gp.linalg: checks matrices, calls LAPACK, and
-- gives the results their gradients.
--
-- LAPACK computes on the host and knows nothing of gradients. If a gradient is wanted, a result y
-- of A is replaced by y + slope(A - A'), where A' is A without its history. The added term is zero,
-- and the ops that slope consists of give it the gradient of y.

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local matrices = {}

--- "2x3"
function matrices.shape_of(t) return table.concat(t.shape, "x") end

--- Whether LAPACK takes the elements.
function matrices.is_float(t) return t.dtype == "f32" or t.dtype == "f64" end

--- Refuse anything but a matrix, or a batch of matrices, of floats that LAPACK takes.
---@param who string
---@param name string
---@param t any
---@param square? boolean
function matrices.check(who, name, t, square)
  if not is_tensor(t) then
    errors.raise("%s: %s is %s, expected a tensor", who, name, errors.show(t))
  end
  if core.tracing() then
    errors.raise_as("unsupported",
      "%s: a layer is being traced, expected tensors whose values are known (linear algebra is not "
      .. "part of pipelines)", who)
  end
  if not matrices.is_float(t) then
    errors.raise_as("dtype", '%s: %s is %s, expected f32 or f64 (convert with to("f32"))', who,
      name, t.dtype)
  end
  if t:dim() < 2 then
    errors.raise_as("shape", "%s: %s has %d dimensions, expected at least 2", who, name, t:dim())
  end
  if square and t:size(-1) ~= t:size(-2) then
    errors.raise_as("shape", "%s: %s is %s, expected square matrices", who, name,
      matrices.shape_of(t))
  end
end

--- Refuse two operands that an op could not take together.
function matrices.check_alike(who, a, b)
  if a.dtype ~= b.dtype then
    errors.raise_as("dtype", "%s: A is %s and B is %s, expected the same", who, a.dtype, b.dtype)
  end
  if a.device ~= b.device then
    errors.raise_as("device",
      "%s: A lies on %s and B on %s, expected the same device (move one with "
      .. "to)", who, a.device, b.device)
  end
end

--- The dimensions before the last two.
---@return integer[]
function matrices.batch_of(t) return table.move(t.shape, 1, t:dim() - 2, 1, {}) end

--- Dimensions of a batch and those of its matrices.
---@return integer[]
function matrices.join(batch, ...)
  local shape = table.move(batch, 1, #batch, 1, {})
  return table.move({ ... }, 1, select("#", ...), #shape + 1, shape)
end

--- Allocate a tensor on the host for results for `t`: [batch, ...].
function matrices.room(t, ...)
  return create.zeros(matrices.join(matrices.batch_of(t), ...), { dtype = t.dtype })
end

-- The values row-major, on the host, without a history.
local function plain(t) return t:detach():to("cpu"):contiguous() end

local function fail(who, a, reasons, number, info)
  local which = a:dim() > 2 and ("matrix %d of A"):format(number) or "A"
  if info < 0 then
    errors.raise_as("finite", "%s: %s (%s) has elements that are not finite, expected finite ones",
      who, which, matrices.shape_of(a))
  end
  errors.raise_as("range", "%s: %s (%s) %s", who, which, matrices.shape_of(a),
    (reasons:gsub("#", tostring(info))))
end

--- Let LAPACK compute `what` (runtime/gpipe/linalg.h) from the inputs into tensors of `room`.
---@param who string
---@param what string
---@param reasons string says what is wrong with a matrix without a result; # stands for the pivot's
--- number
---@param inputs gpipe.Tensor[]
---@param outputs gpipe.Tensor[]
---@return gpipe.Tensor ... the outputs, on the device of the first input
function matrices.compute(who, what, reasons, inputs, outputs)
  local all = {}
  for i, t in ipairs(inputs) do all[i] = plain(t) end
  table.move(outputs, 1, #outputs, #all + 1, all)
  local number, info = core.linalg(what, table.unpack(all))
  if number then fail(who, inputs[1], reasons, number, info) end
  for i, t in ipairs(outputs) do outputs[i] = t:to(inputs[1].device) end
  return table.unpack(outputs)
end

--- A tensor that is zero and has the history of t.
function matrices.change(t) return t - t:detach() end

--- The transposes.
function matrices.transpose(t) return t:transpose(-2, -1) end

--- Multiply the columns of [batch, m, n] by [batch, n].
function matrices.scale(t, factors) return t * factors:unsqueeze(-2) end

--- The identity.
function matrices.eye(t, n)
  if n == 0 then return create.zeros({ 0, 0 }, { dtype = t.dtype, device = t.device }) end
  return create.eye(n, { dtype = t.dtype }):to(t.device)
end

--- 1 / x, or 0 where x is 0: where there is no slope, the function counts as flat.
function matrices.inverse_or_zero(x)
  local none = x:eq(0)
  return core.where(none, 0, 1 / core.where(none, 1, x))
end

return matrices
