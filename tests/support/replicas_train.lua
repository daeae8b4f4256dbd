-- tests/support/replicas_train.lua - a script that trains small models with replicas and prints
-- every bit that comes out: for one number of micro-batches of all replicas together it has to
-- print the same.
--
--   gpipe-lua [--ranks N] tests/support/replicas_train.lua REPLICAS CHUNKS STAGES SCHEDULE...
local gp = require "gpipe"
local bits = dofile "tests/support/bits.lua"
local runs = dofile "tests/support/replica_runs.lua"
local nn, optim, Head = gp.nn, gp.optim, runs.Head

-- ---- models ------------------------------------------------------------------------------------

-- Its parameter gets no gradient.
local Idle = nn.class "Idle"
function Idle:init(n) self.weight = nn.Parameter({ n }, nn.init.ones()) end
function Idle:forward(x) return x:tanh() end -- luacheck: ignore 212

-- Eight layers each, with the options of its training: a precision, whether gradients are clipped,
-- and rows that do not divide.
local models = {
  dropout = { precision = "f16", clip = 0.5, rows = 24, make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8),
      nn.Tanh(), nn.Linear(8, 4),
    }
  end },
  tied = { clip = 0.3, rows = 29, make = function()
    local embedding = nn.Embedding(20, 8)
    return nn.Sequential {
      embedding, nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 8), nn.Tanh(),
      nn.Linear(8, 8), Head(embedding),
    }
  end },
  skip = { precision = "bf16", rows = 30, make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.Stash "a", nn.LayerNorm(8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8),
      nn.Pop("a", "add"), nn.Linear(8, 4),
    }
  end },
  -- the last replicas have no micro-batches; biases are frozen
  few = { rows = 5, make = function()
    local model = nn.Sequential {
      nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(),
      nn.Linear(8, 8), nn.Linear(8, 4),
    }
    model:freeze "bias$"
    return model
  end },
  -- the third of four stages adds to no gradients
  idle = { rows = 24, clip = 0.5, make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), Idle(8), nn.Tanh(), nn.Linear(8, 8),
      nn.Linear(8, 4),
    }
  end },
}

local function batch(kind)
  local n = models[kind].rows
  if kind == "tied" then
    return gp.randint(0, 20, { n, 3 }), gp.randint(0, 20, { n, 3 }),
      nn.CrossEntropyLoss { ignore_index = 3 }
  end
  if kind == "skip" then return gp.randn { n, 6 }, gp.randn { n, 4 }, nn.MSELoss() end
  return gp.randn { n, 6 }, gp.randint(0, 4, { n }), nn.CrossEntropyLoss()
end

-- ---- training ----------------------------------------------------------------------------------

-- Gradients that lie with another rank cannot be read.
local function say_gradients(pipe)
  if gp.ranks() > 1 then return end
  for _, entry in ipairs(pipe:parameters()) do
    if entry.param.grad then bits.say("gradient of " .. entry.name, entry.param.grad) end
  end
end

local function train(pipe, opt, used, kind)
  local params = pipe:parameters()
  for step = 1, 3 do
    local x, y = batch(kind)
    bits.say("loss " .. step, pipe:step(x, y))
    if not used then
      say_gradients(pipe)
      bits.say("norm " .. step, optim.clip_grad_norm(params, 0.5))
      opt:step()
    end
  end
end

-- Forward and backward by the script, with rows of outputs and gradients from several replicas.
local function go_through(pipe, x)
  local output = pipe:forward(x)
  bits.say("output", output)
  local grad = pipe:backward(gp.ones(output.shape))
  if grad then bits.say("gradient", grad) end
  say_gradients(pipe)
end

-- Gradients of three steps together.
local function accumulate(pipe, kind)
  for step = 1, 3 do
    local x, y = batch(kind)
    pipe:step(x, y, { accumulate = step > 1 })
  end
  say_gradients(pipe)
  bits.say("norm of three steps", optim.clip_grad_norm(pipe:parameters(), 1e9))
end

local function run(kind, schedule, used)
  gp.seed(5)
  local of, x, y, loss = models[kind], batch(kind)
  print("----", kind, schedule, used)
  local pipe <close> = gp.pipeline(of.make(), runs.options(of, schedule, loss))
  local opt = used and optim.AdamW(pipe:parameters(), { lr = 0.01 })
    or optim.SGD(pipe:parameters(), { lr = 0.05, momentum = 0.9 })
  if used then pipe:use(opt, { clip_norm = of.clip }) end
  train(pipe, opt, used, kind)
  bits.say("evaluated", pipe:evaluate(x, y))
  if not used then
    go_through(pipe, x)
    accumulate(pipe, kind)
  end
  bits.say_all("state", pipe:state_dict())
  bits.say_all("moments", opt:state_dict())
  runs.check_memory(pipe)
end

for i = 4, #arg do
  for _, kind in ipairs { "dropout", "tied", "skip", "few", "idle" } do
    run(kind, arg[i], true)
    run(kind, arg[i], false)
  end
end
