-- tests/gpu/links_spec.lua - values that cross between devices reach every reader, whole.
--
-- Several logical devices of one GPU, and CPU devices, read what another device makes. With two
-- copies of the weights the makers take turns.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local nn = gp.nn
local on_gpu = gpu.spec(it, pending)

-- ---- the models ---------------------------------------------------------------------------------

local WIDTH = 48

-- Eight layers; all but the first read what the first made.
local function fan()
  gp.seed(3)
  local kept
  local Keep, Add = nn.class("Keep"), nn.class("Add")
  function Keep.forward(_, x) kept = x return x end
  function Add.forward(_, x) return x + kept * 0.5 end
  local layers = { nn.Sequential { nn.Linear(5, WIDTH), nn.Tanh(), Keep() } }
  for i = 2, 7 do layers[i] = nn.Sequential { nn.Linear(WIDTH, WIDTH), nn.Tanh(), Add() } end
  layers[8] = nn.Sequential { Add(), nn.Linear(WIDTH, 3) }
  return nn.Sequential(layers)
end

-- Eight layers; each of the last four has a weight of one of the first four.
local function borrowing()
  gp.seed(4)
  local layers = {}
  for i = 1, 8 do layers[i] = nn.Sequential { nn.Linear(WIDTH, WIDTH), nn.Tanh() } end
  for i = 5, 8 do layers[i][1].weight = layers[i - 4][1].weight end
  return nn.Sequential(layers)
end

local function borrowed()
  return synchronous.regression {
    steps = 4, model = borrowing, x = gp.randn({ 19, WIDTH }, { seed = 1 }),
    y = gp.randn({ 19, WIDTH }, { seed = 2 }),
  }
end

local function run(made, devices, schedule, stages)
  stages = stages or #devices
  return synchronous.run(made, {
    balance = synchronous.cut(8, stages), devices = devices, chunks = 8, schedule = schedule,
  }, {})
end

-- ---- which device reads what --------------------------------------------------------------------

local ON_TWO = {
  { "cuda:1", "cuda:0", "cuda:0" },
  { "cuda:0", "cuda:1", "cuda:1", "cuda:1" },
  { "cuda:1", "cuda:0", "cuda:1", "cuda:0" },
}
local MIXED = {
  { "cuda:0", "cpu:0", "cpu:1", "cpu:2" },
  { "cpu:0", "cuda:0", "cuda:0", "cpu:1" },
}

describe("a value that every stage reads", function()
  local made = synchronous.regression { steps = 4, rows = 40, model = fan }

  for _, devices in ipairs(ON_TWO) do
    on_gpu("gives the bits of one stage on " .. table.concat(devices, ", "), function()
      local wanted = run(made, { "cuda:0" }, "gpipe")
      for _, schedule in ipairs { "gpipe", "1f1b" } do
        assert.is_nil(training.difference(wanted, run(made, devices, schedule)))
      end
      assert.is_nil(training.difference(wanted,
        run(made, devices, "interleaved_1f1b", 2 * #devices)))
    end, 2)
  end

  for _, devices in ipairs(MIXED) do
    on_gpu("gives the same bits every time on " .. table.concat(devices, ", "), function()
      local wanted = run(made, devices, "gpipe")
      for _ = 1, 3 do assert.is_nil(training.difference(wanted, run(made, devices, "1f1b"))) end
    end)
  end
end)

describe("weights of a GPU that several CPU devices read", function()
  on_gpu("reach each of them whole", function()
    local made, devices = borrowed(), { "cuda:0", "cuda:0", "cpu:0", "cpu:1" }
    local wanted = run(made, devices, "gpipe")
    for _ = 1, 4 do assert.is_nil(training.difference(wanted, run(made, devices, "1f1b"))) end
    assert.is_true(synchronous.distance(run(made, { "cpu:0" }, "gpipe"), wanted) < 1e-3)
  end)
end)

-- ---- makers that take turns ---------------------------------------------------------------------

describe("two copies of the weights", function()
  for _, devices in ipairs {
    { "cuda:0", "cpu:0", "cuda:1", "cpu:1" }, { "cuda:0", "cuda:1", "cpu:0", "cpu:1" },
    { "cpu:0", "cuda:1", "cuda:0", "cuda:1" }, { "cuda:0", "cuda:1", "cuda:1", "cuda:0" },
  } do
    on_gpu("train on " .. table.concat(devices, ", "), function()
      local made = synchronous.regression { steps = 4 }
      local wanted = run(made, devices, "dualpipe")
      assert.is_nil(training.difference(wanted, run(made, devices, "chimera")))
      assert.is_true(synchronous.distance(run(made, { "cpu:0" }, "gpipe"), wanted) < 1e-3)
    end, 2)
  end
end)
