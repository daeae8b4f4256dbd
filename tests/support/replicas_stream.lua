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
local nn, optim = gp.nn, gp.optim

local replicas = math.tointeger(tonumber(arg[1]))
local chunks = math.tointeger(tonumber(arg[2]))
local stages = math.tointeger(tonumber(arg[3]))

local Head = nn.class "Head" -- the embedding's weights once more, in the same stage
function Head:init(embedding) self.embedding = embedding end
function Head:forward(v) return v:matmul(self.embedding.weight:transpose(1, 2)) end

-- A moving mean of inputs and of a weight, and a count of micro-batches, for the script to read.
local Watch = nn.class "Watch"
function Watch:init(n)
  self.linear = nn.Linear(n, n)
  self.seen = nn.Buffer({ n }, 0)
  self.drift = nn.Buffer({ n, n }, 0)
  self.count = nn.Buffer({}, 0, { dtype = "i64" })
end
function Watch:forward(x)
  self.seen:copy_(self.seen * 0.75 + x:mean(1):to("f32") * 0.25)
  self.drift:copy_(self.drift * 0.5 + self.linear.weight:to("f32"))
  self.count:add_(1)
  return self.linear(x)
end

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
  -- batch norms around a skip, one of them without momentum
  norms = { rows = 30, shape = IMAGE, momentum = true, make = function()
    return nn.Sequential {
      nn.Conv2d(2, 4, 3, { padding = 1 }), nn.BatchNorm2d(4, { momentum = 0.3 }), nn.ReLU(),
      nn.Sequential { nn.Stash "a", nn.Conv2d(4, 4, 3, { padding = 1, bias = false }) },
      nn.BatchNorm2d(4, { momentum = false }), nn.Sequential { nn.Pop("a", "add"), nn.ReLU() },
      nn.Sequential { nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8) }, nn.Linear(8, 4),
    }
  end },
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

-- What is planned for a device is what it takes; those of other ranks show nothing.
local function check_memory(pipe)
  for _, device in ipairs(pipe:memory()) do
    if gp.ranks() == 1 or device.name:match "^%d+" == tostring(gp.rank()) then
      assert(device.planned == device.measured, device.name)
    end
  end
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
  local _, _, loss = batch(kind, 8, 1)
  local balance = {}
  for s = 1, stages do balance[s] = 8 // stages end
  local pipe <close> = gp.pipeline(models[kind].make(), {
    balance = balance, devices = stages * replicas, chunks = chunks, replicas = replicas, loss = loss,
    schedule = "pipedream_2bw", precision = models[kind].precision, deferred_batch_norm = models[kind].deferred,
    sync_batch_norm = synced, checkpoint = policy,
  })
  local opt = models[kind].momentum
    and optim.SGD(pipe:parameters(), { lr = 0.05, momentum = 0.9, nesterov = true })
    or optim.AdamW(pipe:parameters(), { lr = 0.01 })
  pipe:use(opt)
  train(pipe, opt, kind)
  local x = batch(kind, models[kind].rows, 78)
  bits.say("output", pipe:forward(x))
  check_memory(pipe)
end

for i = 4, #arg do run(arg[i]:match "^(%w+)(.*)$") end
