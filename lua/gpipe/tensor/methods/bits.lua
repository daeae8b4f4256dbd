-- lua/gpipe/tensor/methods/bits.lua - operations on the bits of integers, and on truth values.
--
-- The ops work on i64; narrower integers are widened, and narrowed again afterwards.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

local WHOLE = { i64 = true, i32 = true, u8 = true, bool = true }

local function check_operand(who, name, value)
  if is_tensor(value) and WHOLE[value.dtype] or math.type(value) == "integer"
    or type(value) == "boolean" then
    return
  end
  errors.raise("%s: the %s is %s, expected integers or truth values", who, name,
    is_tensor(value) and value.dtype or errors.show(value))
end

-- Convert a value to i64, on the device of the tensor.
local function wide(tensor, value)
  if is_tensor(value) then return value:to "i64" end
  if type(value) == "boolean" then value = value and 1 or 0 end
  return beside(tensor, core.tensor(value, "i64"))
end

-- Convert back to the dtype of the tensor; bits that it cannot hold are cut off.
local function narrow(y, dtype)
  if dtype == "u8" then y = core.bitwise_and(y, wide(y, 255)) end
  if dtype == "i32" then y = (y + (1 << 31)):bitwise_and((1 << 32) - 1) - (1 << 31) end
  return y:to(dtype)
end

-- Apply an op to i64; the result has the dtype of the tensor.
local function apply(who, op, tensor, other)
  check_operand(who, "tensor", tensor)
  check_operand(who, "other", other)
  if is_tensor(other) and other.dtype ~= tensor.dtype then
    errors.raise("%s: the operands are %s and %s, expected the same (convert with to)", who,
      tensor.dtype, other.dtype)
  end
  return narrow(op(tensor:to "i64", wide(tensor, other)), tensor.dtype)
end

local function shift(who, op, tensor, count)
  if is_tensor(tensor) and tensor.dtype == "bool" then
    errors.raise("%s: the tensor is bool, expected integers", who)
  end
  return apply(who, op, tensor, count)
end

--- The bits that both have. `gp.tensor({6}, {dtype = "i64"}):bitwise_and(3)[1] == 2`
--- Errors: floats.
---@param other gpipe.Tensor|integer|boolean
---@return gpipe.Tensor
function Tensor:bitwise_and(other) return apply("bitwise_and", core.bitwise_and, self, other) end

--- The bits that at least one has. `gp.tensor({6}, {dtype = "i64"}):bitwise_or(3)[1] == 7`
---@param other gpipe.Tensor|integer|boolean
---@return gpipe.Tensor
function Tensor:bitwise_or(other) return apply("bitwise_or", core.bitwise_or, self, other) end

--- The bits that exactly one has. `gp.tensor({6}, {dtype = "i64"}):bitwise_xor(3)[1] == 5`
---@param other gpipe.Tensor|integer|boolean
---@return gpipe.Tensor
function Tensor:bitwise_xor(other) return apply("bitwise_xor", core.bitwise_xor, self, other) end

--- All bits inverted. `gp.tensor({6}, {dtype = "i64"}):bitwise_not()[1] == -7`
---@return gpipe.Tensor
function Tensor:bitwise_not()
  if self.dtype == "bool" then return self:logical_not() end
  return apply("bitwise_not", core.bitwise_xor, self, -1)
end

--- The bits moved up and zeros filled in: times 2^count. A count above 63 moves all bits out.
--- `gp.tensor({3}, {dtype = "i64"}):bitwise_left_shift(2)[1] == 12`
---@param count gpipe.Tensor|integer
---@return gpipe.Tensor
function Tensor:bitwise_left_shift(count)
  return shift("bitwise_left_shift", core.bitwise_left_shift, self, count)
end

--- The bits moved down and the sign filled in: divided by 2^count and rounded down.
--- `gp.tensor({13}, {dtype = "i64"}):bitwise_right_shift(2)[1] == 3`
---@param count gpipe.Tensor|integer
---@return gpipe.Tensor
function Tensor:bitwise_right_shift(count)
  return shift("bitwise_right_shift", core.bitwise_right_shift, self, count)
end

return Tensor
