-- tests/spec/pipeline/transparency_spec.lua - a pipeline changes no bit: any cut, schedule,
-- checkpoint, number of threads.
--
-- It tests DESIGN section 8, D1 D3 D4. Every comparison is ==, except the one with an undivided
-- batch, whose sums are added in another order.
local gp = require "gpipe"
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn
local C, V, CUTS, ids, setup = models.C, models.V, models.CUTS, models.ids, models.setup

local CLOSE = {
  loss = 1e-5,                                     -- relative: sums of f32 in another order
  gradient = { relative = 1e-4, absolute = 1e-7 }, -- the same, for elements that nearly cancel
}

-- ---- the promise -------------------------------------------------------------------------------

describe("20 steps with dropout, a custom module, residuals, attention and an embedding", function()
  it("give the same bits for 1 to 4 stages, every schedule, checkpoint mode and number of threads",
    function()
    local list = training.combinations { balance = CUTS, threads = { 1, 2, 3 } }
    assert.equal(108, #list)
    local run = training.check_same(setup { steps = 20 }, list)
    assert.is_true(run.losses[20] < run.losses[1] / 2) -- it learned: zeros would be equal too
  end)

  it("give the same bits wherever the model is cut", function()
    local cuts = {}
    for first = 1, 6 do cuts[#cuts + 1] = { first, 7 - first } end
    for first = 1, 5 do cuts[#cuts + 1] = { first, 1, 6 - first } end
    training.check_same(setup { steps = 4 }, training.combinations {
      balance = cuts, schedule = { "1f1b" }, checkpoint = { "except_last" },
    })
  end)

  it("give the same bits on more devices than there are cores", function()
    local deep = function()
      gp.seed(9)
      local layers = { nn.Embedding(V, C) }
      for i = 2, 9 do
        layers[i] = nn.Residual(nn.Sequential { nn.LayerNorm(C), nn.Linear(C, C), nn.Tanh() })
      end
      layers[10] = nn.Linear(C, V)
      return nn.Sequential(layers)
    end
    training.check_same(setup { model = deep }, training.combinations {
      balance = { { 10 }, { 1, 1, 1, 1, 1, 1, 2, 2 }, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } },
      threads = { 1, 2 },
      schedule = { "gpipe", "1f1b" }, checkpoint = { "except_last" }, chunks = 5,
    })
  end)

  it("give the same bits when two stages share a device name", function()
    local list = training.combinations { balance = { { 7 }, { 3, 4 } }, checkpoint = { "never" } }
    for _, options in ipairs(list) do options.devices = { "cpu:0", "cpu:0" } end
    for _, options in ipairs(list) do options.devices[#options.balance + 1] = nil end
    training.check_same(setup(), list)
  end)
end)

describe("batches that micro-batches do not divide", function()
  for _, case in ipairs { { 1, 1 }, { 1, 4 }, { 2, 4 }, { 5, 4 }, { 7, 4 }, { 9, 4 }, { 13, 5 },
    { 16, 10 } } do
    local rows, chunks = case[1], case[2]
    it(("give the same bits: %d rows in %d chunks"):format(rows, chunks), function()
      training.check_same(setup { x = ids(rows, 3), y = ids(rows, 3) }, training.combinations {
        balance = CUTS, schedule = { "gpipe", "1f1b" }, checkpoint = { "always", "except_last" },
        chunks = chunks,
      })
    end)

    it(("agree with the undivided batch: %d rows in %d chunks"):format(rows, chunks), function()
      local one = setup { x = ids(rows, 3), y = ids(rows, 3), steps = 1 }
      local whole = training.run(one, { balance = { 7 }, chunks = 1 })
      local parts = training.run(one, { balance = { 2, 3, 2 }, chunks = chunks })
      assert.is_true(math.abs(parts.losses[1] - whole.losses[1]) <= CLOSE.loss * whole.losses[1])
      local g = CLOSE.gradient
      assert.is_true(training.distance(parts.first, whole.first, g.relative, g.absolute) <= 1)
    end)
  end
end)

describe("gradients", function()
  it("are added over steps on request, with the same bits for every cut", function()
    local made, results = setup(), {}
    for i, balance in ipairs(CUTS) do
      local pipe <close> = gp.pipeline(made.model(),
        { balance = { table.unpack(balance) }, chunks = 3,
        loss = made.loss, seed = 5 })
      pipe:step(made.x, made.y)
      pipe:evaluate(made.x, made.y)
      pipe:step(made.x, made.y, { accumulate = true })
      results[i] = { losses = {}, first = {}, state = {}, gradients = training.gradients(pipe) }
      assert.is_nil(training.difference(results[1], results[i]))
    end
  end)
end)
