-- examples/schedules/async.lua - pipelines that never flush: PipeDream, vertical sync, 2BW, beside
-- 1F1B.
--
--   gpipe-lua examples/schedules/async.lua                 the curves go to ./async.svg
--   gpipe-lua examples/schedules/async.lua --help
--
-- The same network learns handwritten digits four times: with a flush after every mini-batch
-- (1F1B), and with updates that the pipeline does not wait for. Those see weights that are some
-- updates old, and keep the versions that are still in use. Prints the curves, then time, loss,
-- accuracy, versions and memory side by side.
local here = arg[0]:match("^(.*/)[^/]*$") or "./"
package.path = here .. "../shared/?.lua;" .. package.path
local gp = require "gpipe"
local flags, progress = require "gpipe.flags", require "gpipe.progress"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Asynchronous schedules beside 1F1B.", {
  { "--epochs N", 120, "passes over the training set" },
  { "--batch N", 64, "images of an update" },
  { "--width N", 128, "units of the hidden layers" },
  { "--lr X", 0.1, "learning rate" },
  { "--stages N", 4, "pipeline stages, one CPU device each" },
  { "--chunks N", 4, "micro-batches of a mini-batch (1F1B, 2BW)" },
  { "--seed N", 1, "seed of weights and order", min = 0 },
  { "--picture PATH", "async.svg", "where the curves go" },
}, arg)

local digits = gp.data.csv { path = here .. "../data/digits.csv", target = "label" }
local train, test = digits:shuffle(opt.seed):split(0.8)

local function new_model()
  gp.seed(opt.seed)
  local layers = { nn.Sequential { nn.Linear(64, opt.width), nn.Tanh() } }
  for _ = 3, opt.stages do
    layers[#layers + 1] = nn.Sequential { nn.Linear(opt.width, opt.width), nn.Tanh() }
  end
  layers[#layers + 1] = nn.Linear(opt.width, 10)
  return nn.Sequential(layers)
end

-- ---- training ----------------------------------------------------------------------------------

-- Feeds an epoch and appends the losses of its updates; an asynchronous pipeline knows them later.
local function epoch_of(pipe, number, rows, losses)
  for x, y in train:shuffle(number):batches(rows, { drop_last = true }) do
    local known = pipe:step(x / 16, y)
    if type(known) == "number" then known = { known } end
    table.move(known, 1, #known, #losses + 1, losses)
  end
end

local function accuracy_of(pipe)
  pipe:eval()
  local right = 0
  for x, y in test:batches(#test) do
    right = right + (pipe:forward(x / 16):argmax(2) - 1):eq(y):to("f32"):sum():item()
  end
  return 100 * right / #test
end

-- Trains under a schedule. Where every micro-batch is a mini-batch of its own, a step takes
-- `chunks` of them.
local function run(case)
  local names = {}
  for d = 1, opt.stages do names[d] = "cpu:" .. d - 1 end
  local pipe <close> = gp.pipeline(new_model(), {
    devices = names, chunks = opt.chunks, schedule = case.schedule, checkpoint = "never",
    loss = nn.CrossEntropyLoss(),
  })
  pipe:use(optim.SGD(pipe:parameters(), { lr = opt.lr }))
  local rows = case.own and opt.batch * opt.chunks or opt.batch
  local losses, started = {}, progress.now()
  for epoch = 1, opt.epochs do epoch_of(pipe, epoch, rows, losses) end
  local rest = pipe:flush()
  table.move(rest, 1, #rest, #losses + 1, losses)
  return {
    losses = losses, seconds = progress.now() - started, bytes = pipe.stats.peak_bytes,
    accuracy = accuracy_of(pipe),
  }
end

-- ---- side by side -------------------------------------------------------------------------------

-- Means of fifty windows: single mini-batches jump too much to be compared.
local function curve_of(losses)
  local curve = { x = {}, y = {} }
  local size = math.max(1, #losses // 50)
  for first = 1, #losses - size + 1, size do
    local sum = 0
    for i = first, first + size - 1 do sum = sum + losses[i] end
    curve.x[#curve.x + 1], curve.y[#curve.y + 1] = first + size - 1, sum / size
  end
  return curve
end

-- Versions of each stage's weights alive at once, in a pipeline that is full.
local function versions_of(case)
  local versions, list = gp.schedule.resolve(case.schedule, opt.stages, 4 * opt.stages):versions(),
    {}
  for stage = 0, opt.stages - 1 do list[#list + 1] = versions[stage] end
  return table.concat(list, " ")
end

local function megabytes(bytes)
  local list = {}
  for i, n in ipairs(bytes) do list[i] = ("%.2f"):format(n / 1e6) end
  return table.concat(list, " ")
end

local cases = {
  { label = "1f1b (flush)", schedule = "1f1b" },
  { label = "pipedream", schedule = "pipedream", own = true },
  { label = "vertical sync", schedule = { "pipedream", vertical_sync = true }, own = true },
  { label = "pipedream_2bw", schedule = "pipedream_2bw" },
}
local curves = {}
for _, case in ipairs(cases) do
  case.result = run(case)
  curves[case.label] = curve_of(case.result.losses)
end

local figure = { title = ("loss of the mini-batches of %d images (logarithmic)"):format(opt.batch),
  x = "updates", log = true }
print(gp.plot(curves, figure))
local row = "%-14s %9s %9s %9s %9s  %-" .. math.max(8, 2 * opt.stages) .. "s  %s"
print("\n" .. row:format("", "updates/s", "updates", "loss", "accuracy", "versions",
  "MB of activations and versions"))
for _, case in ipairs(cases) do
  local result = case.result
  local losses = curves[case.label].y
  print(row:format(case.label, ("%.0f"):format(#result.losses / result.seconds), #result.losses,
    ("%.4f"):format(losses[#losses]), ("%.1f %%"):format(result.accuracy),
    versions_of(case),
    megabytes(result.bytes)))
end
print("versions and memory: of each stage; a mini-batch of pipedream is one micro-batch, of the "
  .. "others several")

figure.svg, figure.force = opt.picture, true
assert(gp.plot(curves, figure))
print("picture: " .. opt.picture)
