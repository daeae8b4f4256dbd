-- tests/spec/ops/conformance_spec.lua - the op conformance table, expanded: every row runs in every
-- way that a script can run it.
--
-- The rows are in tests/spec/ops/table.lua. For each row, results are compared with a reference in
-- plain Lua, gradients with central differences, and recorded results and the gradients of every
-- cut bit for bit; and wrong calls must be refused.

local gp = require "gpipe"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local rows = require "tests.spec.ops.table"

local FLOATS = { "f32", "f64" }

local function one_stage() return { devices = { { "cpu:0", threads = 2 } } } end
local function two_stages()
  return { balance = { 1, 1 }, devices = { "cpu:0", "cpu:1" }, checkpoint = "always" }
end

-- Calls f(case) for every case of a row that applies to the dtype.
local function each_case(row, dtype, f)
  for number in ipairs(row.cases) do
    if conformance.applies(row, number, dtype) then f(conformance.case(row, number, dtype)) end
  end
end

local function check_results(case)
  local got, want = conformance.eager(case), conformance.reference(case)
  assert.are.equal(#want, #got, case.name)
  for k = 1, #want do
    assert.are.equal(conformance.result_dtype(case, k), got[k].dtype, case.name)
    conformance.compare(("%s, output %d"):format(case.name, k), array.of(got[k]), want[k],
      conformance.bound(case.row.tolerance, case.dtype), case.dtype)
  end
end

-- Edges between stages carry only bytes: two dtypes show that, and cast carries all of them.
local CROSSING = { f32 = true, i64 = true }

local function check_recorded(case)
  for k, want in ipairs(conformance.eager(case)) do
    local one = conformance.recorded(case, k, one_stage())
    assert(gp.equal(want, one), ("%s, output %d differs in a pipeline"):format(case.name, k))
    if CROSSING[case.dtype] then
      local two = conformance.recorded(case, k, two_stages())
      assert(gp.equal(want, two), ("%s, output %d differs over two stages"):format(case.name, k))
    end
  end
end

-- Parameters are read where they lie, or from copies in another layout.
local function check_parameters(case)
  local want, got = conformance.eager(case)[1], conformance.recorded_parameters(case)
  assert(gp.equal(want, got), ("%s: differs on parameters"):format(case.name))
end

-- The parameters are in a layer before the op's, then on another stage, with recomputation.
local function check_cuts(case, own)
  local one = conformance.gradients(case, one_stage(), true)
  local two = conformance.gradients(case, two_stages(), true)
  for i, grad in pairs(one) do
    assert(gp.equal(grad, two[i]),
      ("%s: the gradient of input %d depends on the cut"):format(case.name, i))
    assert(gp.equal(grad, own[i]), ("%s: the gradient of input %d depends on the layer"):format(
      case.name, i))
  end
end

-- The backward kernels of f32 are not those of f64.
local function check_gradients_f32(case, wide)
  for i, grad in pairs(conformance.gradients(case, one_stage())) do
    conformance.compare(("%s, gradient of input %d"):format(case.name, i), array.of(grad),
      array.of(wide[i]), conformance.bound("gradient_f32", "f32"), "f32")
  end
end

local function check_refusal(row, number)
  local case = conformance.case(row, number, row.refuses[number].dtype or "f32", row.refuses)
  for _, run in ipairs {
    { "at once", conformance.eager },
    { "recorded", function(c) return conformance.recorded(c, 1, one_stage()) end },
  } do
    local ok, text = pcall(run[2], case)
    assert(not ok, ("%s, %s: was taken, expected an error"):format(case.name, run[1]))
    assert(tostring(text):find(case.error, 1, true),
      ("%s, %s: the error is %q, expected %q"):format(
      case.name, run[1], text, case.error))
  end
end

-- ---- the table -------------------------------------------------------------------------------

local function add_gradient_specs(row)
  local found = {} -- the f64 gradients by case, which all three tests need
  local function trainable(f)
    return function()
      for number in ipairs(row.cases) do
        local case = conformance.case(row, number, "f64")
        if conformance.applies(row, number, "f64") and conformance.trains(case) then
          found[number] = found[number] or conformance.gradients(case, one_stage())
          f(case, found[number], number)
        end
      end
    end
  end
  it("gives the same bits on parameters and eagerly", function()
    for _, dtype in ipairs(FLOATS) do
      each_case(row, dtype,
        function(case) if conformance.trains(case) then check_parameters(case) end end)
    end
  end)
  it("has gradients that agree with central differences", trainable(conformance.check_slopes))
  it("has the same gradients for every cut, recomputed or not", trainable(check_cuts))
  it("has gradients in f32 that agree with those in f64", trainable(function(_, wide, number)
    check_gradients_f32(conformance.case(row, number, "f32"), wide)
  end))
end

for _, row in ipairs(rows) do
  describe("op " .. row.op, function()
    for _, dtype in ipairs(row.dtypes or FLOATS) do
      if row.cases[1] then
        it("computes what its reference does in " .. dtype, function()
          each_case(row, dtype, check_results)
        end)
        it("gives the same bits recorded and eagerly in " .. dtype, function()
          each_case(row, dtype, check_recorded)
        end)
      end
    end
    if row.gradient then add_gradient_specs(row) end
    for number, refusal in ipairs(row.refuses or {}) do
      it(("refuses: %s"):format(refusal.error), function() check_refusal(row, number) end)
    end
    for _, pair in ipairs(row.also or {}) do it(pair[1], pair[2]) end
  end)
end
