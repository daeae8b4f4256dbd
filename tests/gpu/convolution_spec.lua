-- tests/gpu/convolution_spec.lua - convolutions on GPUs: cuDNN computes them where it can, our own
-- kernels elsewhere; cuts change no bit, and results are near the CPU's.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local nn = gp.nn
local on_gpu = gpu.spec(it, pending)

-- ---- the model ----------------------------------------------------------------------------------

-- The layers are with and without bias, strided, grouped, depthwise, dilated, transposed, and
-- padded only at the end.
local function model_of()
  gp.seed(11)
  return nn.Sequential {
    nn.Conv2d(3, 8, 3, { padding = 1 }), nn.Tanh(),
    nn.Conv2d(8, 16, 3, { stride = 2, padding = 1, groups = 2, bias = false }),
    nn.BatchNorm2d(16),
    nn.Conv2d(16, 16, 2, { groups = 16, padding = { 0, 1, 0, 1 } }), nn.Tanh(),
    nn.ConvTranspose2d(16, 8, 2, { stride = 2 }),
    nn.Conv2d(8, 8, { 3, 1 }, { dilation = 2, padding = { 2, 0 } }),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
  }
end
local CUTS = { { 11 }, { 5, 6 }, { 1, 5, 5 } }

local setup = {
  model = model_of, loss = nn.MSELoss(), steps = 4,
  x = gp.randn({ 8, 3, 9, 9 }, { seed = 1 }), y = gp.randn({ 8, 4 }, { seed = 2 }),
}

local function train(devices, balance, precision)
  return training.run(setup, {
    devices = devices, balance = balance, precision = precision, chunks = 2,
    deferred_batch_norm = true,
  })
end

local function gpus(n)
  local list = {}
  for i = 1, n do list[i] = "cuda:0" end
  return list
end

-- ---- specs --------------------------------------------------------------------------------------

-- Bounds of losses and first gradients, relative, by the norm.
local NEAR_CPU = { f32 = 1e-4, tf32 = 1e-2, bf16 = 5e-2, f16 = 1e-2 }

describe("convolutions on a GPU", function()
  for _, precision in ipairs { "f32", "tf32", "bf16", "f16" } do
    on_gpu(("give the same bits over cuts in %s, near those of the CPU"):format(precision), function()
      local whole = train(gpus(1), CUTS[1], precision)
      for i = 2, #CUTS do
        assert.is_nil(training.difference(whole, train(gpus(#CUTS[i]), CUTS[i], precision)))
      end
      local cpu = train({ "cpu:0" }, CUTS[1])
      local far = synchronous.distance({ losses = whole.losses, state = whole.first },
        { losses = cpu.losses, state = cpu.first })
      assert.is_true(far < NEAR_CPU[precision], ("%g from the CPU"):format(far))
    end)
  end

  on_gpu("appear in describe with their paths", function()
    local pipe <close> = gp.pipeline(model_of(), { devices = gpus(1), loss = setup.loss })
    pipe:step(setup.x, setup.y)
    local found = {}
    for _, path in ipairs(pipe:describe().devices[1].paths) do
      if path.kind == "convolution" then
        found[path.shape] = path
        assert.is_true(path.path == "cuDNN" and path.why == nil or path.why:find "%S" ~= nil)
      end
    end
    for _, pass in ipairs { "map", "weight" } do
      assert.is_table(found[pass .. " f32 N=8 3x9x9 -> 8x9x9 K=3 S=1 G=1"
        .. (pass == "map" and " bias" or "")])
    end
    assert.is_table(found["image f32 N=8 8x10x10 -> 8x10x10 K=3x1 S=1 G=1"])
  end)
end)
