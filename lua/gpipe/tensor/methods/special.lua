-- lua/gpipe/tensor/methods/special.lua - elementwise functions that need more than a formula or
-- two: the gamma function, the inverse error function, signs and bounds.

local check = require "gpipe.tensor.methods.check"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

local Tensor = {}

local ANY = {} -- an option that the code checks itself
local INTEGERS = { i64 = true, i32 = true, u8 = true, bool = true }

local function floats(who, tensor)
  if not INTEGERS[tensor.dtype] then return tensor end
  errors.raise('%s: the tensor is %s, expected a float one (convert with to("f32"))', who,
    tensor.dtype)
end

-- ---- the gamma function ----------------------------------------------------------------------

-- Lanczos' approximation with g = 7 and 9 terms, good to 15 digits.
-- Source: Lanczos 1964; the numbers are Godfrey's (2001).
local LANCZOS = {
  676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
}

-- For x >= 1/2.
local function lanczos(x)
  local z = x - 1
  local sum = z * 0 + 0.99999999999980993
  for i, c in ipairs(LANCZOS) do sum = sum + c / (z + i) end
  local t = z + 7.5
  return 0.5 * math.log(2 * math.pi) + (z + 0.5) * t:log() - t + sum:log()
end

local function gamma_of(x)
  local small = x:lt(0.5)
  local right = lanczos(core.where(small, 1 - x, x))
  -- Compute sin(pi x) by its period, so it is exact to 15 digits.
  local sine = (x - x:floor()):detach() + (x - x:detach())
  local turned = math.log(math.pi) - (sine * math.pi):sin():abs():log() - right
  local y = core.where(small, turned, right)
  y = core.where(x:eq(1):logical_or(x:eq(2)), y * 0, y)
  local whole = x:le(0):logical_and(x:eq(x:floor()))
  return core.where(whole:logical_or(x:isinf()), math.huge, y)
end

--- The logarithm of the absolute value of the gamma function; infinity at 0, -1, -2 ..
--- `math.abs(gp.tensor({4}):lgamma()[1] - math.log(6)) < 1e-6`
---@return gpipe.Tensor
function Tensor:lgamma()
  local x = floats("lgamma", self)
  return gamma_of(x:to "f64"):to(x.dtype)
end

-- ---- the error function turned round ---------------------------------------------------------

-- The positive number whose erfc is q, by Newton's method on logarithms, starting from Winitzki's
-- approximation.
local function erfc_inverse(q)
  local l = (q * (2 - q)):log()
  local a = 2 / (math.pi * 0.147) + l / 2
  local y = ((a * a - l / 0.147):sqrt() - a):relu():sqrt()
  for _ = 1, 4 do
    local tail = y:erfc()
    local slope = (y * y * -1):exp() * (-2 / math.sqrt(math.pi)) / tail
    y = y - (tail:log() - q:log()) / slope
  end
  return y
end

-- The same near 0, where 1 - x would lose digits.
local function erf_inverse(x)
  local l = (-x * x):log1p()
  local a = 2 / (math.pi * 0.147) + l / 2
  local y = ((a * a - l / 0.147):sqrt() - a):relu():sqrt()
  for _ = 1, 4 do
    y = y - (y:erf() - x) / ((y * y * -1):exp() * (2 / math.sqrt(math.pi)))
  end
  return y
end

--- The number whose error function is x; infinity at 1 and -1, NaN outside.
--- `math.abs(gp.tensor({0.5}):erfinv()[1] - 0.4769363) < 1e-6`
---@return gpipe.Tensor
function Tensor:erfinv()
  local given = floats("erfinv", self)
  local x = given:to "f64"
  local size = x:detach():abs()
  local inner = size:clamp { max = 0.5 }
  local outer = (1 - size):clamp(1e-300, 0.5)
  local y = core.where(size:lt(0.5), erf_inverse(inner), erfc_inverse(outer))
  y = core.where(size:ge(1), core.where(size:eq(1), math.huge, size * (0 / 0)), y)
  y = core.where(x:lt(0), -y, y):detach()
  -- The slope at y; it is multiplied by 0.
  local slope = (y * y):exp() * (math.sqrt(math.pi) / 2)
  return (y + core.where(slope:isinf(), 0, slope) * (x - x:detach())):to(given.dtype)
end

-- ---- nearest ---------------------------------------------------------------------------------

local round = core.methods.round

--- The nearest integer, the even one of two; with decimals, the nearest number with that many
--- digits after the point. `gp.tensor({2.5}):round()[1] == 2`,
--- `gp.tensor({0.25}, {dtype = "f64"}):round(1)[1] == 0.2`
---@param decimals? integer 0; negative: digits before the point
---@return gpipe.Tensor
function Tensor:round(decimals)
  if decimals == nil or decimals == 0 then return round(self) end
  local n = check.count("round: decimals", decimals, -308)
  if n > 0 then return round(floats("round", self) * 10.0 ^ n) / 10.0 ^ n end
  return round(floats("round", self) / 10.0 ^ -n) * 10.0 ^ -n
end

local clamp = core.methods.clamp

-- Clamp to bounds that are tensors, each with its own gradient.
local function clamp_between(tensor, min, max)
  local y = tensor
  if min ~= nil then y = core.where(y:lt(check.operand("clamp: min", min)), min, y) end
  if max ~= nil then y = core.where(y:gt(check.operand("clamp: max", max)), max, y) end
  return y
end

--- The nearest number from min to max; max if they cross. Bounds may be tensors that broadcast.
--- `gp.ones({2}):clamp(2, 3)[1] == 2`, `gp.ones({2}):clamp({max = 0})[1] == 0`
---@param min? number|gpipe.Tensor|{min?: number|gpipe.Tensor, max?: number|gpipe.Tensor}
---@param max? number|gpipe.Tensor
---@return gpipe.Tensor
function Tensor:clamp(min, max)
  if is_tensor(min) or is_tensor(max) then return clamp_between(self, min, max) end
  if type(min) == "table" and (is_tensor(min.min) or is_tensor(min.max)) then
    local o = options.check("clamp", min, { min = ANY, max = ANY })
    return clamp_between(self, o.min, o.max)
  end
  return clamp(self, min, max)
end

-- ---- signs and bounds ------------------------------------------------------------------------

--- The nearest number that is not below `least`. `gp.tensor({1, 3}):clamp_min(2)[1] == 2`
---@param least number|gpipe.Tensor
---@return gpipe.Tensor
function Tensor:clamp_min(least)
  if is_tensor(check.operand("clamp_min", least)) then return self:maximum(least) end
  return self:clamp { min = least }
end

--- The nearest number that is not above `most`. `gp.tensor({1, 3}):clamp_max(2)[2] == 2`
---@param most number|gpipe.Tensor
---@return gpipe.Tensor
function Tensor:clamp_max(most)
  if is_tensor(check.operand("clamp_max", most)) then return self:minimum(most) end
  return self:clamp { max = most }
end

-- Make tensors of both operands; a number gets the dtype of the other.
local function pair(who, a, b)
  return a, is_tensor(check.operand(who, b)) and b or a * 0 + b
end

--- The larger of two; if one is NaN, the other. `gp.tensor({0 / 0}):fmax(gp.tensor {2})[1] == 2`
---@param other gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:fmax(other)
  local a, b = pair("fmax", self, other)
  if INTEGERS[a.dtype] then return a:maximum(b) end
  return core.where(a:isnan(), b, core.where(b:isnan(), a, a:maximum(b)))
end

--- The smaller of two; if one is NaN, the other. `gp.tensor({0 / 0}):fmin(gp.tensor {2})[1] == 2`
---@param other gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:fmin(other)
  local a, b = pair("fmin", self, other)
  if INTEGERS[a.dtype] then return a:minimum(b) end
  return core.where(a:isnan(), b, core.where(b:isnan(), a, a:minimum(b)))
end

--- Whether the sign is a minus, also for -0. `gp.tensor({-2, 3}):signbit()[1] == true`
---@return gpipe.Tensor bool
function Tensor:signbit()
  if INTEGERS[self.dtype] then return self:lt(0) end
  local zero = self:eq(0)
  return core.where(zero, (1 / core.where(zero, self, self * 0 + 1)):lt(0), self:lt(0))
end

--- The absolute value with the sign of the other. `gp.tensor({2}):copysign(-1)[1] == -2`
---@param other gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:copysign(other)
  local a, b = pair("copysign", floats("copysign", self), other)
  local flips = a:signbit():ne(b:signbit())
  return core.where(flips, -a, a)
end

--- 0 below 0, 1 above 0, and values at 0. `gp.tensor({-1, 0}):heaviside(0.5)[2] == 0.5`
---@param values gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:heaviside(values)
  local a, b = pair("heaviside", self, values)
  return core.where(a:eq(0), b, core.where(a:isnan(), a, a:gt(0):to(a.dtype))):detach()
end

--- Whether an element is infinity. `gp.tensor({math.huge, 1}):isposinf()[1] == true`
---@return gpipe.Tensor bool
function Tensor:isposinf() return self:eq(math.huge) end

--- Whether an element is minus infinity. `gp.tensor({-math.huge, 1}):isneginf()[1] == true`
---@return gpipe.Tensor bool
function Tensor:isneginf() return self:eq(-math.huge) end

--- sin(pi x) / (pi x), 1 at 0. `gp.zeros({1}):sinc()[1] == 1`
---@return gpipe.Tensor
function Tensor:sinc()
  local x = floats("sinc", self) * math.pi
  local zero = x:eq(0)
  local safe = core.where(zero, x * 0 + 1, x)
  return core.where(zero, x * 0 + 1, safe:sin() / safe)
end

--- log2(2^a + 2^b), without overflow. `gp.tensor({2}):logaddexp2(gp.tensor {2})[1] == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:logaddexp2(other)
  local log2 = math.log(2)
  local a, b = floats("logaddexp2", self), check.tensor("logaddexp2", other)
  return (a * log2):logaddexp(b * log2) * (1 / log2)
end

--- Convert degrees to radians. `math.abs(gp.tensor({180}):deg2rad()[1] - math.pi) < 1e-6`
---@return gpipe.Tensor
function Tensor:deg2rad() return floats("deg2rad", self) * (math.pi / 180) end

--- Convert radians to degrees. `math.abs(gp.tensor({math.pi}):rad2deg()[1] - 180) < 1e-4`
---@return gpipe.Tensor
function Tensor:rad2deg() return floats("rad2deg", self) * (180 / math.pi) end

--- Powers, computed in f64 also for integers. `gp.tensor({4}):float_power(0.5)[1] == 2`
---@param exponent gpipe.Tensor|number
---@return gpipe.Tensor f64
function Tensor:float_power(exponent)
  check.operand("float_power", exponent)
  return self:to("f64"):pow(is_tensor(exponent) and exponent:to "f64" or exponent)
end

return Tensor
