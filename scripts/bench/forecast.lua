-- scripts/bench/forecast.lua - the step time that gp.plan foresees from single layers, against the
-- step that then runs: a GPT, a ResNet and an AmoebaNet-D on two and four CPU devices.
--
-- predict.lua takes its costs from the step itself and asks how they fit together; here nothing of
-- the pipeline has run when the figure is made. Each device has one thread, so machines with fewer
-- cores than devices are left out: the plan takes it that every device has a core of its own.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure, build = require "figure", require "model"
local flags = require "gpipe.flags"
local gp = require "gpipe"

local opt = flags.parse("Compare the steps that gp.plan foresees with those that run.", {
  { "--rounds N", 3, "plans of each model; the median of their ratios counts" },
  { "--steps N", 8, "steps of each plan; the median counts" },
  { "--only NAME", "", "gpt, resnet or amoebanet" },
  { "--verbose", false, "print the plans" },
}, arg)

local BOUND = 1.1

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
}

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
    if gp.devices()[devices] and gp.devices()[devices].kind == "cpu" then
      run(case, devices)
    else
      figure.skip(("forecast.%d.%s"):format(devices, case.name), "fewer cores than devices")
    end
    ::continue::
  end
end
