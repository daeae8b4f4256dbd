-- tests/spec/tensor/halves_spec.lua - ops on bf16 and f16 tensors of the host compute in f32.

local gp = require "gpipe"
local conformance = require "tests.support.conformance"
local halves = require "tests.support.halves"
local rows = require "tests.spec.ops.table"
local nn = gp.nn

for _, row in ipairs(rows) do
  describe("op " .. row.op .. ", eagerly,", function()
    for _, dtype in ipairs(row.dtypes and {} or halves.NAMES) do
      it("computes in f32 and rounds to " .. dtype, function()
        for number in ipairs(row.cases) do
          if halves.applies(row, number) then
            local case = conformance.case(row, number, dtype)
            halves.check(case, conformance.eager(case), conformance.eager(halves.as(case, "f64")))
          end
        end
      end)
    end
  end)
end

describe("a stage on a CPU device", function()
  local Doubles = nn.class("Doubles")
  function Doubles:forward(x) return (x:to("bf16") * 2):to("f32") end -- luacheck: ignore 212/self

  it("computes halves, as eager ops do", function()
    local pipe <close> = gp.pipeline(nn.Sequential { Doubles() }, { devices = { "cpu:0" } })
    local x = gp.randn({ 2, 3 }, { seed = 1 })
    assert.is_true(gp.equal(x:to("bf16"):to("f32") * 2, pipe:forward(x)))
  end)
end)
