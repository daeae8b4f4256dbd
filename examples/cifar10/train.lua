-- examples/cifar10/train.lua - a residual network for CIFAR-10, with random crops and flips.
--
--   gpipe-lua examples/cifar10/train.lua --data cifar-10-batches-bin
--   gpipe-lua examples/cifar10/train.lua --synthetic                   under a minute on two cores
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local classify, stripes = require "classify", require "stripes"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train a residual network on CIFAR-10.", {
  { "--data DIR", nil, "folder of data_batch_1.bin and its siblings" },
  { "--synthetic", false, "generated images instead" },
  { "--epochs N", 30, "passes over the training set" },
  { "--steps N", 1 << 40, "stop after so many steps (synthetic: 72)" },
  { "--batch N", 128, "images in a step (synthetic: 32)" },
  { "--width N", nil, "channels of the first stage (64; synthetic: 16)" },
  { "--lr X", 0.1, "highest learning rate" },
  { "--stages N", 2, "pipeline stages, a device each" },
  { "--chunks N", 2, "micro-batches in a step" },
  { "--workers N", 2, "threads that prepare batches" },
  { "--seed N", 1, "seed of weights, crops and order", min = 0 },
  { "--quiet", false, "no progress line" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- data ------------------------------------------------------------------------------------

local train, test
if opt.synthetic then
  train, test = stripes(512, 10, 32, opt.seed), stripes(128, 10, 32, opt.seed + 10)
  if opt.steps == 1 << 40 then opt.steps = 72 end
  if opt.batch == 128 then opt.batch = 32 end
elseif not opt.data then
  classify.missing "CIFAR-10, binary version (cs.toronto.edu/~kriz/cifar.html)"
else
  train = assert(gp.data.cifar10 { path = opt.data, split = "train", augment = true })
  test = assert(gp.data.cifar10 { path = opt.data, split = "test" })
end

-- ---- model: three stages of two residual blocks, as in section 4.2 of He et al. 2015 -----------

local width = math.tointeger(tonumber(opt.width)) or opt.synthetic and 16 or 64

local function conv(from, to, stride)
  return nn.Conv2d(from, to, 3, { stride = stride, padding = 1, bias = false })
end

-- Where a block halves the image and widens it, a 1 x 1 convolution does the same on its shortcut.
local function block(from, to, stride)
  local body = nn.Sequential {
    conv(from, to, stride), nn.BatchNorm2d(to), nn.ReLU(), conv(to, to, 1), nn.BatchNorm2d(to),
  }
  local beside = stride == 1 and nn.Identity() or nn.Sequential {
    nn.Conv2d(from, to, 1, { stride = stride, bias = false }), nn.BatchNorm2d(to),
  }
  return nn.Sequential { nn.Sum { body, beside }, nn.ReLU() }
end

local model = nn.Sequential {
  nn.Sequential { conv(3, width, 1), nn.BatchNorm2d(width), nn.ReLU() },
  block(width, width, 1), block(width, width, 1),
  block(width, 2 * width, 2), block(2 * width, 2 * width, 1),
  block(2 * width, 4 * width, 2), block(4 * width, 4 * width, 1),
  nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, 10),
}
local pipe <close> = gp.pipeline(model, {
  balance = opt.stages == 2 and { 4, 6 } or nil, devices = opt.stages, chunks = opt.chunks,
  deferred_batch_norm = true, loss = nn.CrossEntropyLoss(),
})
print(pipe)

-- ---- training and test -----------------------------------------------------------------------

local sgd = optim.SGD(pipe:parameters(),
  { lr = opt.lr, momentum = 0.9, nesterov = true, weight_decay = 5e-4 })
pipe:use(sgd)
classify.train(pipe, sgd, train, {
  name = "cifar10", flags = opt, epochs = opt.epochs, steps = opt.steps, batch = opt.batch,
  seed = opt.seed, workers = not opt.synthetic and opt.workers or nil,
}, function(step, total) -- the rate rises for a fifth of the steps, then falls to zero
  local part = (step - 1) / total
  return opt.lr * math.max(1e-3, part < 0.2 and part / 0.2 or (1 - part) / 0.8)
end)
print(("%.1f %% of %d test images are right"):format(classify.accuracy(pipe, test, 128), #test))
