-- tests/spec/cuda/extremes_spec.lua - losses and layers at the limits of a dtype, on GPUs.

local extremes = require "tests.support.extremes"
local gpu = require "tests.support.gpu"

local on_gpu = gpu.spec(it)
local DEVICE, BOUND = "cuda:0", 5e-7
local WIDTHS = { 3, 300, 1500, 1600 } -- rows of a warp and of a block, adjacent and spread

describe("cross entropy on a GPU", function()
  on_gpu("keeps its bits when all logits get the same offset", function()
    extremes.check_offsets(DEVICE, WIDTHS)
  end)

  on_gpu("spreads the gradient evenly over equal logits of any size", function()
    extremes.check_all_equal(DEVICE, WIDTHS, BOUND, { 3e38, -1e30 })
  end)

  -- The gradient is rounded to bf16 (8 bits) and f16 (11 bits) on the way back.
  on_gpu("does so in halves", function()
    for _, width in ipairs(WIDTHS) do
      local case = { device = DEVICE, width = width, precision = "bf16", bound = 1 / 256 }
      for _, value in ipairs { 3e38, -1e30 } do extremes.check_equal(case, value) end
      case = { device = DEVICE, width = width, precision = "f16", bound = 1 / 2048 }
      for _, value in ipairs { 6e4, -6e4 } do extremes.check_equal(case, value) end
    end
  end)
end)

describe("layer norm on a GPU", function()
  on_gpu("normalises rows whose squares overflow", function()
    for _, width in ipairs(WIDTHS) do
      local case = { device = DEVICE, width = width, bound = 2e-6, most = 3e38 }
      for _, largest in ipairs { 1e18, 1e38, 3e38 } do extremes.check_normalised(case, largest) end
      case.precision, case.bound = "bf16", 1 / 64
      extremes.check_normalised(case, 3e38)
      case.dtype, case.precision, case.bound, case.most = "f64", nil, 1e-12, 1.7e308
      extremes.check_normalised(case, 1.7e308)
    end
  end)
end)
