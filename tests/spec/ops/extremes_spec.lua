-- tests/spec/ops/extremes_spec.lua - losses and layers at the limits of a dtype.

local extremes = require "tests.support.extremes"

local DEVICE, BOUND = "cpu:0", 5e-7
local WIDTHS = { 3, 64, 301 }

describe("cross entropy", function()
  it("keeps its bits when all logits get the same offset", function()
    extremes.check_offsets(DEVICE, WIDTHS)
  end)

  it("spreads the gradient evenly over equal logits of any size", function()
    extremes.check_all_equal(DEVICE, WIDTHS, BOUND, { 3e38, -3e38, -1e30 })
  end)
end)

describe("layer norm", function()
  it("normalises rows whose squares overflow", function()
    for _, width in ipairs(WIDTHS) do
      local case = { device = DEVICE, width = width, bound = 2e-6, most = 3e38 }
      for _, largest in ipairs { 1e18, 1e20, 1e38, 3e38 } do
        extremes.check_normalised(case, largest)
      end
      case.dtype, case.bound, case.most = "f64", 1e-12, 1.7e308
      for _, largest in ipairs { 1e150, 1e160, 1e300, 1.7e308 } do
        extremes.check_normalised(case, largest)
      end
    end
  end)
end)

describe("attention", function()
  it("has no gradient where each query attends to only one key", function()
    extremes.check_saturated(DEVICE)
  end)

  it("has the gradients of its values whatever offset all scores share", function()
    extremes.check_large_scores(DEVICE, 1e-6)
  end)
end)
