-- scripts/bench/resnet.lua - images per second of ResNet-50: the peers' model, built with gpipe.
--
--   gpipe-lua scripts/bench/resnet.lua [--threads N] [--steps N] [--batch N]
-- Prints one line: the median over the steps after two of warm-up.
package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local gp = require "gpipe"
local figure = require "figure"
local flags = require "gpipe.flags"

local opt = flags.parse("Time a training step of ResNet-50 on 224 x 224 images.", {
  { "--threads N", 2, "threads of the device" }, { "--steps N", 6, "timed steps" },
  { "--batch N", 8, "images in a step" },
}, arg)
gp.seed(0)

local pipe <close> = gp.pipeline(gp.models.resnet(50), {
  devices = { { "cpu:0", threads = opt.threads } }, checkpoint = "never",
  loss = gp.nn.CrossEntropyLoss(),
})
pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1, momentum = 0.9 }))
local images = gp.randn { opt.batch, 3, 224, 224 }
local classes = gp.randint(0, 1000, { opt.batch })

local times = {}
for i = -1, opt.steps do
  local seconds = figure.seconds(function() pipe:step(images, classes) end)
  if i > 0 then times[#times + 1] = seconds end
end
local step = figure.median(times)
print(("resnet50 f32 threads=%d step=%.0fms img/s=%.2f"):format(opt.threads, step * 1e3,
  opt.batch / step))
