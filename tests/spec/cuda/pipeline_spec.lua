-- tests/spec/cuda/pipeline_spec.lua - pipelines on GPUs give the same bits for every cut, and are
-- close to the CPU.
--
-- It tests DESIGN section 8, D1 D3 D4, with stages on GPUs of their own, on one GPU, and beside a
-- CPU. Where all stages are on GPUs every comparison is ==.

local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"

local on_gpu = gpu.spec(it)
local CUTS, setup = models.CUTS, models.setup

local CLOSE = {
  -- relative: f32 sums in another order, three updates
  loss = 2e-5,
  -- the same; Adam's first steps amplify small gradients
  gradient = { relative = 2e-3, absolute = 2e-5 },
}

-- Places stage s on GPU s, on GPU s modulo 2, or all stages on the first.
local PLACES = {
  own = function(s) return "cuda:" .. s % gpu.count() end,
  one = function() return "cuda:0" end,
}

-- Returns the list with its devices replaced.
local function placed(list, place)
  for _, options in ipairs(list) do
    for s in ipairs(options.devices) do options.devices[s] = PLACES[place](s - 1) end
  end
  return list
end

-- ---- transparency ------------------------------------------------------------------------------

describe("a model with dropout, attention and an embedding", function()
  on_gpu("has the same bits for 1 to 4 stages, every schedule and checkpoint mode", function()
    local apart = placed(training.combinations { balance = CUTS }, "own")
    local together = placed(training.combinations { balance = CUTS, schedule = { "1f1b" } }, "one")
    local run = training.check_same(setup { steps = 3 },
      table.move(together, 1, #together, #apart + 1, apart))
    assert.is_true(run.losses[3] < run.losses[1])
  end)

  on_gpu("has the bits of f64 on the GPU for every cut too", function()
    training.check_same(setup { model = models.gpt "f64", steps = 2 },
      placed(training.combinations {
      balance = CUTS, schedule = { "1f1b" }, checkpoint = { "except_last" },
    }, "own"))
  end)

  for _, rows in ipairs { 1, 5, 9 } do
    on_gpu(("has the same bits where chunks differ in size: %d rows"):format(rows), function()
      local made = setup { x = models.ids(rows, 3), y = models.ids(rows, 3), steps = 2 }
      training.check_same(made, placed(training.combinations {
        balance = CUTS, schedule = { "1f1b" }, checkpoint = { "always", "except_last" }, chunks = 4,
      }, "own"))
    end)
  end
end)

-- Returns GPUs for a pipeline of so many stages, in turn.
local function in_turn(stages)
  local list = {}
  for s = 1, stages do list[s] = PLACES.own(s - 1) end
  return list
end

-- Runs a schedule on so many stages, with each way to update. `wanted` may be nil: the first run
-- makes it. Returns it.
local function check_stages(made, case, stages, wanted)
  for _, how in ipairs { "step", "use", not synchronous.COPIES[case[1]] and "free" or nil } do
    local run = synchronous.run(made, {
      balance = synchronous.cut(made.layers, stages), chunks = 4,
      schedule = synchronous.schedule(case),
      devices = in_turn(stages),
    }, synchronous.UPDATES[how])
    wanted = wanted or run
    assert.is_nil(training.difference(wanted, run))
  end
  return wanted
end

-- Checks that a schedule has the bits of one stage; schedules with two copies of the weights have
-- bits of their own for any number of stages.
local function check_schedule(case)
  local made, ran = synchronous.regression { steps = 3, rows = 11 }, 0
  local wanted = not synchronous.COPIES[case[1]]
    and synchronous.run(made, { chunks = 4, schedule = "naive", devices = in_turn(1) })
  for _, stages in ipairs { 2, 4 } do
    if synchronous.is_defined(case, stages, 4) then
      wanted, ran = check_stages(made, case, stages, wanted), ran + 1
    end
  end
  assert.is_true(ran > 0)
end

describe("a schedule on GPUs has the bits of one stage:", function()
  for _, case in ipairs(synchronous.CASES) do
    on_gpu(synchronous.title(case), function() check_schedule(case) end)
  end
end)

-- ---- beside the CPU ----------------------------------------------------------------------------

local function check_close(run, want)
  for step, loss in ipairs(want.losses) do
    assert.is_true(math.abs(run.losses[step] - loss) <= CLOSE.loss * loss, "loss of step " .. step)
  end
  local g = CLOSE.gradient
  assert.is_true(training.distance(run.first, want.first, g.relative, g.absolute) <= 1, "gradients")
end

describe("training on a GPU", function()
  for _, devices in ipairs { { "cuda:0", "cuda:0" }, { "cpu:0", "cuda:0" },
    { "cuda:0", "cpu:0" } } do
    on_gpu("agrees with the CPU: " .. table.concat(devices, ", "), function()
      local options = { balance = { 3, 4 }, chunks = 3 }
      local want = training.run(setup(),
        { balance = { 3, 4 }, chunks = 3, devices = { "cpu:0", "cpu:1" } })
      options.devices = devices
      check_close(training.run(setup(), options), want)
    end)
  end
end)
