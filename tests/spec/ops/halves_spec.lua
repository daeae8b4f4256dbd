-- tests/spec/ops/halves_spec.lua - the op conformance table in pipelines on CPU devices in bf16:
-- gradients are near f64's, and have the same bits whether an op's parameters lie in its layer or
-- on another stage. In f16 one case of each op runs.

local conformance = require "tests.support.conformance"
local halves = require "tests.support.halves"
local rows = require "tests.spec.ops.table"

local function check(row, dtype, most)
  local checked = 0
  for number in ipairs(row.cases) do
    local case = checked < most and halves.applies(row, number)
      and conformance.case(row, number, dtype)
    if case and halves.trains(row, number, case) then
      halves.check_gradients(case, "cpu:0")
      checked = checked + 1
    end
  end
end

for _, row in ipairs(rows) do
  if row.gradient and not row.dtypes then
    describe("op " .. row.op .. " on a CPU device", function()
      it("has f64's gradients for parameters read in bf16",
        function() check(row, "bf16", math.huge) end)
      it("has f64's gradients in f16", function() check(row, "f16", 1) end)
    end)
  end
end
