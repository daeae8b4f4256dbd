-- tests/support/special.lua - functions that Lua's math library lacks, for references, in doubles.

local special = {}

-- Computes erf by its Taylor series, for small arguments. Source: Abramowitz and Stegun 7.1.5.
local function erf_series(x)
  local term, sum = x, x
  for n = 1, 100 do
    term = -term * x * x / n
    sum = sum + term / (2 * n + 1)
  end
  return 2 / math.sqrt(math.pi) * sum
end

-- Computes erfc by its continued fraction, for large arguments. Source: Abramowitz and Stegun
-- 7.1.14.
local function erfc_fraction(x)
  local f = 0.0
  for n = 120, 1, -1 do f = n / 2 / (x + f) end
  return math.exp(-x * x) / math.sqrt(math.pi) / (x + f)
end

--- Compute 1 - erf(x) with about 14 digits, small values included.
function special.erfc(x)
  if x < 0 then return 2 - special.erfc(-x) end
  return x < 2 and 1 - erf_series(x) or erfc_fraction(x)
end

--- The distribution function of the normal distribution.
function special.normal(x) return 0.5 * special.erfc(-x / math.sqrt(2)) end

function special.tanh(x)
  local e = math.exp(-2 * math.abs(x))
  local y = (1 - e) / (1 + e)
  return x < 0 and -y or y
end

function special.sigmoid(x) return 1 / (1 + math.exp(-x)) end

-- ---- rounding --------------------------------------------------------------------------------

-- digits of the significand, exponent of the smallest number, largest number
local FORMATS = {
  f32 = { 24, -149, 0x1.fffffep127 }, f16 = { 11, -24, 65504.0 }, bf16 = { 8, -133, 0x1.fep127 },
}

local function to_even(q)
  local low = math.floor(q)
  local rest = q - low
  if rest > 0.5 or (rest == 0.5 and low % 2 == 1) then return low + 1.0 end
  return low + 0.0
end

--- Round a double to nearest even in another float format; f64 stays.
function special.round(x, dtype)
  local format = FORMATS[dtype]
  x = x + 0.0
  if not format or x ~= x or x == 0 or math.abs(x) == math.huge then return x end
  local digits, least, largest = table.unpack(format)
  local exponent = math.floor(math.log(math.abs(x), 2))
  while 2.0 ^ exponent > math.abs(x) do exponent = exponent - 1 end
  while 2.0 ^ (exponent + 1) <= math.abs(x) do exponent = exponent + 1 end
  local unit = 2.0 ^ math.max(exponent - digits + 1, least)
  local y = to_even(math.abs(x) / unit) * unit
  if y > largest then y = math.huge end
  return x < 0 and -y or y
end

return special
