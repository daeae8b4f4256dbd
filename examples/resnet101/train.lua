-- examples/resnet101/train.lua - ResNet-101 as 370 layers, cut inside its bottlenecks, over four
-- devices: torchgpipe's benchmark as a script to start from.
--
--   gpipe-lua examples/resnet101/train.lua --synthetic            a minute on two cores
--   gpipe-lua examples/resnet101/train.lua --data imagenet/train --valid imagenet/val
--
-- Recipe: Goyal et al. 2017 (arXiv 1706.02677): Nesterov momentum, warm-up, three drops.
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local classify, stripes = require "classify", require "stripes"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train ResNet-101 over several devices.", {
  { "--data DIR", nil, "a folder of images for each class" },
  { "--valid DIR", nil, "a folder of held-out images for each class" },
  { "--synthetic", false, "small generated images instead" },
  { "--size N", nil, "pixels of a side (224; synthetic: 64)" },
  { "--classes N", nil, "classes of synthetic images (8)" },
  { "--depth N", 101, "18, 34, 50, 101 or 152 (the balance is that of 101)" },
  { "--epochs N", 90, "passes over the images" },
  { "--steps N", 1 << 40, "stop after so many steps (synthetic: 12)" },
  { "--batch N", nil, "images in a step (256; synthetic: 16)" },
  { "--balance LIST", "44,92,124,110", "layers of each stage, a device each" },
  { "--chunks N", 4, "micro-batches in a step" },
  { "--schedule NAME", "1f1b", "see docs/schedules.md" },
  { "--checkpoint WHEN", "except_last", "recompute activations: always, except_last or never" },
  { "--deferred", false, "batch norm keeps statistics of the whole batch" },
  { "--workers N", 4, "threads that read images" },
  { "--seed N", 1, "seed of weights and order", min = 0 },
  { "--quiet", false, "no progress line" },
}, arg, { run = true })
gp.seed(opt.seed)

-- Reads a number that may be left out: the default is `full`, with --synthetic `small`.
local function number(name, full, small)
  local value = opt[name] or (opt.synthetic and small or full)
  return math.tointeger(tonumber(value)) or classify.missing(("--%s is '%s'"):format(name, value))
end

-- ---- data ------------------------------------------------------------------------------------

local size, batch = number("size", 224, 64), number("batch", 256, 16)
local train, valid, classes
if opt.synthetic then
  classes = number("classes", 8, 8)
  train, valid = stripes(192, classes, size, opt.seed), stripes(48, classes, size, opt.seed + 10)
  if opt.steps == 1 << 40 then opt.steps = 12 end
elseif not opt.data then
  classify.missing "ImageNet (image-net.org) or any folder with a folder of images per class"
else
  train = assert(gp.data.images { path = opt.data, size = size, train = true })
  valid = opt.valid and assert(gp.data.images { path = opt.valid, size = size })
  classes = #train.classes
end

-- ---- model, pipeline, training ---------------------------------------------------------------

local model = gp.models.resnet(opt.depth, { classes = classes })
local balance = opt.depth == 101 and classify.balance(opt.balance) or nil
local pipe <close> = gp.pipeline(model, {
  balance = balance, devices = balance and #balance or 4, chunks = opt.chunks,
  schedule = opt.schedule, checkpoint = opt.checkpoint, deferred_batch_norm = opt.deferred,
  loss = nn.CrossEntropyLoss(),
})
print(pipe)

local base = 0.1 * batch / 256
local sgd = optim.SGD(pipe:parameters(),
  { lr = base, momentum = 0.9, nesterov = true, weight_decay = 1e-4 })
pipe:use(sgd)

local function rate(step, total)
  local part = step / total
  local warm = math.min(1, part * 90 / 5)
  return base * warm * 0.1 ^ ((part > 30 / 90 and 1 or 0) + (part > 60 / 90 and 1 or 0)
    + (part > 80 / 90 and 1 or 0))
end

classify.train(pipe, sgd, train, {
  name = "resnet101", flags = opt, epochs = opt.epochs, steps = opt.steps, batch = batch,
  seed = opt.seed, workers = not opt.synthetic and opt.workers or nil,
}, rate)
if valid then
  print(("%.1f %% of %d held-out images are right")
    :format(classify.accuracy(pipe, valid, batch), #valid))
end
