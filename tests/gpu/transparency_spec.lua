-- tests/gpu/transparency_spec.lua - a pipeline on GPUs changes no bit: any cut, schedule,
-- checkpoint mode, placement.
--
-- It tests DESIGN section 8, D1 D3 D4, with ==. The comparison with the CPU has a tolerance,
-- because nothing else is promised.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local placements = require "tests.support.placements"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local nn = gp.nn
local on_gpu = gpu.spec(it, pending)

-- The bound of the first step's gradients and of all losses, by the norm: f32 sums in other orders.
-- Parameters are not compared, because Adam makes full-size steps from gradients that are 0 except
-- for rounding (those of keys' biases, for example).
local NEAR_CPU = 1e-4

local function distance_from(wanted, run)
  return synchronous.distance({ losses = run.losses, state = run.first },
    { losses = wanted.losses, state = wanted.first })
end

-- ---- the models ---------------------------------------------------------------------------------

-- An embedding, dropout, attention, residuals: seven layers.
local function gpt() return models.setup { steps = 4 }, models.CUTS end

-- Dropout between linear layers.
local function mlp()
  return models.regression {
    model = models.with(function() return nn.Dropout(0.3) end,
      function() return nn.Linear(8, 8) end, nn.ReLU,
      function() return nn.Dropout(0.1) end),
  }, { { 7 }, { 3, 4 }, { 1, 1, 5 }, { 2, 2, 2, 1 } }
end

-- Widths whose lengths are no multiple of what one access moves: arrays of parameters end in a
-- remainder, and the cut decides which of them are updated together.
local function odd()
  local function linear(n, m) return function() return nn.Linear(n, m) end end
  return models.regression {
    model = models.with(linear(8, 7), nn.Tanh, linear(7, 5), nn.SiLU, linear(5, 8)),
  }, { { 8 }, { 3, 5 }, { 1, 2, 5 }, { 2, 1, 2, 3 } }
end

-- Every kernel of a language model runs on rows that accesses of 16 bytes do not divide.
local function odd_gpt()
  return models.setup {
    steps = 2, model = function()
      gp.seed(7)
      return nn.Sequential {
        nn.Embedding(models.V, 15),
        nn.Residual(nn.Sequential { nn.LayerNorm(15), nn.CausalSelfAttention(15, 3) }),
        nn.Residual(nn.Sequential { nn.LayerNorm(15), nn.Linear(15, 21), nn.GELU("tanh"),
          nn.Linear(21, 15) }),
        nn.Dropout(0.2), nn.LayerNorm(15), nn.Linear(15, models.V),
      }
    end,
  }, { { 6 }, { 1, 2, 3 } }
end

-- The last layer reads a value from the first; some biases are frozen.
local function skip()
  return synchronous.regression { steps = 3 }, { { 8 }, { 4, 4 }, { 1, 5, 2 }, { 2, 2, 2, 2 } }
end

-- One weight is shared by layers 1, 4 and 7.
local function tied()
  local made = synchronous.tied()
  made.steps = 3
  return made, { { 8 }, { 4, 4 }, { 2, 3, 3 }, { 2, 2, 2, 2 } }
end

-- forward writes buffers.
local function centred()
  return synchronous.centred(), { { 8 }, { 2, 6 }, { 3, 3, 2 }, { 2, 2, 2, 2 } }
end

-- The loss does not count some of the ids.
local function language() return synchronous.language(), { { 8 }, { 4, 4 }, { 2, 2, 2, 2 } } end

-- The first layers have nothing to learn.
local function frozen() return synchronous.frozen(), { { 8 }, { 3, 5 }, { 1, 1, 3, 3 } } end

-- Chains of elementwise ops between permuted views.
local function permuting()
  local made = models.regression { model = models.permuting(), steps = 2 }
  return made, { { 12 }, { 3, 9 }, { 2, 4, 6 }, { 3, 2, 3, 4 } }
end

local MODELS = {
  gpt = gpt, mlp = mlp, odd = odd, skip = skip, tied = tied, centred = centred, language = language,
  frozen = frozen, permuting = permuting,
}
local ORDER = {
  "gpt", "mlp", "odd", "skip", "tied", "centred", "language", "frozen", "permuting",
}

-- ---- the same bits ------------------------------------------------------------------------------

-- Checks every cut on every placement of GPUs of one size; whole models have one device.
local function check_everywhere(made, cuts, checkpoint, chunks, precision)
  for _, names in ipairs(placements.sizes()) do
    local list = {}
    for _, options in ipairs(training.combinations {
      balance = cuts, schedule = { "1f1b" }, checkpoint = { checkpoint }, chunks = chunks,
    }) do
      options.precision = precision
      table.move(placements.each(names, options), 1, #names, #list + 1, list)
    end
    training.check_same(made, list)
  end
end

describe("on GPUs the bits are the same", function()
  for _, name in ipairs(ORDER) do
    on_gpu("wherever the model is cut: " .. name, function()
      local made, cuts = MODELS[name]()
      check_everywhere(made, cuts, "except_last")
    end)

    on_gpu("for every checkpoint mode and schedule: " .. name, function()
      local made, cuts = MODELS[name]()
      local list = training.combinations { balance = { cuts[#cuts] } }
      for _, options in ipairs(list) do
        options.devices = placements.devices("same", #cuts[#cuts])
      end
      training.check_same(made, list)
    end)
  end

  for _, precision in ipairs { "f32", "bf16", "f16" } do
    on_gpu("of odd widths, in " .. precision, function()
      local made, cuts = odd_gpt()
      check_everywhere(made, cuts, "except_last", 3, precision)
    end)
  end

  on_gpu("in f64", function()
    check_everywhere(models.setup { model = models.gpt "f64" }, models.CUTS, "always")
  end)

  on_gpu("where micro-batches do not divide the rows of the batch", function()
    for _, case in ipairs { { 1, 4 }, { 5, 4 }, { 9, 4 }, { 13, 5 } } do
      check_everywhere(models.setup { x = models.ids(case[1], 6), y = models.ids(case[1], 6) },
        { { 7 }, { 3, 4 } }, "except_last", case[2])
    end
  end)

  on_gpu("when batches of several shapes take turns, and with them plans and graphs", function()
    local function run(devices, balance)
      local pipe <close> = gp.pipeline(models.gpt()(), {
        balance = balance, devices = devices, chunks = 2, loss = nn.CrossEntropyLoss(), seed = 5,
      })
      local opt, losses = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }), {}
      for step = 1, 12 do
        local rows = ({ 4, 5, 2 })[step % 3 + 1]
        losses[step] = pipe:step(models.ids(rows, 6), models.ids(rows, 6))
        opt:step()
      end
      return losses
    end
    assert.same(run({ "cuda:0" }, { 7 }), run({ "cuda:0", "cuda:0" }, { 3, 4 }))
  end)
end)

-- ---- how the update is made ---------------------------------------------------------------------

describe("updates on GPUs", function()
  for title, use in pairs { ["an action"] = {},
    ["an action without a barrier"] = { barrier = false } } do
    on_gpu("give the bits of opt:step() with " .. title, function()
      local made, cuts = skip()
      for _, names in ipairs(placements.sizes()) do
        local whole = placements.each(names, { balance = cuts[1], chunks = 3 })[1]
        local wanted = synchronous.run(made, whole, false)
        for _, cut in ipairs(cuts) do
          for _, options in ipairs(placements.each(names,
            { balance = cut, chunks = 3, schedule = "1f1b" })) do
            assert.is_nil(training.difference(wanted, synchronous.run(made, options, use)))
          end
        end
      end
    end)
  end

  on_gpu("with clipping give the same bits for every cut", function()
    local made, cuts = skip()
    local function run(options) return synchronous.run(made, options, { clip_norm = 0.05 }) end
    for _, names in ipairs(placements.sizes()) do
      local wanted = run(placements.each(names, { balance = cuts[1], chunks = 3 })[1])
      for _, cut in ipairs(cuts) do
        for _, options in ipairs(placements.each(names, { balance = cut, chunks = 3 })) do
          assert.is_nil(training.difference(wanted, run(options)))
        end
      end
    end
  end)
end)

-- ---- against the CPU ----------------------------------------------------------------------------

describe("what a GPU computes is near what the CPU does", function()
  for _, name in ipairs(ORDER) do
    on_gpu("for " .. name, function()
      local made, cuts = MODELS[name]()
      local options = { balance = cuts[2], chunks = 3, devices = { "cpu:0", "cpu:1" } }
      local wanted = training.run(made, options)
      options.devices = { "cuda:0", "cuda:0" }
      assert.is_true(distance_from(wanted, training.run(made, options)) < NEAR_CPU)
    end)
  end
end)

describe("stages on CPUs and GPUs in turn", function()
  for _, name in ipairs(ORDER) do
    on_gpu("train twice to the same bits, near the CPU's: " .. name, function()
      local made, cuts = MODELS[name]()
      local options = { balance = cuts[#cuts], chunks = 3, schedule = "1f1b" }
      options.devices = placements.devices("cpu", #options.balance)
      local wanted = training.run(made, options)
      options.devices = placements.devices("mixed", #options.balance)
      local run = training.run(made, options)
      assert.is_nil(training.difference(run, training.run(made, options)))
      assert.is_true(distance_from(wanted, run) < NEAR_CPU)
    end)
  end

  on_gpu("have the same bits for every schedule and checkpoint mode", function()
    local made, cuts = skip()
    local list = training.combinations { balance = { cuts[#cuts] } }
    for _, options in ipairs(list) do options.devices = placements.devices("mixed", 4) end
    training.check_same(made, list)
  end)
end)
