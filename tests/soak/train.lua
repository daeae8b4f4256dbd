-- tests/soak/train.lua - the run that tests/soak/kill kills.
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train on a folder of CIFAR-10's form.", {
  { "--data DIR", nil, "the folder of the images" },
  { "--steps N", 60, "training steps" },
}, arg, { run = true })
gp.seed(3)

local model = nn.Sequential {
  nn.Conv2d(3, 8, 3, { padding = 1, stride = 2 }), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(),
  nn.Dropout(0.2), nn.Linear(8 * 256, 32), nn.ReLU(), nn.Linear(32, 10),
}
local pipe <close> = gp.pipeline(model, {
  devices = 2, chunks = 3, loss = nn.CrossEntropyLoss(), precision = "f16",
  deferred_batch_norm = true,
})
local adam = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
local images = assert(gp.data.cifar10 { path = opt.data, augment = true })
local data = gp.data.epochs(images, { batch = 12, seed = 5, workers = 2, prefetch = 3 })

local ema = gp.train.ema(pipe, { decay = 0.9 })
local stop = gp.train.early_stopping { patience = 99 }

local run <close> = gp.run("soak", {
  flags = opt, pipe = pipe, opt = adam, data = data, steps = opt.steps, every = 5, quiet = true,
  state = { ema = ema, stop = stop },
})
for step, x, y in run:steps() do
  adam.lr = 1e-2 / step
  local loss = pipe:step(x, y)
  optim.clip_grad_norm(pipe:parameters(), 1)
  adam:step()
  ema:update()
  run:log(step, { loss = loss, lr = adam.lr, draw = gp.rand({ 1 }):item() })
  if step % 10 == 0 then
    local value = ema:apply(function() return pipe:evaluate(x, y) end)
    stop(value)
    run:log(step, { val_loss = value })
    run:best("val_loss", value)
  end
end
run:finish()
