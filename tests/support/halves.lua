-- tests/support/halves.lua - runs the op conformance table in bf16 and f16: with the values of f64,
-- and bounds on the error.
--
-- Inputs are made in the half dtype first, so that a case can be computed in f64 from the same
-- values. An op in halves computes in f32 and rounds its result once; the table below names the
-- intermediate values that are stored.

local gp = require "gpipe"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local inputs = require "tests.support.inputs"

local halves = {}

halves.NAMES = { "bf16", "f16" }

-- Half a unit in the last place, relative to the result.
local ROUNDED = { bf16 = 2 ^ -8, f16 = 2 ^ -11 }

-- How many such roundings a result may be off, by the tolerance that its row names. The default,
-- 1.02, is one rounding and some of f32.
local ROUNDINGS = {
  product = { 2, why = "a library may add the bias to a product that it has rounded" },
  attention = { 4, why =
    "probabilities are rounded before they meet the values, which is a product of up to 70" },
  layers = { 16, why =
    "what goes from layer to layer is rounded, and weights of size 4 make it larger" },
  gradient = { 16, why =
    "values on the way are rounded, and terms of a quotient's gradient are larger than it" },
}

--- Return how far a result may be from f64's, relative plus absolute, by the name of a tolerance.
function halves.bound(name, dtype)
  local many = ROUNDINGS[name]
  return ROUNDED[dtype] * (many and many[1] or 1.02)
end

-- Statistics and sums of losses are f32 (ops.def), and as exact as f32's own.
local WIDE = { cross_entropy = true, nll = true, mse = true }

--- Return the dtype that output k must have.
function halves.result_dtype(case, k)
  if WIDE[case.row.op] then return "f32" end
  return conformance.result_dtype(case, k)
end

--- Return the case with the same values in another dtype. masters: inputs that have a gradient keep
--- their dtype, because a pipeline reads them, as parameters, in halves.
function halves.as(case, dtype, masters)
  local made = {}
  for name, value in pairs(case) do made[name] = value end
  made.dtype, made.inputs = dtype, {}
  for i, input in ipairs(case.inputs) do
    local own = input.dtype == case.dtype and not (masters and input.spec.fixed)
    made.inputs[i] = {
      spec = input.spec, layout = input.layout, dtype = own and dtype or input.dtype,
      base = own and array.of(inputs.tensor(input)) or input.base,
      differentiable = own and not input.spec.fixed,
    }
  end
  return made
end

--- Say whether a row runs in halves: rows without dtypes of their own run in every float.
function halves.applies(row, number)
  return row.cases[1] ~= nil and not row.dtypes and #row.cases[number] > 0
    and (conformance.applies(row, number, "f32") or conformance.applies(row, number, "bf16"))
end

--- Compare the outputs of a case in halves with f64's.
function halves.check(case, outputs, want)
  assert(#outputs == #want, case.name)
  for k, got in ipairs(outputs) do
    local dtype = halves.result_dtype(case, k)
    assert(got.dtype == dtype,
      ("%s: output %d is %s, expected %s"):format(case.name, k, got.dtype, dtype))
    local bound = dtype == case.dtype and halves.bound(case.row.tolerance, case.dtype) or 4e-6
    conformance.compare(("%s, output %d"):format(case.name, k), array.of(got), array.of(want[k]),
      bound, dtype)
  end
end

-- ---- gradients ---------------------------------------------------------------------------------

--- Return the options of a pipeline in that precision on these devices, one stage each.
function halves.on(precision, ...)
  local names = { ... }
  return {
    devices = names, balance = names[2] and { 1, 1 }, checkpoint = names[2] and "always",
    precision = precision,
    loss_scale = precision == "f16" and { initial = 16 } or nil,
  }
end

local function check_cut(case, device)
  local one = conformance.gradients(halves.as(case, "f32", true),
    halves.on(case.dtype, device), true)
  local two = conformance.gradients(halves.as(case, "f32", true),
    halves.on(case.dtype, device, device), true)
  for i, grad in pairs(one) do
    assert(gp.equal(grad:to("cpu"), two[i]:to("cpu")),
      ("%s: the gradient of input %d depends on the cut"):format(case.name, i))
  end
end

--- Say whether a case has gradients in f64 to compare with.
function halves.trains(row, number, case)
  return conformance.applies(row, number, "f64")
    and conformance.trains(halves.as(case, "f32", true))
end

--- Compare a pipeline's gradients in halves with f64's; with the op on a stage of its own the bits
--- must be the same.
function halves.check_gradients(case, device)
  local wide = conformance.gradients(halves.as(case, "f64"), { devices = { "cpu:0" } })
  local got = conformance.gradients(halves.as(case, "f32", true), halves.on(case.dtype, device))
  for i, grad in pairs(got) do
    assert(grad.dtype == "f32", case.name .. ": the gradient is " .. grad.dtype)
    conformance.compare(("%s, gradient of input %d"):format(case.name, i), array.of(grad),
      array.of(wide[i]),
      halves.bound("gradient", case.dtype), case.dtype)
  end
  check_cut(case, device)
end

return halves
