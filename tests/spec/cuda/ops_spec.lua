-- tests/spec/cuda/ops_spec.lua - the op conformance table on a GPU: each case is compared with the
-- CPU's f64.
--
-- The rows are those of tests/spec/ops/table.lua, which plain Lua has checked on the CPU. On
-- machines without a GPU the build runs this spec on its kernels compiled for the host
-- (scripts/cmake/cuda_tests.cmake); with a GPU it runs on that.

local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local expect = require "tests.support.expect"
local gpu = require "tests.support.gpu"
local tolerances = require "tests.support.cuda_tolerance"
local rows = require "tests.spec.ops.table"

local GPU = "cuda:0"
local FLOATS = { "f32", "f64" }
local on_gpu = gpu.spec(it)

-- ---- where inputs lie --------------------------------------------------------------------------

-- Lies at the beginning of an allocation, with the largest alignment.
local function aligned(t) return t:to(GPU) end

-- Lies one element behind that: contiguous, but no 16-byte access may begin there.
local function shifted(t)
  local shape, n, one = t.shape, t:numel(), gp.zeros({ 1 }, { dtype = t.dtype })
  local flat = gp.concat({ one, t:reshape(n), one }):to(GPU)
  return flat:narrow(1, 2, n):reshape(shape)
end

local PLACES = { { "aligned", aligned }, { "shifted", shifted } }

-- ---- against the CPU ---------------------------------------------------------------------------

local WIDE = { f32 = true, f64 = true }

local function bound_of(name, dtype)
  local entry = tolerances[name] or error("no tolerance " .. tostring(name))
  return entry[dtype] or 0
end

-- Computes the same values in f64 if the run is in floats, else in their own dtype.
local function reference(row, number, dtype)
  local case = conformance.case(row, number, WIDE[dtype] and "f64" or dtype)
  local list = {}
  for k, t in ipairs(conformance.eager(case)) do list[k] = array.of(t) end
  return list
end

local function check_output(name, case, k, got, want)
  assert.are.equal(GPU, got.device, name)
  assert.are.equal(conformance.result_dtype(case, k), got.dtype, name)
  conformance.compare(("%s, output %d"):format(name, k), array.of(got), want,
    bound_of(case.row.tolerance, case.dtype), case.dtype)
end

-- Ops whose kernels the libraries choose by alignment, too.
local PRODUCTS = {
  matmul = true, linear = true, linear_gelu = true, linear_add = true, attention = true,
  attention_qkv = true, conv2d = true, conv_transpose2d = true, conv2d_dw = true,
}

-- A kernel may read packs or single elements: the bits must be the same.
local function check_places(row, case, first, got)
  for k = 1, PRODUCTS[row.op] and 0 or #got do
    assert(gp.equal(first[k]:to("cpu"), got[k]:to("cpu")),
      ("%s, output %d: the bits depend on the alignment"):format(case.name, k))
  end
end

local function check_case(row, number, dtype)
  local case, want = conformance.case(row, number, dtype), reference(row, number, dtype)
  local first
  for _, place in ipairs(PLACES) do
    local name = ("%s, %s"):format(case.name, place[1])
    local got, again = conformance.eager(case, place[2]), conformance.eager(case, place[2])
    assert.are.equal(#want, #got, name)
    first = first or got
    check_places(row, case, first, got)
    for k = 1, #want do
      check_output(name, case, k, got[k], want[k])
      assert(gp.equal(got[k]:to("cpu"), again[k]:to("cpu")), name .. ": two runs differ")
    end
  end
end

-- Cases without tensors run on no device.
local function has_inputs(case) return #case > 0 end

local function check_row(row, dtype)
  for number, case in ipairs(row.cases) do
    if conformance.applies(row, number, dtype) and has_inputs(case) then
      check_case(row, number, dtype)
    end
  end
end

-- ---- refusals ----------------------------------------------------------------------------------

-- Whether the refusal comes before a kernel runs or from the kernel, its text is the CPU's.
local function check_refusal(row, number)
  local case = conformance.case(row, number, row.refuses[number].dtype or "f32", row.refuses)
  local text = expect.failure(conformance.eager, case, aligned)
  assert(tostring(text):find(case.error, 1, true), ("%s: the error is %q, expected %q"):format(
    case.name, text, case.error))
end

for _, row in ipairs(rows) do
  describe("op " .. row.op .. " on a GPU", function()
    for _, dtype in ipairs(row.dtypes or FLOATS) do
      if row.cases[1] then
        on_gpu("computes what the CPU does in f64, in " .. dtype,
          function() check_row(row, dtype) end)
      end
    end
    for number, refusal in ipairs(row.refuses or {}) do
      on_gpu(("refuses: %s"):format(refusal.error), function() check_refusal(row, number) end)
    end
  end)
end

-- ---- random numbers ----------------------------------------------------------------------------

-- Returns f(t) on the CPU and on the GPU from the same seed.
local function both(f, t)
  gp.seed(7)
  local here = f(t)
  gp.seed(7)
  return here, f(t:to(GPU)):to("cpu")
end

describe("dropout on a GPU", function()
  for _, dtype in ipairs(FLOATS) do
    on_gpu("has the bits of the CPU in " .. dtype, function()
      for _, shape in ipairs { { 1 }, { 63 }, { 64 }, { 65 }, { 1000 }, { 7, 130 },
        { 3, 5, 77 } } do
        for _, p in ipairs { 0, 0.1, 0.5, 0.9, 1 } do
          local here, there = both(function(t) return core.dropout(t, p) end,
            gp.randn(shape, { dtype = dtype }))
          assert(gp.equal(here, there),
            ("dropout %g of %s differs"):format(p, table.concat(shape, "x")))
        end
      end
    end)
  end

  on_gpu("has the bits of the CPU for strided values too", function()
    local here, there = both(function(t) return core.dropout(t:transpose(), 0.5) end,
      gp.randn { 30, 50 })
    assert(gp.equal(here, there))
  end)
end)

describe("attention on a GPU", function()
  on_gpu("drops the probabilities that the CPU drops", function()
    for _, causal in ipairs { false, true } do
      local qkv = gp.randn({ 2, 37, 3 * 16 }, { dtype = "f64" })
      local here, there = both(function(t)
        return core.attention_qkv(t, { heads = 2, causal = causal, dropout = 0.3 })
      end, qkv)
      conformance.compare("attention with dropout", array.of(there), array.of(here),
        bound_of("attention", "f64"), "f64")
    end
  end)
end)
