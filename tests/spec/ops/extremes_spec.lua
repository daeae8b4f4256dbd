-- tests/spec/ops/extremes_spec.lua - losses and layers at the ends of what a dtype holds.

local extremes = require "tests.support.extremes"

local DEVICE, BOUND = "cpu:0", 1e-7
local WIDTHS = { 3, 64, 300, 1500, 1600 }

describe("cross entropy", function()
  it("does not change by a bit with an offset that all logits have", function()
    for _, width in ipairs(WIDTHS) do
      for _, smoothing in ipairs { 0, 0.1 } do
        local case = { device = DEVICE, width = width, smoothing = smoothing }
        extremes.check_offsets(case, { 1e3, -1e4, 1e7, -1e7 })
      end
    end
  end)

  it("spreads the gradient evenly over equal logits of any size", function()
    for _, width in ipairs(WIDTHS) do
      for _, smoothing in ipairs { 0, 0.1 } do
        local case = { device = DEVICE, width = width, smoothing = smoothing, bound = BOUND * 5 }
        for _, value in ipairs { 0, 3e38, -3e38, -1e30 } do extremes.check_equal(case, value) end
      end
    end
  end)
end)
