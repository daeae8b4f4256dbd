-- tests/spec/ops/table/arithmetic.lua - add, sub, mul, div, pow, neg; floor_divide, remainder, fmod.

local elementwise = require "tests.support.elementwise"
local inputs = require "tests.support.inputs"

local arithmetic, unary, x = elementwise.arithmetic, elementwise.unary, inputs.float

-- Squares and cubes of both signs, and the corners where the formulas of the gradient have 0 *
-- infinity.
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

-- Whole quotients and what they leave. Divisors are away from 0, and quotients from whole numbers,
-- where differences for the gradient would jump; special values come without a gradient.
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

return {
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
