-- scripts/bench/profile.lua - whether the times of layers add up to those of a step, and what a
-- balance costs to find.
--
-- gp.profile and a pipeline of one stage take turns on one thread; the sum of forward and backward
-- over all layers is compared with the measured forward and backward of the stage. The cut
-- of 10,000 layers into 1,024 stages is timed alone.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure, model = require "figure", require "model"
local flags = require "gpipe.flags"
local partition = require "gpipe.pipeline.plan.partition"
local nn = gp.nn

local opt = flags.parse("Compare profiles of layers with measured steps.", {
  { "--rounds N", 7, "turns" }, { "--steps N", 3, "steps in a turn" },
  { "--layers N", 4, "blocks of the GPT" }, { "--width N", 192, "its width" },
  { "--heads N", 6, "its heads" }, { "--context N", 64, "tokens in a sequence" },
  { "--batch N", 4, "sequences in a step" },
}, arg)
gp.seed(0)

local BOUND = 1.1
local DEVICE = { "cpu:0", threads = 1 }

-- ---- times --------------------------------------------------------------------------------------

local function sum_of(profile)
  local sum = 0
  for _, l in ipairs(profile.layers) do sum = sum + l.forward + l.backward end
  return sum
end

-- Seconds of forward and backward in a step, the median of some.
local function step_of(pipe, x, y)
  local times = {}
  for i = 1, opt.steps do
    pipe:step(x, y)
    times[i] = 0
    for _, event in ipairs(pipe:timeline()[1]) do
      if event.op == "F" or event.op == "B" then
        times[i] = times[i] + event.finish - event.begin
      end
    end
  end
  return figure.median(times)
end

local function compare(name, network, x, y)
  local loss = nn.CrossEntropyLoss()
  local pipe <close> = gp.pipeline(network, {
    balance = { #network }, devices = { DEVICE }, checkpoint = "never", loss = loss,
  })
  for _ = 1, 3 do pipe:step(x, y) end
  local times = figure.alternate(opt.rounds, {
    layers = function()
      return sum_of(gp.profile(network, { x, y }, { loss = loss, device = DEVICE,
        repeats = opt.steps }))
    end,
    step = function() return step_of(pipe, x, y) end,
  }, { "layers", "step" })
  local ratio = figure.median(figure.ratios(times.layers, times.step))
  figure.print("profile." .. name, math.max(ratio, 1 / ratio), "x apart from the step", "<=", BOUND)
end

local ids = model.bytes(opt)
compare("gpt", model.gpt(opt), ids, ids)
compare("mlp", nn.Sequential {
  nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10),
}, gp.randn { 64, 256 }, gp.randint(0, 10, { 64 }))
compare("resnet", gp.models.resnet(18, { classes = 10 }):flatten(), gp.randn { 4, 3, 64, 64 },
  gp.randint(0, 10, { 4 }))

-- ---- cuts ---------------------------------------------------------------------------------------

local costs, comm = gp.rand({ 10000 }, { seed = 1 }):totable(), {}
for i = 1, #costs - 1 do comm[i] = costs[i] / 10 end
figure.print("profile.cut", 1e3 * figure.seconds(function()
  partition.minimax("bench", costs, 1024)
end), "ms for 10,000 layers over 1,024 stages", "<=", 1000)
figure.print("profile.cut_comm", 1e3 * figure.seconds(function()
  partition.minimax("bench", costs, 1024, { comm = comm })
end), "ms with costs of cuts", "<=", 10000)
