-- examples/digits.lua - tell handwritten digits apart: 1,797 images of 8 x 8 pixels.
--
--   gpipe-lua examples/digits.lua                    97 % or more of the held-out digits are right
--   gpipe-lua examples/digits.lua --run-dir runs/a   keeps the run; the same command resumes it
--   gpipe-lua examples/digits.lua --help
--
-- Data: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
-- Repository, 1998 (see examples/data/README.md).
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Train a classifier of handwritten digits.", {
  { "--epochs N", 30, "passes over the training set" },
  { "--batch N", 64, "images in a step" },
  { "--width N", 128, "units of the hidden layers" },
  { "--lr X", 2e-3, "learning rate" },
  { "--stages N", 2, "pipeline stages, a device each: GPUs in turn where there are some" },
  { "--chunks N", 2, "micro-batches in a step" },
  { "--seed N", 1, "seed of weights and order", min = 0 },
  { "--quiet", false, "no progress line" },
}, arg, { run = true })
gp.seed(opt.seed)

-- ---- data: 64 pixels from 0 to 16 and the digit; a fifth is held out -------------------------

local folder = arg[0]:match("^(.*/)[^/]*$") or ""
local digits = gp.data.csv { path = folder .. "data/digits.csv", target = "label" }
local train, test = digits:shuffle(opt.seed):split(0.8)

-- ---- model -----------------------------------------------------------------------------------

local Scale = nn.class("Scale") -- a layer of your own is a class with a forward

function Scale:init(factor) self.factor = factor end

function Scale:forward(x) return x * self.factor end

local model = nn.Sequential {
  Scale(1 / 16),
  nn.Linear(64, opt.width), nn.ReLU(), nn.Dropout(0.2),
  nn.Linear(opt.width, opt.width), nn.ReLU(), nn.Dropout(0.2),
  nn.Linear(opt.width, 10),
}
print(model)

-- ---- training --------------------------------------------------------------------------------

local pipe <close> = gp.pipeline(model, {
  devices = opt.stages, chunks = opt.chunks, loss = nn.CrossEntropyLoss(),
})
local adam = optim.AdamW(pipe:parameters(), { lr = opt.lr })
local data = gp.data.epochs(train, { batch = opt.batch, seed = opt.seed, epochs = opt.epochs })
local run <close> = gp.run("digits", { flags = opt, pipe = pipe, opt = adam, data = data })

for step, x, y in run:steps() do
  local loss = pipe:step(x, y)
  adam:step()
  run:log(step, { loss = loss })
end
run:finish()

-- ---- test ------------------------------------------------------------------------------------

pipe:eval()
local right = 0
for x, y in test:batches(opt.batch) do
  local digit = pipe:forward(x):argmax(2) - 1 -- positions count from 1, digits from 0
  right = right + digit:eq(y):to("f32"):sum():item()
end
print(("%.1f %% of %d held-out digits are right"):format(100 * right / #test, #test))
