-- examples/amoebanet/train.lua - AmoebaNet-D, the network of the GPipe paper: every cut between its
-- cells carries two tensors.
--
--   gpipe-lua examples/amoebanet/train.lua --synthetic            a minute on two cores
--   gpipe-lua examples/amoebanet/train.lua --data imagenet/train --layers 18 --filters 256
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local classify, stripes = require "classify", require "stripes"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local SIZE = 224 -- the last pool needs 32 k or 32 k - 1, with k from 7 to 13

local opt = flags.parse("Train AmoebaNet-D over several devices.", {
  { "--data DIR", nil, "a folder of images for each class" },
  { "--synthetic", false, "a few generated images instead" },
  { "--layers N", nil, "normal cells, a multiple of 3 (18; synthetic: 3)" },
  { "--filters N", nil, "filters of the cells (256; synthetic: 32)" },
  { "--epochs N", 90, "passes over the images" },
  { "--steps N", 1 << 40, "stop after so many steps (synthetic: 12)" },
  { "--batch N", nil, "images in a step (128; synthetic: 8)" },
  { "--balance LIST", nil, "layers of each stage (an even split of parameters)" },
  { "--stages N", 4, "devices, where no balance is given" },
  { "--chunks N", 4, "micro-batches in a step" },
  { "--schedule NAME", "1f1b", "see docs/schedules.md" },
  { "--checkpoint WHEN", "except_last", "recompute activations: always, except_last or never" },
  { "--lr X", 1e-3, "learning rate of RMSprop" },
  { "--workers N", 4, "threads that read images" },
  { "--seed N", 1, "seed of weights and order", min = 0 },
  { "--quiet", false, "no progress line" },
}, arg, { run = true })
gp.seed(opt.seed)

local function number(name, full, small)
  local value = opt[name] or (opt.synthetic and small or full)
  return math.tointeger(tonumber(value)) or classify.missing(("--%s is '%s'"):format(name, value))
end

-- ---- data ------------------------------------------------------------------------------------

local batch, classes, train = number("batch", 128, 8), 8, nil
if opt.synthetic then
  train = stripes(64, classes, SIZE, opt.seed)
  if opt.steps == 1 << 40 then opt.steps = 12 end
elseif not opt.data then
  classify.missing "ImageNet (image-net.org) or any folder with a folder of images per class"
else
  train = assert(gp.data.images { path = opt.data, size = SIZE, train = true })
  classes = #train.classes
end
local valid
train, valid = train:shuffle(opt.seed):split(0.9)

-- ---- model, pipeline, training ---------------------------------------------------------------

local model = gp.models.amoebanetd {
  classes = classes, layers = number("layers", 18, 3), filters = number("filters", 256, 32),
}
local balance = opt.balance and classify.balance(opt.balance)
local pipe <close> = gp.pipeline(model, {
  balance = balance, devices = balance and #balance or opt.stages, chunks = opt.chunks,
  schedule = opt.schedule, checkpoint = opt.checkpoint, deferred_batch_norm = true,
  loss = nn.CrossEntropyLoss(),
})
print(pipe)
local rmsprop = optim.RMSprop(pipe:parameters(), { lr = opt.lr })
pipe:use(rmsprop)
classify.train(pipe, rmsprop, train, {
  name = "amoebanet", flags = opt, epochs = opt.epochs, steps = opt.steps, batch = batch,
  seed = opt.seed, workers = not opt.synthetic and opt.workers or nil,
})
print(("%.1f %% of %d held-out images are right")
  :format(classify.accuracy(pipe, valid, batch), #valid))
