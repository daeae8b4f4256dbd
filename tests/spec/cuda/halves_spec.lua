-- tests/spec/cuda/halves_spec.lua - the op conformance table on a GPU in bf16 and f16: results and
-- gradients.
--
-- Results are compared with the CPU's f64 of the same values. Gradients are those of pipelines in
-- that precision, whose parameters are f32; the bits must be the same whether the parameters lie in
-- the op's layer or on another stage.

local gp = require "gpipe"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local gpu = require "tests.support.gpu"
local halves = require "tests.support.halves"
local inputs = require "tests.support.inputs"
local rows = require "tests.spec.ops.table"

local on_gpu = gpu.spec(it)

-- ---- where inputs lie --------------------------------------------------------------------------

local function aligned(t) return t:to("cuda:0") end

-- Begins one element behind the start of an allocation, where no 16-byte access may begin.
local function shifted(t)
  local n, one = t:numel(), gp.zeros({ 1 }, { dtype = t.dtype })
  return gp.concat({ one, t:reshape(n), one }):to("cuda:0"):narrow(1, 2, n):reshape(t.shape)
end

-- ---- results -----------------------------------------------------------------------------------

-- Ops whose kernels the libraries choose by alignment, too.
local PRODUCTS = {
  matmul = true, linear = true, linear_gelu = true, linear_add = true, attention = true,
  attention_qkv = true, conv2d = true, conv_transpose2d = true, conv2d_dw = true,
}

local function check_results(case)
  local want, first = conformance.eager(halves.as(case, "f64")), nil
  for _, place in ipairs { aligned, shifted } do
    local got = conformance.eager(case, place)
    halves.check(case, got, want)
    first = first or got
    for k = 1, PRODUCTS[case.row.op] and 0 or #got do
      assert(gp.equal(first[k]:to("cpu"), got[k]:to("cpu")),
        case.name .. ": the bits depend on the alignment")
    end
    for k, again in ipairs(conformance.eager(case, place)) do
      assert(gp.equal(got[k]:to("cpu"), again:to("cpu")), case.name .. ": two runs differ")
    end
  end
end

-- ---- the table ---------------------------------------------------------------------------------

local function each_case(row, dtype, f)
  for number in ipairs(row.cases) do
    if halves.applies(row, number) then f(conformance.case(row, number, dtype), number) end
  end
end

for _, row in ipairs(rows) do
  describe("op " .. row.op .. " on a GPU", function()
    for _, dtype in ipairs(row.dtypes and {} or halves.NAMES) do
      on_gpu("computes what the CPU does in f64, in " .. dtype,
        function() each_case(row, dtype, check_results) end)
      if row.gradient then
        on_gpu("has the CPU's gradients for parameters read in " .. dtype, function()
          each_case(row, dtype, function(case, number)
            if halves.trains(row, number, case) then halves.check_gradients(case, "cuda:0") end
          end)
        end)
      end
    end
  end)
end

-- ---- dropout ------------------------------------------------------------------------------------

local x = inputs.float

-- These have several tiles of scores, heads that share keys, and both widths that the kernels are
-- made for.
local DROPPED = {
  { x { 1, 4, 70, 16 }, x { 1, 2, 70, 16 }, x { 1, 2, 70, 16 },
    o = { causal = true, dropout = 0.3 } },
  { x { 1, 2, 66, 72 }, x { 1, 1, 131, 72 }, x { 1, 1, 131, 72 }, o = { dropout = 0.3 } },
  { x { 3, 2, 6, 8 }, x { 3, 2, 6, 8 }, x { 3, 2, 6, 8 }, o = { causal = true, dropout = 0.1 } },
  { x { 1, 1, 7, 9 }, x { 1, 1, 64, 9 }, x { 1, 1, 64, 9 }, inputs.bools { 1, 1, 7, 64 },
    o = { dropout = 0.3 } },
}

local function row_of(name)
  for _, row in ipairs(rows) do
    if row.op == name then return row end
  end
end

local function check_dropped(number, dtype)
  local case = conformance.case(row_of "attention", number, dtype, DROPPED)
  local here = conformance.gradients(halves.as(case, "f64"), { devices = { "cpu:0" }, seed = 12 })
  local opts = halves.on(dtype, "cuda:0")
  opts.seed = 12
  local there = conformance.gradients(halves.as(case, "f32", true), opts)
  for i, grad in pairs(there) do
    conformance.compare(("%s, gradient of input %d"):format(case.name, i), array.of(grad),
      array.of(here[i]),
      halves.bound("gradient", dtype), dtype)
  end
end

describe("attention with dropout on a GPU", function()
  for _, dtype in ipairs(halves.NAMES) do
    on_gpu("drops in " .. dtype .. " what the CPU drops, backward too", function()
      for number in ipairs(DROPPED) do check_dropped(number, dtype) end
    end)
  end
end)
