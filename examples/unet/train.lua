-- examples/unet/train.lua - a U-Net that finds shapes in images, over four devices: its skips go
-- straight from the stage that makes them to the stage that joins them.
--
--   gpipe-lua examples/unet/train.lua --synthetic           under a minute on two cores
--   gpipe-lua examples/unet/train.lua --images x.npy --masks y.npy --channels 64 --convs 5
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train a U-Net over several devices.", {
  { "--images FILE", nil, "f32 [N, 3, H, W], written by numpy.save" },
  { "--masks FILE", nil, "f32 or u8 [N, 1, H, W] of 0 and 1" },
  { "--synthetic", false, "generated discs instead" },
  { "--size N", 64, "pixels of a side of generated images" },
  { "--depth N", 5, "levels" },
  { "--convs N", 1, "convolutions in a cell (5 in torchgpipe's benchmark)" },
  { "--channels N", 8, "channels of the outermost level (64 in torchgpipe's benchmark)" },
  { "--steps N", 60, "training steps" },
  { "--batch N", 16, "images in a step" },
  { "--stages N", 4, "pipeline stages, a device each" },
  { "--chunks N", 4, "micro-batches in a step" },
  { "--schedule NAME", "1f1b", "see docs/schedules.md" },
  { "--checkpoint WHEN", "except_last", "recompute activations: always, except_last or never" },
  { "--lr X", 2e-3, "learning rate of AdamW" },
  { "--seed N", 1, "seed of weights, images and order", min = 0 },
  { "--quiet", false, "no progress line" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- data ------------------------------------------------------------------------------------

-- Discs that are brighter than the noise around them.
local function discs(count, side, seed)
  local function draw(n) return gp.rand({ count, 1, 1 }, { seed = seed + n }) end
  local at = gp.arange(1, side):to "f32" / side
  local x, y = at:reshape { 1, 1, side }, at:reshape { 1, side, 1 }
  local far = (x - draw(0)) ^ 2 + (y - draw(1)) ^ 2
  local mask = far:lt((0.1 + 0.2 * draw(2)) ^ 2):to "f32":reshape { count, 1, side, side }
  return mask + 0.7 * gp.randn({ count, 3, side, side }, { seed = seed + 3 }), mask
end

local function read(path)
  local tensor, why = gp.load(path)
  if not tensor then
    io.stderr:write(("%s: %s\n"):format(arg[0], why))
    os.exit(1, true)
  end
  return tensor:to "f32"
end

local x, y
if opt.synthetic then
  x, y = discs(160, opt.size, opt.seed)
elseif opt.images and opt.masks then
  x, y = read(opt.images), read(opt.masks)
else
  io.stderr:write(arg[0], ": no data: images and masks as .npy files, Carvana's for example ",
    "(kaggle.com/c/carvana-image-masking-challenge); or try --synthetic\n")
  os.exit(1, true)
end
local train, valid = gp.data.tensors(x, y):split(0.9)

-- ---- model, pipeline, training ---------------------------------------------------------------

local model = gp.models.unet {
  depth = opt.depth, convs = opt.convs, channels = opt.channels, input = x.shape[2],
  output = y.shape[2],
}
local pipe <close> = gp.pipeline(model, {
  devices = opt.stages, chunks = opt.chunks, schedule = opt.schedule,
  checkpoint = opt.checkpoint, loss = nn.BCEWithLogitsLoss(),
})
print(pipe)
local adam = optim.AdamW(pipe:parameters(), { lr = opt.lr })
pipe:use(adam)

local run <close> = gp.run("unet", {
  flags = opt, pipe = pipe, opt = adam, steps = opt.steps, unit = "images",
  data = gp.data.epochs(train, { batch = opt.batch, seed = opt.seed }),
})
for step, a, b in run:steps() do
  run:log(step, { loss = pipe:step(a, b) })
end
run:finish()

-- ---- test: the intersection of what was found and what is there, over their union --------------

pipe:eval()
local both, either = 0, 0
for a, b in valid:batches(opt.batch) do
  local found, there = pipe:forward(a):gt(0), b:gt(0.5)
  both = both + found:logical_and(there):sum():item()
  either = either + found:logical_or(there):sum():item()
end
print(("intersection over union on %d held-out images: %.3f"):format(#valid, both / either))
