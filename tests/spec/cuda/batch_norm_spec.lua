-- tests/spec/cuda/batch_norm_spec.lua - norms in pipelines on GPUs: running statistics agree with
-- the CPU's, bits are the same for every cut, schedule and checkpoint mode, and statistics stay f32
-- in halves.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local residual = require "tests.support.residual"
local training = require "tests.support.training"

local nn = gp.nn
local on_gpu = gpu.spec(it)

local SETUP = {
  model = function()
    gp.seed(8)
    return nn.Sequential {
      nn.BatchNorm2d(3), nn.Conv2d(3, 5, 3, { bias = false }), nn.Sequential { nn.BatchNorm2d(5), nn.ReLU() },
      nn.Sequential { nn.GroupNorm(1, 5), nn.Flatten(), nn.RMSNorm(20) }, nn.Linear(20, 2),
    }
  end,
  x = gp.randn({ 13, 3, 4, 4 }, { seed = 41 }) + 10, y = gp.randn({ 13, 2 }, { seed = 42 }),
  loss = nn.MSELoss(), steps = 5, -- enough to be captured and replayed
}

local function run(options)
  local all = { chunks = 4, deferred_batch_norm = true }
  for key, value in pairs(options) do all[key] = value end
  return training.run(SETUP, all)
end

local CPU = { devices = { "cpu:0" } }

-- Compares only the norm that reads the data: what the others read has been trained with other
-- roundings.
local function near(a, b, bound)
  for name, value in pairs(b.state) do
    if name:find "^1%.running" then
      local off = ((a.state[name]:to "cpu" - value):abs() / (value:abs() + 1)):max():item()
      assert(off <= bound, ("%s: off by %g, allowed %g"):format(name, off, bound))
    end
  end
  assert.are.equal(5, a.state["1.num_batches_tracked"]:item())
end

describe("batch norm on a GPU", function()
  on_gpu("has the CPU's running statistics over whole mini-batches", function()
    near(run { devices = { "cuda:0" } }, run(CPU), 1e-5)
  end)

  on_gpu("keeps statistics in f32 beside halves", function()
    for _, precision in ipairs { "bf16", "f16" } do
      near(run { devices = { "cuda:0" }, precision = precision }, run(CPU), 2e-2)
    end
  end)

  on_gpu("has the same bits for every cut, schedule and checkpoint mode", function()
    local wanted = run { devices = { "cuda:0" }, checkpoint = "never" }
    for _, options in ipairs {
      { devices = { "cuda:0" }, checkpoint = "always" },
      { devices = { "cuda:0", "cuda:0" }, balance = { 2, 3 } },
      { devices = { "cuda:0", "cuda:0" }, balance = { 3, 2 }, schedule = "zb_h1" },
      { devices = { "cuda:0" }, balance = { 1, 4 }, schedule = "interleaved_1f1b" },
    } do assert.are.equal(nil, (training.difference(wanted, run(options)))) end
  end)

  -- Widths whose channels are moved by packs, and others.
  for _, precision in ipairs { "f32", "bf16", "f16" } do
    on_gpu("has the bits of single ops where ReLUs and sums are fused with it in " .. precision,
      function()
        for _, width in ipairs { 8, 5 } do
          local setup = {
            model = residual(width), x = gp.randn({ 7, 3, 4, 4 }, { seed = 3 }),
            y = gp.randn({ 7, 2 }, { seed = 4 }), loss = nn.MSELoss(), steps = 3,
          }
          local wanted
          for _, options in ipairs {
            { fuse = false }, {}, { checkpoint = "always" }, { balance = { 6, 8 } },
            { balance = { 12, 2 }, fuse = false },
          } do
            options.devices = options.balance and { "cuda:0", "cuda:0" } or { "cuda:0" }
            options.precision, options.chunks = precision, 3
            options.loss_scale = precision == "f16" and { initial = 8 } or nil
            local got = training.run(setup, options)
            wanted = wanted or got
            assert.are.equal(nil, (training.difference(wanted, got)))
          end
        end
      end)
  end
end)
