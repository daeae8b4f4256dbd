-- tests/support/replicas_stream.lua - a script that trains small models by streams of mini-batches
-- that replicas share, and prints every bit that comes out: for one number of micro-batches of all
-- replicas together it has to print the same.
--
--   gpipe-lua [--ranks N] tests/support/replicas_stream.lua REPLICAS CHUNKS STAGES KIND...
--
-- With "KIND+sync" replicas normalise together, with "KIND+POLICY" values run again; both may stand
-- there.
local gp = require "gpipe"
local bits = dofile "tests/support/bits.lua"
local runs = dofile "tests/support/replica_runs.lua"
local nn, optim, Head, Watch = gp.nn, gp.optim, runs.Head, runs.Watch

local IMAGE = { 2, 4, 4 }

-- Eight layers each, with the rows of its mini-batches and its optimizer.
local models = {
  dropout = { rows = 24, make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8),
      nn.Tanh(), nn.Linear(8, 4),
    }
  end },
  -- used twice by the last stage, where its gradients are added layer by layer
  tied = { rows = 29, momentum = true, make = function()
    local embedding = nn.Embedding(20, 8)
    local function twice() return nn.Sequential { Head(embedding), nn.Tanh(), nn.Linear(20, 8) } end
    return nn.Sequential {
      nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8),
      twice(), Head(embedding),
    }
  end },
  skip = { rows = 30, precision = "bf16", make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.Stash "a", nn.LayerNorm(8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8),
      nn.Pop("a", "add"), nn.Linear(8, 4),
    }
  end },
  -- rows for five micro-batches: the last replicas have none; biases are frozen
  few = { rows = 5, momentum = true, make = function()
    local model = nn.Sequential {
      nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(),
      nn.Linear(8, 8), nn.Linear(8, 4),
    }
    model:freeze "bias$"
    return model
  end },
  norms = { rows = 30, shape = IMAGE, momentum = true, make = runs.residual },
  -- statistics of whole mini-batches, which do not divide; a stage without parameters to train
  deferred = { rows = 29, deferred = true, make = function()
    local model = nn.Sequential {
      nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8),
      nn.BatchNorm1d(8, { momentum = false }), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 4),
    }
    model:freeze "^[12]%."
    return model
  end },
  -- buffers of a user's layer that follow its weights; in halves, and in f32
  watched = { rows = 24, precision = "bf16", make = function()
    return nn.Sequential {
      nn.Linear(6, 8), Watch(8), nn.Dropout(0.2), nn.BatchNorm1d(8), Watch(8), nn.Tanh(),
      nn.Linear(8, 8), nn.Linear(8, 4),
    }
  end },
  weights = { rows = 24, make = function()
    return nn.Sequential {
      Watch(6), nn.Linear(6, 8), Watch(8), nn.Tanh(), Watch(8), nn.BatchNorm1d(8), Watch(8),
      nn.Linear(8, 4),
    }
  end },
  -- the last replicas have no micro-batches
  fewer = { rows = 5, shape = IMAGE, make = function()
    return nn.Sequential {
      nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4),
      nn.ReLU(), nn.Flatten(), nn.Linear(16, 4),
    }
  end },
}

local function batch(kind, rows, seed)
  local x = gp.randn({ rows, table.unpack(models[kind].shape or { 6 }) }, { seed = seed })
  if kind == "skip" then return x, gp.randn({ rows, 4 }, { seed = seed + 1000 }), nn.MSELoss() end
  local classes = kind == "tied" and 20 or 4
  return x, gp.randint(0, classes, { rows }, { seed = seed + 1000 }),
    nn.CrossEntropyLoss { ignore_index = 3 }
end

local function say_losses(what, losses)
  for i, loss in ipairs(losses) do bits.say(("%s, loss %d"):format(what, i), loss) end
end

-- Losses become known at other steps for other numbers of micro-batches of a replica, so they are
-- counted through.
local function train(pipe, opt, kind)
  for part = 1, 2 do
    local all = {}
    for step = 1, 7 do
      -- a batch of another shape ends the stream
      local rows = models[kind].rows - (part == 2 and step > 4 and 2 or 0)
      local x, y = batch(kind, rows, 10 * part + step)
      opt.lr = 0.02 / step
      local losses = pipe:step(x, y)
      table.move(losses, 1, #losses, #all + 1, all)
    end
    local losses = pipe:flush()
    table.move(losses, 1, #losses, #all + 1, all)
    say_losses("part " .. part, all)
    local x, y = batch(kind, models[kind].rows, 77)
    bits.say("evaluated", pipe:evaluate(x, y))
    bits.say_all("state", pipe:state_dict())
    bits.say_all("moments", opt:state_dict())
    bits.say("steps", pipe:progress().steps)
  end
end

local function run(kind, more)
  local synced, policy = more:find "sync" ~= nil, more:gsub("%+?sync", ""):match "%w[%w_]*"
  gp.seed(5)
  print("----", kind)
  local of, _, _, loss = models[kind], batch(kind, 8, 1)
  local options = runs.options(of, "pipedream_2bw", loss)
  options.balance = {}
  for s = 1, runs.stages do options.balance[s] = 8 // runs.stages end
  options.sync_batch_norm, options.checkpoint = synced, policy
  local pipe <close> = gp.pipeline(of.make(), options)
  local opt = of.momentum
    and optim.SGD(pipe:parameters(), { lr = 0.05, momentum = 0.9, nesterov = true })
    or optim.AdamW(pipe:parameters(), { lr = 0.01 })
  pipe:use(opt)
  train(pipe, opt, kind)
  local x = batch(kind, of.rows, 78)
  bits.say("output", pipe:forward(x))
  runs.check_memory(pipe)
end

for i = 4, #arg do run(arg[i]:match "^(%w+)(.*)$") end
