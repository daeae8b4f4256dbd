-- tests/spec/cuda/random_spec.lua - random numbers of a pipeline on GPUs, see random_spec.lua.

local gp = require "gpipe"
local drawn = require "tests.support.drawn"
local gpu = require "tests.support.gpu"
local training = require "tests.support.training"

local DEVICE = "cuda:0"
local on_gpu = gpu.spec(it)

describe("dropout of attention whose first dimension is not the rows of the batch", function()
  on_gpu("differs between micro-batches", function() drawn.check_apart(DEVICE) end)

  on_gpu("is the same over every cut", function()
    training.check_same(drawn.folded(), drawn.pipelines(4, DEVICE))
  end)
end)

describe("what forward draws on a GPU", function()
  on_gpu("is the same over every cut, recomputed or not", function()
    training.check_same(drawn.noisy(), drawn.pipelines(5, DEVICE))
  end)

  on_gpu("has the bits of the CPU", function()
    for _, draw in ipairs { gp.rand, gp.randn } do
      for _, dtype in ipairs { "f32", "f64" } do
        local function typed(shape) return draw(shape, { dtype = dtype }) end
        local o = { rows = 11, columns = 37, steps = 2, dtype = dtype }
        local here = drawn.values(typed, o, { chunks = 3 })
        local there = drawn.values(typed, o, { chunks = 4, devices = { DEVICE } })
        for step = 1, 2 do assert(gp.equal(here[step], there[step])) end
      end
    end
  end)

  on_gpu("is read as a half beside halves", function()
    local o = { rows = 4, columns = 40 }
    local wide = drawn.values(gp.randn, o, { devices = { DEVICE } })[1]
    local half = drawn.values(gp.randn, o, { devices = { DEVICE }, precision = "bf16" })[1]
    assert(gp.equal(wide:to("bf16"):to("f32"), half:to("f32")))
  end)
end)
