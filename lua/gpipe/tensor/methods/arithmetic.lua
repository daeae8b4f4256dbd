-- lua/gpipe/tensor/methods/arithmetic.lua - elementwise methods that are formulas of a few ops.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

local INTEGERS = { i64 = true, i32 = true, u8 = true, bool = true }

-- Check the other operand: a number, or a tensor.
local function operand(who, value)
  if is_tensor(value) or math.type(value) then return value end
  errors.raise("%s: the other is %s, expected a tensor or a number", who, errors.show(value))
end

local function floats(who, tensor)
  if not INTEGERS[tensor.dtype] then return tensor end
  errors.raise('%s: the tensor is %s, expected a float one (convert with to("f32"))', who,
    tensor.dtype)
end

-- ---- division with whole results -------------------------------------------------------------

local NARROW = { u8 = true, bool = true } -- no op divides them

-- Apply one of the ops. Dividing an integer by 0 raises if the values are known.
local function divide(who, op, a, b)
  a, b = operand(who, a), operand(who, b)
  local dtype = is_tensor(a) and a.dtype or b.dtype
  if is_tensor(a) and is_tensor(b) and a.dtype ~= b.dtype then
    errors.raise("%s: the operands are %s and %s, expected the same (convert with to)", who,
      a.dtype, b.dtype)
  end
  if not INTEGERS[dtype] then return op(a, b) end
  if b == 0 or is_tensor(b) and not core.tracing() and b:to("bool"):logical_not():any():item() then
    errors.raise("%s: an integer is divided by 0, expected another divisor", who)
  end
  if not NARROW[dtype] then return op(a, b) end
  local function wide(x) return is_tensor(x) and x:to "i64" or x end
  return op(wide(a), wide(b)):to(dtype)
end

local function truncate(t) return t:abs():floor() * t:sign() end

--- a divided by b and rounded down, the operator //. `gp.tensor({-7}):floor_divide(2)[1] == -4`
--- Errors: an integer divided by 0; in a pipeline the result is 0 then.
---@param other gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:floor_divide(other)
  return divide("floor_divide", core.floor_divide, self, other)
end

--- The remainder of floor division, the operator %: it has the sign of b, as in Lua, and is exact.
--- `gp.tensor({-7}):remainder(3)[1] == 2` Errors: those of floor_divide.
---@param other gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:remainder(other) return divide("remainder", core.remainder, self, other) end

--- The remainder with the sign of a, as in C's fmod. `gp.tensor({-7}):fmod(3)[1] == -1`
--- Errors: those of floor_divide.
---@param other gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:fmod(other) return divide("fmod", core.fmod, self, other) end

core.hook("idiv", function(a, b) return divide("//", core.floor_divide, a, b) end)
core.hook("mod", function(a, b) return divide("%", core.remainder, a, b) end)

--- The integer part: the number without its fraction. `gp.tensor({-1.5}):trunc()[1] == -1`
---@return gpipe.Tensor
function Tensor:trunc() return truncate(floats("trunc", self)) end

--- The fraction, with the sign of the number. `gp.tensor({-1.5}):frac()[1] == -0.5`
---@return gpipe.Tensor
function Tensor:frac() return self - truncate(floats("frac", self)) end

-- ---- functions -------------------------------------------------------------------------------

--- The logarithm to base 2. `gp.tensor({8}):log2()[1] == 3`
---@return gpipe.Tensor
function Tensor:log2() return floats("log2", self):log() * (1 / math.log(2)) end

--- The logarithm to base 10. `math.abs(gp.tensor({100}):log10()[1] - 2) < 1e-6`
---@return gpipe.Tensor
function Tensor:log10() return floats("log10", self):log() * (1 / math.log(10)) end

--- 2 to the power of x. `gp.tensor({3}):exp2()[1] == 8`
---@return gpipe.Tensor
function Tensor:exp2() return (floats("exp2", self) * math.log(2)):exp() end

--- sin(x) / cos(x). `gp.zeros({1}):tan()[1] == 0`
---@return gpipe.Tensor
function Tensor:tan() return floats("tan", self):sin() / self:cos() end

--- log(p / (1 - p)); with eps, p is limited to eps .. 1 - eps. `gp.tensor({0.5}):logit()[1] == 0`
---@param eps? number
---@return gpipe.Tensor
function Tensor:logit(eps)
  local o = options.argument("logit", "eps", eps, { type = "number", min = 0, max = 0.5 })
  local p = floats("logit", self)
  if o then p = p:clamp(o, 1 - o) end
  return p:log() - (-p):log1p()
end

--- log(sigmoid(x)), exact for large x of either sign. `gp.zeros({1}):log_sigmoid()[1] < -0.69`
---@return gpipe.Tensor
function Tensor:log_sigmoid()
  return floats("log_sigmoid", self):minimum(0) - (-self:abs()):exp():log1p()
end

-- ---- of several tensors ----------------------------------------------------------------------

--- a + weight * (b - a). `gp.zeros({1}):lerp(gp.ones {1}, 0.25)[1] == 0.25`
---@param other gpipe.Tensor
---@param weight gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:lerp(other, weight)
  return self + (operand("lerp", other) - self) * operand("lerp: weight", weight)
end

local function factor(who, opts)
  return options.check(who, opts, { value = { type = "number", default = 1 } }).value
end

--- x + value * a * b. `gp.ones({1}):addcmul(gp.full({1}, 2), gp.full({1}, 3))[1] == 7`
---@param a gpipe.Tensor|number
---@param b gpipe.Tensor|number
---@param opts? {value?: number} 1
---@return gpipe.Tensor
function Tensor:addcmul(a, b, opts)
  return self + operand("addcmul", a) * operand("addcmul", b) * factor("addcmul", opts)
end

--- x + value * a / b. `gp.ones({1}):addcdiv(gp.full({1}, 6), gp.full({1}, 3))[1] == 3`
---@param a gpipe.Tensor|number
---@param b gpipe.Tensor|number
---@param opts? {value?: number} 1
---@return gpipe.Tensor
function Tensor:addcdiv(a, b, opts)
  return self + operand("addcdiv", a) / operand("addcdiv", b) * factor("addcdiv", opts)
end

--- sqrt(a^2 + b^2). `gp.tensor({3}):hypot(4)[1] == 5`
---@param other gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:hypot(other)
  local b = operand("hypot", other)
  return (self * self + b * b):sqrt()
end

--- log(e^a + e^b), exact for large numbers too. `gp.zeros({1}):logaddexp(gp.zeros {1})[1] > 0.69`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:logaddexp(other)
  local most, away = self:maximum(operand("logaddexp", other)), self - other
  away = core.where(away:isnan(), 0, away) -- the difference of two infinities
  return most + (-away:abs()):exp():log1p()
end

--- a * log(b), 0 where a is 0. `gp.zeros({1}):xlogy(gp.zeros {1})[1] == 0`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:xlogy(other)
  local none = self:eq(0)
  local b = operand("xlogy", other)
  b = is_tensor(b) and b or self * 0 + b
  return self * core.where(none, 1, b):log()
end

-- ---- what is not a number --------------------------------------------------------------------

--- Replace NaN and infinities by numbers: by default 0, and the largest numbers of the dtype.
--- `gp.tensor({0 / 0}):nan_to_num()[1] == 0`
---@param nan? number
---@param posinf? number
---@param neginf? number
---@return gpipe.Tensor
function Tensor:nan_to_num(nan, posinf, neginf)
  local number, who = { type = "number" }, "nan_to_num"
  nan = options.argument(who, "nan", nan, number) or 0
  posinf = options.argument(who, "posinf", posinf, number)
  neginf = options.argument(who, "neginf", neginf, number)
  if INTEGERS[self.dtype] then return self end
  local most = ({ f64 = 0x1.fffffffffffffp1023, f16 = 65504, bf16 = 0x1.fep127 })[self.dtype]
    or 0x1.fffffep127
  local y = core.where(self:isnan(), nan, self)
  y = core.where(self:eq(math.huge), posinf or most, y)
  return core.where(self:eq(-math.huge), neginf or -most, y)
end

--- The sum of the elements that are not NaN, over a dimension, a list of them, or all.
--- `gp.tensor({0 / 0, 2}):nansum():item() == 2`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:nansum(dim, keep)
  check.dims("nansum", dim, self.shape)
  return core.where(floats("nansum", self):isnan(), 0, self):sum(dim, keep)
end

--- The mean of the elements that are not NaN, over a dimension, a list of them, or all.
--- `gp.tensor({0 / 0, 2}):nanmean():item() == 2`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:nanmean(dim, keep)
  check.dims("nanmean", dim, self.shape)
  local there = floats("nanmean", self):isnan():logical_not()
  return self:nansum(dim, keep) / there:to(self.dtype):sum(dim, keep)
end

--- Where elements are close, in the sense of allclose. `gp.ones({1}):isclose(gp.ones {1})[1]`
---@param other gpipe.Tensor of the same dtype
---@param opts? {rtol?: number, atol?: number, equal_nan?: boolean} 1e-5, 1e-8, false
---@return gpipe.Tensor bool
function Tensor:isclose(other, opts)
  local o = options.check("isclose", opts, {
    rtol = { type = "number", default = 1e-5 }, atol = { type = "number", default = 1e-8 },
    equal_nan = { type = "boolean", default = false },
  })
  if not is_tensor(other) then
    errors.raise("isclose: the other is %s, expected a tensor", errors.show(other))
  end
  local near = self:eq(other)
  local a, b = self:to "f64", other:to "f64"
  local finite = a:isfinite():logical_and(b:isfinite())
  local within = (a - b):abs():le(b:abs() * o.rtol + o.atol)
  near = near:logical_or(finite:logical_and(within))
  if not o.equal_nan then return near end
  return near:logical_or(a:isnan():logical_and(b:isnan()))
end

return Tensor
