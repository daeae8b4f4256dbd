-- examples/mnist/train.lua - a small convolutional network reads handwritten digits: 99 % of
-- MNIST's test images after a few epochs.
--
--   gpipe-lua examples/mnist/train.lua --data mnist         the four files of MNIST, gzip or not
--   gpipe-lua examples/mnist/train.lua --synthetic          the digits of examples/data, enlarged
local folder = arg[0]:match "^(.*/)[^/]*$" or "./"
package.path = folder .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local classify = require "classify"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train a classifier of MNIST's digits.", {
  { "--data DIR", nil, "folder of train-images-idx3-ubyte and its three siblings" },
  { "--synthetic", false, "the 1,797 digits of examples/data, enlarged to 28 x 28" },
  { "--epochs N", 4, "passes over the training set" },
  { "--steps N", 1 << 40, "stop after so many steps" },
  { "--batch N", 64, "images in a step" },
  { "--lr X", 2e-3, "learning rate of AdamW" },
  { "--stages N", 2, "pipeline stages, a device each" },
  { "--chunks N", 2, "micro-batches in a step" },
  { "--workers N", 1, "threads that prepare batches" },
  { "--seed N", 1, "seed of weights and order", min = 0 },
  { "--quiet", false, "no progress line" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- data ------------------------------------------------------------------------------------

-- 8 x 8 pixels of 0 .. 16 -> 28 x 28 of 0 .. 1.
local function digits()
  local small = gp.data.csv { path = folder .. "../data/digits.csv", target = "label" }
  local grow = nn.Upsample { size = 28, mode = "bilinear" }
  local xs, ys = {}, {}
  for x, y in small:shuffle(opt.seed):batches(256) do
    xs[#xs + 1], ys[#ys + 1] = grow(x:reshape { x.shape[1], 1, 8, 8 } / 16), y
  end
  return gp.data.tensors(gp.concat(xs, 1), gp.concat(ys, 1)):split(0.8)
end

local train, test
if opt.synthetic then
  train, test = digits()
  opt.epochs = 3 * opt.epochs
elseif not opt.data then
  classify.missing "MNIST (its four files are at ossci-datasets.s3.amazonaws.com/mnist)"
else
  train = assert(gp.data.mnist { path = opt.data, split = "train" })
  test = assert(gp.data.mnist { path = opt.data, split = "test" })
end

-- ---- model, pipeline, training ---------------------------------------------------------------

local model = nn.Sequential {
  nn.Conv2d(1, 16, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
  nn.Conv2d(16, 32, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
  nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Dropout(0.5),
  nn.Linear(128, 10),
}
local pipe <close> = gp.pipeline(model, {
  devices = opt.stages, chunks = opt.chunks, loss = nn.CrossEntropyLoss(),
})
print(pipe)
local adam = optim.AdamW(pipe:parameters(), { lr = opt.lr })
pipe:use(adam)

classify.train(pipe, adam, train, {
  name = "mnist", flags = opt, epochs = opt.epochs, steps = opt.steps, batch = opt.batch,
  seed = opt.seed, workers = not opt.synthetic and opt.workers or nil,
}, function(step, total)
  return opt.lr * math.min(1, 2 - 2 * (step - 1) / total) -- falls to zero over the second half
end)
print(("%.2f %% of %d test images are right"):format(classify.accuracy(pipe, test, 256), #test))
