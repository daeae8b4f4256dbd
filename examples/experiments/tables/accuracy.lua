-- examples/experiments/tables/accuracy.lua - does training in micro-batches cost accuracy where
-- batch norm sees only a micro-batch? ResNet on images of handwritten digits, in the place of
-- ImageNet.
--
-- The published runs differ by less than their spread. Here a small ResNet of bottlenecks learns
-- from the digits of examples/data with the same recipe: Nesterov momentum, warm-up, three drops.
local gp = require "gpipe"
local published = require "published"
local report = require "report"
local nn, optim = gp.nn, gp.optim

local accuracy = {}

-- Chunks of a batch of 64, and whether batch norm takes its statistics from all of the batch.
local RUNS = { { 1 }, { 4 }, { 16 }, { 16, deferred = true } }

local Images = nn.class "Images" -- 64 pixels of 0 .. 16 -> 3 channels of 32 x 32
function Images.forward(_, x)
  local gray = (x / 16 - 0.5):reshape { x.shape[1], 1, 8, 8 }
  return gp.concat({ gray, gray, gray }, 2)
end

local function model()
  local layers = { Images(), nn.Upsample { scale = 4 } }
  for _, layer in ipairs(gp.models.resnet({ 1, 1, 1, 1 }, { classes = 10 })) do
    layers[#layers + 1] = layer
  end
  return nn.Sequential(layers)
end

-- Goyal et al. 2017: the rate rises over the first epochs and falls tenfold after one third, two
-- thirds and eight ninths.
local function rate(epoch, epochs, base)
  local part = epoch / epochs
  local down = part > 8 / 9 and 1e-3 or part > 2 / 3 and 1e-2 or part > 1 / 3 and 0.1 or 1
  return base * down * math.min(1, epoch / math.max(1, 4 * epochs / 90))
end

local function wrong(pipe, test, batch)
  pipe:eval()
  local right = 0
  for x, y in test:batches(batch) do
    right = right + (pipe:forward(x):argmax(2) - 1):eq(y):sum():item()
  end
  pipe:train()
  return 100 * (1 - right / #test)
end

local function train(digits, run, scale, seed)
  gp.seed(seed)
  local training, test = digits:shuffle(seed):split(0.8)
  if scale.images then training = training:split(scale.images / #training) end
  local net = model()
  local half = #net // 2
  local pipe <close> = gp.pipeline(net, {
    balance = { half, #net - half }, devices = { "cpu:0", "cpu:1" }, chunks = run[1],
    deferred_batch_norm = run.deferred, loss = nn.CrossEntropyLoss(),
  })
  local sgd = optim.SGD(pipe:parameters(),
    { lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 1e-4 })
  pipe:use(sgd)
  local seconds, images = 0, 0
  for epoch = 1, scale.epochs do
    sgd.lr = rate(epoch, scale.epochs, 0.1 * 64 / 256)
    for x, y in training:shuffle(seed * 1000 + epoch):batches(64, { drop_last = true }) do
      pipe:step(x, y)
      seconds, images = seconds + pipe.stats.seconds, images + 64
    end
  end
  return wrong(pipe, test, 64), images / seconds
end

local function spread(values)
  local sum, squares = 0, 0
  for _, v in ipairs(values) do sum = sum + v end
  local mean = sum / #values
  for _, v in ipairs(values) do squares = squares + (v - mean) ^ 2 end
  return mean, #values > 1 and math.sqrt(squares / (#values - 1)) or nil
end

local COLUMNS = {
  { "published", key = "run", left = true }, { "chunks", key = "published_chunks", format = "%d" },
  { "top-1 error, %", key = "published", format = "%.2f" },
  { "here", key = "here", left = true }, { "chunks", key = "chunks", format = "%d" },
  { "error, %", key = "error", format = "%.2f" }, { "+-", key = "deviation", format = "%.2f" },
  { "images/s", key = "rate", format = "%.1f" },
}

--- @param folder string of the digits
--- @param scale {epochs: integer, seeds: integer, images: integer?}
function accuracy.run(folder, scale)
  local digits = gp.data.csv { path = folder .. "digits.csv", target = "label" }
  local rows = {}
  for i, run in ipairs(RUNS) do
    local row = published.accuracy[i]
    rows[i] = {
      run = row.run, published_chunks = row.chunks, published = row.error, chunks = run[1],
      here = run.deferred and "deferred batch norm" or run[1] == 1 and "plain" or "chunked",
    }
    local errors = {}
    for seed = 1, scale.seeds do
      report.say("accuracy, %s, %d chunks: seed %d of %d", rows[i].here, run[1], seed, scale.seeds)
      errors[seed], rows[i].rate = train(digits, run, scale, seed)
    end
    rows[i].error, rows[i].deviation = spread(errors)
  end
  report.print("ResNet: error with batch norm over micro-batches", COLUMNS, rows)
  print "published: ResNet-101, ImageNet, 90 epochs, mean of five runs (torchgpipe)."
  local here = "here, measured: ResNet of 4 bottlenecks, digits of 32 x 32, batch 64, epochs: %d, "
    .. "seeds: %d, 2 stages."
  print(here:format(scale.epochs, scale.seeds))
  return rows
end

return accuracy
