-- scripts/bench/loader.lua - how much longer the steps of a two-stage pipeline take when threads
-- load their batches than when the batches lie in memory.
--
-- The images are made up: bytes in a file of CIFAR's form, cropped and flipped at random.

package.path = (arg[0]:match("^.*/") or "./") .. "?.lua;" .. package.path
local figure = require "figure"
local flags = require "gpipe.flags"
local core = require "gpipe.core"
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train on images that threads load, and on the same in memory.", {
  { "--images N", 2048, "of an epoch" },
  { "--batch N", 128, "images of a step" },
  { "--rounds N", 7, "epochs of each; the median counts" },
  { "--workers N", 2, "threads" },
}, arg)

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
do
  local file <close> = assert(io.open(folder .. "/test_batch.bin", "wb"))
  local body = {}
  for i = 1, 3072 do body[i] = string.char(i * 7 % 251) end
  body = table.concat(body)
  for i = 1, opt.images do file:write(string.char(i % 10), body) end
end
local data = assert(gp.data.cifar10 { path = folder, split = "test", augment = true })
os.execute("rm -r " .. folder)

local model = nn.Sequential {
  nn.Conv2d(3, 32, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2),
  nn.Conv2d(32, 64, 3, { padding = 1 }), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
  nn.Linear(64 * 8 * 8, 10),
}
local pipe <close> = gp.pipeline(model, { balance = { 3, 5 }, chunks = 4,
  loss = nn.CrossEntropyLoss() })
pipe:use(optim.SGD(pipe:parameters(), { lr = 0.01 }))

local memory = {}
for x, y in data:shuffle(1):batches(opt.batch, { drop_last = true }) do
  memory[#memory + 1] = { x, y }
end

-- Seconds of an epoch.
local function in_memory()
  local start = core.seconds()
  for _, batch in ipairs(memory) do pipe:step(batch[1], batch[2]) end
  return core.seconds() - start
end

local function loaded(epoch)
  local start = core.seconds()
  for x, y in data:shuffle(epoch):batches(opt.batch, { drop_last = true, workers = opt.workers }) do
    pipe:step(x, y)
  end
  return core.seconds() - start
end

in_memory()
local times = { memory = {}, loaded = {} }
for i = 1, opt.rounds do
  times.memory[i] = in_memory()
  times.loaded[i] = loaded(i)
end
figure.print("loader.images", opt.images / figure.median(times.loaded), "images/s")
figure.print("loader.step", figure.median(figure.ratios(times.loaded, times.memory)), "x", "<=", 1.02)
