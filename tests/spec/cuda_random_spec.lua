-- tests/spec/cuda_random_spec.lua - random numbers of a pipeline on GPUs, see random_spec.lua.

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
