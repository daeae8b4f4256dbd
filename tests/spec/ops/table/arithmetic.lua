-- tests/spec/ops/table/arithmetic.lua - add, sub, mul, div, pow, neg; floor_divide, remainder, fmod;
-- bits.

local array = require "tests.support.array"
local elementwise = require "tests.support.elementwise"
local inputs = require "tests.support.inputs"

local arithmetic, unary, x = elementwise.arithmetic, elementwise.unary, inputs.float

-- Bases of both signs with whole exponents, and the corners where the formulas of the gradient have
-- 0 * infinity.
local pow_row = arithmetic("pow", function(a, b) return a ^ b end, "power",
  { low = 0.25, high = 2 },
  { low = 0.25, high = 3 })
for _, case in ipairs {
  { x { 70, 5 }, o = { right = 2 } },
  { x { 3, 4, layout = "transposed" }, o = { right = 2.0 } },
  { x { 3, 4, signed = true }, o = { right = 3 } },
  { x { 3, 4, signed = true }, o = { right = -1 } },
  { x { 3, values = { 0.0, -1.0, 2.0 } }, o = { right = 2 } },
  { x { 3, values = { 0.0, -1.0, 2.0 } }, o = { right = 1 } },
  { x { 3, values = { 0.0, -1.0, 2.0 } }, o = { right = 0 } },
  { x { 3, 4 }, x { 1, values = { 2.0 }, fixed = true } },
  { x { 4 }, x { 4, values = { 2.0, 0.0, 3.0, 1.0 }, fixed = true } },
  { x { 2, values = { 0.0, 2.0 }, fixed = true }, x { 2, low = 0.5, high = 2 } },
} do
  table.insert(pow_row.cases, case)
end

-- Quotients rounded down and their remainders. Divisors stay away from 0, and quotients from whole
-- numbers, where differences would jump; special values are tested without a gradient.
local function quotient(op, f)
  local row = arithmetic(op, f, "rounded", { low = 3.125, high = 3.875 }, { low = 1.0625, high = 1.5 })
  row.call = function(_, a, b) return a[op](a, b) end
  row.cases = elementwise.few_pairs(x, { low = 3.125, high = 3.875 }, { low = 1.0625, high = 1.5 })
  row.gradient = op ~= "floor_divide"
  row.refuses = { table.unpack(elementwise.MISMATCH, 1, 2) }
  return row
end

local function remainder(a, b)
  local left = math.fmod(a, b)
  return left ~= 0 and (left < 0) ~= (b < 0) and left + b or left
end

-- Ops on bits take only i64; shifts by 64 and more, or by less than 0, shift everything out.
local VALUES = { 0, 1, -1, 6, -7, 255, 1 << 40, math.maxinteger, math.mininteger, -(1 << 33) }
local COUNTS = { 0, 1, 63, 5, 64, -1, 7, 40, 3, 100 }

local function bits(op, f, second)
  local function values(list, ...)
    return inputs.ids { dtype = "i64", values = list, ... }
  end
  return {
    op = op, tolerance = "exact", gradient = false, dtypes = { "i64" },
    call = function(o, a, b) return a[op](a, o.other or b) end,
    reference = function(o, a, b)
      return array.map(f, a, o.other and array.scalar(o.other) or b)
    end,
    cases = {
      { values(VALUES, 10), values(second, 10) },
      { values(VALUES, 10), values({ table.unpack(second, 3, 5) }, 3, 1) },
      { values(VALUES, 2, 5), o = { other = 3 } },
    },
    refuses = { { x { 2 }, x { 2 }, error = op .. ": the tensor is f32, expected integers" } },
  }
end

local function shifted(move, all)
  return function(a, count)
    if count < 0 or count > 63 then return all(a) end
    return move(a, count)
  end
end

local function left(a, count) return a << count end
local function right(a, count) return a // (1 << count) end
local function sign(a) return a < 0 and -1 or 0 end

return {
  bits("bitwise_and", function(a, b) return a & b end, { table.unpack(VALUES, 1, 10) }),
  bits("bitwise_or", function(a, b) return a | b end, COUNTS),
  bits("bitwise_xor", function(a, b) return a ~ b end, COUNTS),
  bits("bitwise_left_shift", shifted(left, function() return 0 end), COUNTS),
  bits("bitwise_right_shift", shifted(function(a, count)
    return count == 63 and sign(a) or right(a, count)
  end, sign), COUNTS),
  quotient("floor_divide", function(a, b) return a // b end),
  quotient("remainder", remainder),
  quotient("fmod", math.fmod),
  arithmetic("add", function(a, b) return a + b end, "rounded", {}),
  arithmetic("sub", function(a, b) return a - b end, "rounded", {}),
  arithmetic("mul", function(a, b) return a * b end, "rounded", {}),
  arithmetic("div", function(a, b) return a / b end, "rounded", {}, { signed = true }),
  pow_row,
  unary("neg", function(v) return -v end, "exact"),
}
