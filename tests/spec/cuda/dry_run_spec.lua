-- tests/spec/cuda/dry_run_spec.lua - a pipeline allocates on GPUs what gp.dry_run predicts.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local nn = gp.nn

local on_gpu = gpu.spec(it)

-- Extra bytes that the kernels of these models need on the plugin compiled for the host. Libraries
-- of GPUs need more, and a dry run only knows what it is told of them.
local OWN = { scratch = 256 }
local on_host = (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host" ~= nil

local function model()
  gp.seed(3)
  return nn.Sequential {
    nn.Linear(6, 23), nn.GELU "tanh", nn.LayerNorm(23), nn.Linear(23, 23), nn.Tanh(),
    nn.Linear(23, 3),
  }
end

local x, y = gp.ones { 8, 6 }, gp.ones { 8, 3 }

-- Returns the bytes that a step of a pipeline takes of each of its devices.
local function taken(options)
  local pipe <close> = gp.pipeline(model(), options)
  pipe:step(x, y)
  return pipe.stats.peak_bytes
end

local function planned(options, described)
  local dry = {}
  for key, value in pairs(options) do dry[key] = value end
  dry.devices, dry.sample = described, { x, y }
  return gp.dry_run(model(), dry):bytes()
end

for _, precision in ipairs { "f32", "bf16", "f16" } do
  local test = on_host and on_gpu or pending
  test("a dry run in " .. precision .. " counts the bytes that a pipeline takes", function()
    for _, schedule in ipairs { "gpipe", "1f1b" } do
      local options = { balance = { 3, 3 }, chunks = 2, schedule = schedule, loss = nn.MSELoss(),
        precision = precision, devices = { "cuda:0", "cuda:1" } }
      assert.are.same(taken(options), planned(options, { OWN, OWN }))
    end
    local options = { balance = { 6 }, chunks = 2, loss = nn.MSELoss(), precision = precision,
      devices = { "cuda:0" } }
    assert.are.same(taken(options), planned(options, { OWN }))
  end, 2)
end
