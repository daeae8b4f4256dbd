-- tests/spec/pipeline/outputs_spec.lua - models that return several values: forward returns them
-- all, and backward takes a gradient for each.
local gp = require "gpipe"
local fails_with = require "tests.support.expect".fails_with
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn
local model, x, seeds = models.heads()

local function pass(options)
  local pipe <close> = gp.pipeline(model(), options)
  local outputs = { pipe:forward(x) }
  pipe:backward(seeds)
  return outputs, training.gradients(pipe)
end

describe("a model of several outputs", function()
  it("gives all of them, in evaluation mode those of the eager model", function()
    local own = model()
    local pipe <close> = gp.pipeline(own, { balance = { 1, 3 }, chunks = 3 })
    local got = { pipe:eval():forward(x) }
    own:eval()
    local want = { own(x) }
    assert.same({ { 7, 3 }, { 14, 2 }, { 7 } }, { got[1].shape, got[2].shape, got[3].shape })
    assert.equal("i64", got[3].dtype)
    assert.is_true(training.distance({ got[1], got[2] }, { want[1], want[2] }, 1e-6, 1e-6) <= 1)
    assert.is_true(gp.equal(got[3], want[3]))
  end)

  it("adds the contributions of all gradients, as eager backward does", function()
    local own = model(0)
    local pipe <close> = gp.pipeline(model(0), { balance = { 2, 2 }, chunks = 2 })
    pipe:forward(x)
    pipe:backward(seeds)
    local a, b = own(x);
    ((a * seeds[1]):sum() + (b * seeds[2]):sum()):backward()
    local eager = training.gradients(own)
    assert.is_true(training.distance(training.gradients(pipe), eager, 1e-5, 1e-6) <= 1)
  end)

  it("has the same bits for every cut with the same chunks", function()
    local outputs, gradients = pass { chunks = 3 }
    for _, options in ipairs(training.combinations { balance = { { 4 }, { 2, 2 }, { 1, 1, 2 } },
      schedule = { "1f1b" } }) do
      options.chunks = 3
      local got, by = pass(options)
      assert.is_nil(training.differing(outputs, got))
      assert.is_nil(training.differing(gradients, by))
    end
  end)

  it("takes a list with a gradient for each, of its shape and type", function()
    local pipe <close> = gp.pipeline(model(), { chunks = 2 })
    pipe:forward(x)
    local given = seeds
    fails_with("backward: 1 gradients, expected 3: one per output", pipe.backward, pipe, given[1])
    fails_with("backward: the gradient is 2, expected a tensor", pipe.backward, pipe,
      { given[1], 2, given[3] })
    fails_with("backward: gradient 2 is f32 7x3, expected f32 14x2", pipe.backward, pipe,
      { given[1], given[1], given[3] })
    fails_with("backward: gradient 3 is f32 7x3, expected i64 7", pipe.backward, pipe,
      { given[1], given[2], given[1] })
    pipe:backward(given) -- a refused call has no effect
  end)

  it("may have eight, each a tensor", function()
    local function of(forward)
      local Made = nn.class("Made")
      Made.forward = forward
      return gp.pipeline(nn.Sequential { Made() }, { chunks = 1 })
    end
    local nine <close> = of(function(_, v) return v, v, v, v, v, v, v, v, v end)
    fails_with("the model returns 9 values, expected at most 8", nine.forward, nine, x)
    local number <close> = of(function(_, v) return v, 5 end)
    assert.is_false(pcall(number.forward, number, x))
    local twice <close> = of(function(_, v) return v * 2, v end)
    local a, b = twice:forward(x)
    assert.is_true(gp.equal(a, b * 2) and gp.equal(b, x))
  end)
end)
