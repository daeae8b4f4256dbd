-- tests/spec/random_spec.lua - random numbers of a pipeline: micro-batches have their own, cuts change none.

local drawn = require "tests.support.drawn"
local training = require "tests.support.training"

local DEVICE = "cpu:0"

describe("dropout of attention whose first dimension is not the rows of the batch", function()
  it("differs between micro-batches", function() drawn.check_apart(DEVICE) end)

  it("is the same over every cut", function()
    training.check_same(drawn.folded(), drawn.pipelines(4, DEVICE))
  end)
end)
