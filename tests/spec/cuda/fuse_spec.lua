-- tests/spec/cuda/fuse_spec.lua - fused neighbours on a GPU give results near those of single ops.
--
-- Between cuts, schedules and checkpoint modes the bits stay the same (cuda_pipeline_spec,
-- cuda_precision_spec). Single ops round the value in between, and fused ones do not, so the two
-- are only near.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn

local on_gpu = gpu.spec(it)

-- Bounds of losses (relative) and first gradients (relative plus a tenth of it absolute) after
-- three steps.
local NEAR = {
  f32 = { 2e-5, 2e-3 }, -- sums of f32 in another order; Adam's first steps amplify small gradients
  f16 = { 2e-3, 1e-2 }, -- 11 bits of every value
  bf16 = { 1e-2, 6e-2 }, -- 8 bits
}

-- Widths that are multiples of eight, and others: a library computes GELU with a product only for
-- the former.
local function perceptron(width)
  return function()
    gp.seed(3)
    return nn.Sequential {
      nn.Linear(6, 8),
      nn.Residual(nn.Sequential { nn.LayerNorm(8), nn.Linear(8, width), nn.GELU("tanh"),
        nn.Linear(width, 8) }),
      nn.LayerNorm(8), nn.Linear(8, 3),
    }
  end
end

local SETUPS = {
  { "a perceptron of width 32", { model = perceptron(32) } },
  { "a perceptron of width 21", { model = perceptron(21) } },
}
for _, named in ipairs(SETUPS) do
  local setup = named[2]
  setup.x, setup.y, setup.loss, setup.steps = models.rows_of(7, 6), models.rows_of(7, 3),
    nn.MSELoss(), 3
end
SETUPS[3] = { "a small GPT", models.setup { steps = 3 } }

local function run(setup, precision, fuse)
  return training.run(setup,
    { devices = { "cuda:0" }, chunks = 3, precision = precision, fuse = fuse })
end

-- A product that takes a sum along adds it before its bias, where the single op adds it behind: by
-- that the losses of a GPT differ in their last digits, in f32 too. Without a bias it is one order.
local function residual()
  gp.seed(3)
  return nn.Sequential { nn.Residual(nn.Linear(6, 6, { bias = false })), nn.Linear(6, 3) }
end

describe("a sum that a product without a bias takes along on a GPU", function()
  on_gpu("has the bits of single ops in f32", function()
    local setup = { model = residual, x = models.rows_of(7, 6), y = models.rows_of(7, 3),
      loss = nn.MSELoss(), steps = 3 }
    local apart, fused = run(setup, "f32", false), run(setup, "f32")
    assert.same(apart.losses, fused.losses)
  end)
end)

for precision, bounds in pairs(NEAR) do
  describe("fused ops of a layer on a GPU in " .. precision, function()
    for _, named in ipairs(SETUPS) do
      on_gpu("are near single ops: " .. named[1], function()
        local apart, fused = run(named[2], precision, false), run(named[2], precision)
        for step, loss in ipairs(apart.losses) do
          assert(math.abs(fused.losses[step] - loss) <= bounds[1] * math.abs(loss),
            "loss of step " .. step)
        end
        local distance = training.distance(fused.first, apart.first, bounds[2], bounds[2] / 10)
        assert(distance <= 1, ("gradients are %.3g times as far as allowed"):format(distance))
      end)
    end

    on_gpu("have the same bits for every cut", function()
      local list = training.combinations { balance = { { 4 }, { 1, 3 }, { 2, 2 } },
        schedule = { "1f1b" } }
      for _, options in ipairs(list) do
        for s in ipairs(options.devices) do options.devices[s] = "cuda:0" end
        options.precision = precision
      end
      training.check_same(SETUPS[1][2], list)
    end)
  end)
end
