-- tests/spec/cuda/gradients_spec.lua - the op conformance table in pipelines on GPUs, recorded and
-- differentiated.
--
-- Results are compared with the CPU's gradients in f64, which central differences have checked
-- (ops_spec.lua); and, bit for bit, with the same op run at once and with the same pipeline cut in
-- two.

local gp = require "gpipe"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local gpu = require "tests.support.gpu"
local tolerances = require "tests.support.cuda_tolerance"
local rows = require "tests.spec.ops.table"

local FLOATS = { "f32", "f64" }
local on_gpu = gpu.spec(it)

local function on(...)
  local names = { ... }
  return { devices = names, balance = names[2] and { 1, 1 }, checkpoint = names[2] and "always" }
end

-- Options for the first GPU where no ops are fused, as when they run at once.
local function unfused()
  local options = on "cuda:0"
  options.fuse = false
  return options
end

-- Calls f(case, number) for every case of a row that applies to the dtype and that pipelines can
-- take.
local function each_case(row, dtype, f)
  for number, case in ipairs(row.cases) do
    if conformance.applies(row, number, dtype) and #case > 0 then
      f(conformance.case(row, number, dtype), number)
    end
  end
end

local function on_first(t) return t:to("cuda:0") end

-- A result that is rounded once when the op runs at once is so too where the op is fused with
-- others.
local function tolerance_of(case)
  local bound = tolerances[case.row.tolerance][case.dtype] or 0
  return bound == "rounded" and 0 or bound
end

local function check_recorded(case)
  for k, want in ipairs(conformance.eager(case, on_first)) do
    local got = conformance.recorded(case, k, unfused())
    assert(gp.equal(want:to("cpu"), got:to("cpu")),
      ("%s, output %d differs in a pipeline"):format(case.name, k))
    conformance.compare(("%s, output %d, fused"):format(case.name, k),
      array.of(conformance.recorded(case, k, on "cuda:0")), array.of(want), tolerance_of(case),
        case.dtype)
  end
end

local function check_gradients(case, wide)
  for i, grad in pairs(conformance.gradients(case, on "cuda:0")) do
    conformance.compare(("%s, gradient of input %d"):format(case.name, i), array.of(grad),
      array.of(wide[i]),
      tolerances.gradient[case.dtype], case.dtype)
  end
end

local function check_cut(case)
  local one = conformance.gradients(case, on "cuda:0", true)
  local two = conformance.gradients(case, on("cuda:0", "cuda:0"), true)
  for i, grad in pairs(one) do
    assert(gp.equal(grad:to("cpu"), two[i]:to("cpu")),
      ("%s: the gradient of input %d depends on the cut"):format(
      case.name, i))
  end
end

for _, row in ipairs(rows) do
  describe("op " .. row.op .. " in pipelines on GPUs", function()
    for _, dtype in ipairs(row.cases[1] and row.dtypes or FLOATS) do
      on_gpu("gives the same bits recorded and at once in " .. dtype, function()
        each_case(row, dtype, check_recorded)
      end)
    end
    for _, dtype in ipairs(row.gradient and FLOATS or {}) do
      on_gpu("has the gradients of the CPU in " .. dtype, function()
        each_case(row, dtype, function(case, number)
          if not (conformance.applies(row, number, "f64") and conformance.trains(case)) then
            return
          end
          check_gradients(case,
            conformance.gradients(conformance.case(row, number, "f64"), on "cpu:0"))
          check_cut(case)
        end)
      end)
    end
  end)
end
