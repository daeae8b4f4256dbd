-- examples/sweep.lua - which learning rate, width and schedule suit the model of digits.lua?
--
--   gpipe-lua examples/sweep.lua                half a minute on two cores; after a kill it resumes
--   gpipe-lua examples/sweep.lua --trials 400   a sweep that has ended goes on up to 400
--   gpipe-lua examples/sweep.lua --help
--
-- Trials that are behind after a few epochs are stopped (asha), so that most of the time goes to
-- good ones. docs/sweeps.md explains all of it; examples/data/README.md the data.
local gp = require "gpipe"
local flags = require "gpipe.flags"
local nn, optim = gp.nn, gp.optim

local opt = flags.parse("Search the hyper-parameters of a classifier of digits.", {
  { "--trials N", 240, "trials in all" },
  { "--epochs N", 81, "epochs of a trial that is not stopped" },
  { "--parallel N", 2, "processes at once; they share the cores" },
  { "--images N", 1797, "images of the data set; a fifth is held out" },
  { "--dir DIR", "sweeps", "where the sweep and its page are kept" },
  { "--seed N", 1, "seed of what is drawn", min = 0 },
  { "--quiet", false, "no lines of progress" },
}, arg)

-- ---- data: read once in each process, shared by its trials ------------------------------------

local folder = arg[0]:match("^(.*/)[^/]*$") or ""
local digits = gp.data.csv { path = folder .. "data/digits.csv", target = "label" }
local some = digits:shuffle(opt.seed):split(opt.images / #digits)
local train, held_out = some:split(0.8)
local BATCH = 64

-- ---- what is searched --------------------------------------------------------------------------

local sweep = gp.sweep
local s = sweep {
  name = "digits", dir = opt.dir, trials = opt.trials, seed = opt.seed, quiet = opt.quiet,
  minimize = "val_loss", stop = { "asha", least = 3, reduction = 3 },
  parallel = opt.parallel, timeout = 300,
  space = {
    lr = sweep.log(1e-4, 1e-1),
    width = sweep.int_log(16, 256),
    dropout = sweep.uniform(0, 0.5),
    schedule = sweep.choice { "constant", "linear", "cosine" },
    warmup = function(p) -- epochs; a constant rate needs none
      if p.schedule ~= "constant" then return sweep.int(0, 3) end
    end,
  },
}

-- ---- a trial -----------------------------------------------------------------------------------

local function rate_of(p)
  if p.schedule == "constant" then return optim.schedule.constant(p.lr) end
  local steps = (#train + BATCH - 1) // BATCH
  return optim.schedule[p.schedule] { max = p.lr, steps = opt.epochs * steps,
    warmup = math.min(p.warmup, opt.epochs - 1) * steps }
end

-- The mean loss of the held-out images, and the share of them that are right.
local function validate(pipe)
  pipe:eval()
  local right, val_loss = 0, nil
  for x, y in held_out:batches(#held_out) do -- one batch: the mean over all of them
    val_loss = pipe:evaluate(x * (1 / 16), y)
    right = right + (pipe:forward(x * (1 / 16)):argmax(2) - 1):eq(y):to("f32"):sum():item()
  end
  pipe:train()
  return { val_loss = val_loss, accuracy = right / #held_out }
end

s:run(function(p, trial)
  local model = nn.Sequential {
    nn.Linear(64, p.width), nn.ReLU(), nn.Dropout(p.dropout),
    nn.Linear(p.width, p.width), nn.ReLU(), nn.Dropout(p.dropout),
    nn.Linear(p.width, 10),
  }
  local pipe <close> = gp.pipeline(model, { devices = 1, loss = nn.CrossEntropyLoss() })
  local adam = optim.AdamW(pipe:parameters(), { lr = p.lr })
  local rate, step, reached = rate_of(p), 0, nil
  for epoch = 1, opt.epochs do
    for x, y in train:shuffle(epoch):batches(BATCH) do
      step = step + 1
      adam.lr = rate(step)
      pipe:step(x * (1 / 16), y) -- pixels go from 0 to 16
      adam:step()
    end
    reached = validate(pipe)
    if trial:report(epoch, reached.val_loss) then break end
  end
  return reached
end)

-- ---- what was found ----------------------------------------------------------------------------

print(s)
print(("%.1f %% of the held-out digits are right with the best of %d trials; the page: %s"):format(
  100 * s.best.values.accuracy, #s.trials, assert(s:html())))
