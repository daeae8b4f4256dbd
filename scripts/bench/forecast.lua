-- scripts/bench/forecast.lua - the step time that gp.plan foresees from single layers, against the
-- step that then runs: a GPT, a ResNet and an AmoebaNet-D on two and four CPU devices.
--
-- predict.lua takes its costs from the step itself and asks how they fit together; here nothing of
-- the pipeline has run when the figure is made. Each device has one thread; on machines with fewer
-- cores than devices these share the cores, which is part of the forecast. Other programs are not:
-- they take their time from a single layer and from a whole step in another way.
--
-- Beside the three models stand some that the forecast was not made for.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure, build = require "figure", require "model"
local flags = require "gpipe.flags"
local gp = require "gpipe"

local opt = flags.parse("Compare the steps that gp.plan foresees with those that run.", {
  { "--rounds N", 3, "plans of each model; the median of their ratios counts" },
  { "--steps N", 8, "steps of each plan; the median counts" },
  { "--only NAME", "", "gpt, resnet, amoebanet, mlp, vgg or encoder" },
  { "--verbose", false, "print the plans" },
}, arg)

local BOUND = 1.1

-- ---- models -------------------------------------------------------------------------------------

local function mlp()
  local layers = {}
  for _ = 1, 8 do
    layers[#layers + 1] = gp.nn.Linear(512, 512)
    layers[#layers + 1] = gp.nn.ReLU()
  end
  layers[#layers + 1] = gp.nn.Linear(512, 10)
  return gp.nn.Sequential(layers)
end

-- Convolutions without batch norms, and a classifier with most of the parameters.
local function vgg()
  local layers, channels = {}, 3
  for _, wide in ipairs { 32, 64, 128, 256 } do
    for _ = 1, 2 do
      layers[#layers + 1] = gp.nn.Conv2d(channels, wide, 3, { padding = 1 })
      layers[#layers + 1] = gp.nn.ReLU()
      channels = wide
    end
    layers[#layers + 1] = gp.nn.MaxPool2d(2)
  end
  layers[#layers + 1] = gp.nn.Flatten()
  layers[#layers + 1] = gp.nn.Linear(256 * 4 * 4, 512)
  layers[#layers + 1] = gp.nn.ReLU()
  layers[#layers + 1] = gp.nn.Linear(512, 10)
  return gp.nn.Sequential(layers)
end

-- Blocks of a transformer as a vision transformer has them, without the patches.
local function encoder()
  local layers = {}
  for i = 1, 6 do
    layers[i] = gp.nn.Sequential {
      gp.nn.Residual(gp.nn.Sequential { gp.nn.LayerNorm(192), gp.nn.CausalSelfAttention(192, 3) }),
      gp.nn.Residual(gp.nn.Sequential { gp.nn.LayerNorm(192), gp.nn.Linear(192, 768),
        gp.nn.GELU(), gp.nn.Linear(768, 192) }),
    }
  end
  return gp.nn.Sequential(layers)
end

local cases = {
  { name = "gpt", batch = 32, loss = gp.nn.CrossEntropyLoss(),
    model = function() return build.gpt(build.quickstart) end,
    sample = function() return build.bytes(build.quickstart), build.bytes(build.quickstart) end },
  { name = "resnet", loss = gp.nn.CrossEntropyLoss(),
    model = function() return gp.models.resnet(18, { classes = 10 }) end,
    sample = function() return gp.randn { 16, 3, 64, 64 }, gp.randint(0, 10, { 16 }) end },
  { name = "amoebanet", loss = gp.nn.CrossEntropyLoss(),
    model = function() return gp.models.amoebanetd { layers = 3, filters = 64, classes = 10 } end,
    sample = function() return gp.randn { 8, 3, 224, 224 }, gp.randint(0, 10, { 8 }) end },
  { name = "mlp", loss = gp.nn.CrossEntropyLoss(), model = mlp,
    sample = function() return gp.randn { 256, 512 }, gp.randint(0, 10, { 256 }) end },
  { name = "vgg", loss = gp.nn.CrossEntropyLoss(), model = vgg,
    sample = function() return gp.randn { 16, 3, 64, 64 }, gp.randint(0, 10, { 16 }) end },
  { name = "encoder", loss = gp.nn.MSELoss(), model = encoder,
    sample = function() return gp.randn { 32, 64, 192 }, gp.randn { 32, 64, 192 } end },
}

-- ---- plans and steps -----------------------------------------------------------------------------

-- Seconds foreseen and seconds taken.
local function compare(case, devices)
  gp.seed(0)
  local model, list = case.model(), {}
  for d = 1, devices do list[d] = { "cpu:" .. d - 1, threads = 1 } end
  local x, y = case.sample()
  local plan = assert(gp.plan(model, { x, y }, { devices = list, loss = case.loss }))
  if opt.verbose then print(plan) end
  local pipe <close> = gp.pipeline(model, plan)
  local times = {}
  for i = -1, opt.steps do
    pipe:step(x, y)
    if i > 0 then times[i] = pipe.stats.seconds end
  end
  return plan.best.seconds, figure.median(times)
end

local function run(case, devices)
  local name, ratios = ("forecast.%d.%s"):format(devices, case.name), {}
  local foreseen, taken
  for round = 1, opt.rounds do
    foreseen, taken = compare(case, devices)
    ratios[round] = taken / foreseen
  end
  figure.print(name .. ".foreseen", 1e3 * foreseen, "ms")
  figure.print(name .. ".taken", 1e3 * taken, "ms")
  local ratio = figure.median(ratios)
  figure.print(name .. ".off", math.max(ratio, 1 / ratio), "x", "<=", BOUND)
end

for _, devices in ipairs { 2, 4 } do
  for _, case in ipairs(cases) do
    if opt.only ~= "" and opt.only ~= case.name then goto continue end
    run(case, devices)
    ::continue::
  end
end
