-- tests/support/ranks_train.lua - a script that trains small models and prints every bit that comes
-- out: run by one process and by several, it has to print the same.
--
--   gpipe-lua [--ranks N] tests/support/ranks_train.lua DEVICES SCHEDULE...
--
-- DEVICES is a number, or names with their ranks: "0/cuda:0,1/cpu:0". One process leaves the ranks
-- out.
local gp = require "gpipe"
local bits = dofile "tests/support/bits.lua"
local nn, optim = gp.nn, gp.optim

local devices = math.tointeger(tonumber(arg[1])) or {}
for name in type(devices) == "table" and arg[1]:gmatch "[^,]+" or function() end do
  devices[#devices + 1] = gp.ranks() > 1 and name or name:match "/(.*)$"
end

-- ---- models ------------------------------------------------------------------------------------

local Head = nn.class("Head") -- the embedding's weights once more
function Head:init(embedding) self.embedding = embedding end
function Head:forward(v) return v:matmul(self.embedding.weight:transpose(1, 2)) end

local models = {}

-- Eight layers each, so that four stages and interleaved ones fit.
function models.dropout()
  return nn.Sequential {
    nn.Linear(6, 8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8),
    nn.Tanh(), nn.Linear(8, 4),
  }, gp.randn { 30, 6 }, gp.randint(0, 4, { 30 }), nn.CrossEntropyLoss()
end

function models.tied()
  local embedding = nn.Embedding(20, 8)
  return nn.Sequential {
    embedding, nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 8), nn.Tanh(),
    nn.Linear(8, 8), Head(embedding),
  }, gp.randint(0, 20, { 30, 3 }), gp.randint(0, 20, { 30, 3 }),
    nn.CrossEntropyLoss { ignore_index = 3 }
end

function models.skip()
  return nn.Sequential {
    nn.Linear(6, 8), nn.Stash "a", nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8),
    nn.Pop("a", "add"), nn.Linear(8, 4),
  }, gp.randn { 30, 6 }, gp.randn { 30, 4 }, nn.MSELoss()
end

function models.batch_norm()
  return nn.Sequential {
    nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8),
    nn.Tanh(), nn.Linear(8, 4),
  }, gp.randn { 30, 6 }, gp.randn { 30, 4 }, nn.MSELoss()
end

-- ---- training ----------------------------------------------------------------------------------

-- The update in the schedule, with clipping; or by the script.
local function train(pipe, opt, used, x, y)
  local params = pipe:parameters()
  for step = 1, 3 do
    bits.say("loss " .. step, pipe:step(x, y))
    if not used then
      bits.say("norm " .. step, optim.clip_grad_norm(params, 0.5))
      opt:step()
    end
  end
end

-- Forward and backward by the script, with rows of outputs and gradients from several ranks.
local function go_through(pipe, x)
  local output = pipe:forward(x)
  bits.say("output", output)
  local grad = pipe:backward(gp.ones(output.shape))
  if grad then bits.say("gradient", grad) end
end

local function run(kind, schedule, used)
  gp.seed(5)
  local model, x, y, loss = models[kind]()
  print("----", kind, schedule, used)
  local pipe <close> = gp.pipeline(model, {
    devices = devices, chunks = 8, schedule = schedule, loss = loss,
    precision = kind == "dropout" and used and "f16" or nil,
  })
  local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
  if used then pipe:use(opt, { clip_norm = 0.5 }) end
  train(pipe, opt, used, x, y)
  bits.say("evaluated", pipe:evaluate(x, y))
  if not used then go_through(pipe, x) end
  bits.say_all("state", pipe:state_dict())
  bits.say_all("moments", opt:state_dict())
end

for i = 2, #arg do
  for _, kind in ipairs { "dropout", "tied", "skip", "batch_norm" } do
    run(kind, arg[i], true)
    run(kind, arg[i], false)
  end
end
