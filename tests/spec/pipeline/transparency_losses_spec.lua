-- tests/spec/pipeline/transparency_losses_spec.lua - losses of every kind have the same bits for
-- every cut, and agree with the undivided batch's loss.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn
local C, V, ids, setup = models.C, models.V, models.ids, models.setup
local check_everywhere, regression, with = models.check_everywhere, models.regression, models.with

local CLOSE = {
  loss = 1e-5,                                     -- relative: sums of f32 in another order
  gradient = { relative = 1e-4, absolute = 1e-7 }, -- the same, for elements that nearly cancel
}

describe("the same bits, and the undivided batch's loss", function()
  local function check(made, chunks)
    made.steps = 2
    local run = check_everywhere(made, chunks or 3)
    local whole = training.run(made, { balance = { #made.model() }, chunks = 1 })
    assert.is_true(math.abs(run.losses[1] - whole.losses[1]) <=
      CLOSE.loss * math.abs(whole.losses[1]))
    local g = CLOSE.gradient
    assert.is_true(training.distance(run.first, whole.first, g.relative, g.absolute) <= 1)
    return run
  end

  it("with ignored ids, a different number in every micro-batch", function()
    local y = gp.tensor({ { 1, 2, 3 }, { -1, -1, 4 }, { -1, -1, -1 }, { 0, -1, 1 }, { 5, 5, 5 } },
      { dtype = "i64" })
    local made = setup { x = ids(5, 3), y = y, loss = nn.CrossEntropyLoss { ignore_index = -1 } }
    made.model = function()
      gp.seed(4)
      return nn.Sequential { nn.Embedding(V, C), nn.Tanh(), nn.LayerNorm(C), nn.Linear(C, V) }
    end
    check(made, 5)
  end)

  it("with nothing but ignored ids: loss 0 and gradients 0", function()
    local y = gp.full({ 5, 3 }, -1, { dtype = "i64" })
    local made = setup { x = ids(5, 3), y = y, loss = nn.CrossEntropyLoss { ignore_index = -1 },
      steps = 1 }
    local run = training.check_same(made, training.combinations { balance = { { 7 }, { 3, 4 } } })
    assert.equal(0, run.losses[1])
    for _, grad in pairs(run.first) do assert.is_true(gp.equal(grad, gp.zeros(grad.shape))) end
  end)

  it("with smoothed labels and u8 ids", function()
    check(setup { y = ids(7, 6):to("u8"), loss = nn.CrossEntropyLoss { label_smoothing = 0.1 } })
  end)

  it("with reduction sum", function()
    local mean = check(regression { model = with(nn.Tanh) })
    local sum = check(regression { model = with(nn.Tanh), loss = nn.MSELoss { reduction = "sum" } })
    assert.is_true(math.abs(sum.losses[1] - 21 * mean.losses[1]) < 1e-5 * sum.losses[1])
    check(setup { loss = nn.CrossEntropyLoss { reduction = "sum" } })
  end)

  it("with a function that returns sum and count", function()
    local named = check(regression { model = with(nn.Tanh) })
    local own = check(regression { model = with(nn.Tanh), loss = function(output, target)
      local gap = output - target
      return (gap * gap):sum(), output:numel()
    end })
    assert.is_true(math.abs(own.losses[1] - named.losses[1]) < 1e-6)
  end)

  it("with a function whose count depends on the target", function()
    check(regression { model = with(nn.Tanh), loss = function(output, target)
      local wanted = target:gt(0):to("f32")
      local gap = (output - target) * wanted
      return (gap * gap):sum(), wanted:sum()
    end })
  end)

  it("with a function that returns one scalar: the mean over its rows", function()
    local named = check(regression { model = with(nn.Tanh) })
    local own = check(regression { model = with(nn.Tanh), loss = function(output, target)
      local gap = output - target
      return (gap * gap):mean()
    end })
    assert.is_true(math.abs(own.losses[1] - named.losses[1]) < 1e-6)
  end)

  it("with a model that makes the loss itself, in a stage before the last", function()
    local Sum, Same = nn.class("Sum"), nn.class("Same")
    function Sum:forward(x) return (x * x):sum() end
    function Same:forward(x) return x end
    local made = regression { loss = function(output, target) return output,
      target:gt(0):to("i64"):sum() end }
    made.model = function() return nn.Sequential { with(nn.Tanh)(), Sum(), Same(),
      nn.Dropout(0) } end
    check(made)
  end)
end)
