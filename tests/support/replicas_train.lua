-- tests/support/replicas_train.lua - a script that trains small models with replicas and prints
-- every bit that comes out: for one number of micro-batches of all replicas together it has to
-- print the same.
--
--   gpipe-lua [--ranks N] tests/support/replicas_train.lua REPLICAS CHUNKS STAGES SCHEDULE...
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local replicas = math.tointeger(tonumber(arg[1]))
local chunks = math.tointeger(tonumber(arg[2]))
local stages = math.tointeger(tonumber(arg[3]))

-- ---- models ------------------------------------------------------------------------------------

local Head = nn.class("Head") -- the embedding's weights once more
function Head:init(embedding) self.embedding = embedding end
function Head:forward(v) return v:matmul(self.embedding.weight:transpose(1, 2)) end

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

-- ---- bits --------------------------------------------------------------------------------------

local function hash(bytes)
  local h = 0xcbf29ce484222325
  for i = 1, #bytes do h = (h ~ bytes:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(h)
end

local function say(what, value)
  local text = math.type(value) and ("%.17g"):format(value) or hash(value:contiguous():bytes())
  print(what, text)
end

local function say_all(what, tensors)
  local names = {}
  for name in pairs(tensors) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do say(what .. " " .. name, tensors[name]) end
end

-- Gradients that lie with another rank cannot be read.
local function say_gradients(pipe)
  if gp.ranks() > 1 then return end
  for _, entry in ipairs(pipe:parameters()) do
    if entry.param.grad then say("gradient of " .. entry.name, entry.param.grad) end
  end
end

-- ---- training ----------------------------------------------------------------------------------

local function train(pipe, opt, used, kind)
  local params = pipe:parameters()
  for step = 1, 3 do
    local x, y = batch(kind)
    say("loss " .. step, pipe:step(x, y))
    if not used then
      say_gradients(pipe)
      say("norm " .. step, optim.clip_grad_norm(params, 0.5))
      opt:step()
    end
  end
end

-- Forward and backward by the script, with rows of outputs and gradients from several replicas.
local function go_through(pipe, x)
  local output = pipe:forward(x)
  say("output", output)
  local grad = pipe:backward(gp.ones(output.shape))
  if grad then say("gradient", grad) end
  say_gradients(pipe)
end

-- Gradients of three steps together.
local function accumulate(pipe, kind)
  for step = 1, 3 do
    local x, y = batch(kind)
    pipe:step(x, y, { accumulate = step > 1 })
  end
  say_gradients(pipe)
  say("norm of three steps", optim.clip_grad_norm(pipe:parameters(), 1e9))
end

-- What is planned for a device is what it takes; those of other ranks show nothing.
local function check_memory(pipe)
  for _, device in ipairs(pipe:memory()) do
    if gp.ranks() == 1 or device.name:match "^%d+" == tostring(gp.rank()) then
      assert(device.planned == device.measured, device.name)
    end
  end
end

local function run(kind, schedule, used)
  gp.seed(5)
  local model = models[kind].make()
  local x, y, loss = batch(kind)
  local v = schedule == "interleaved_1f1b" and 2 or 1
  print("----", kind, schedule, used)
  local pipe <close> = gp.pipeline(model, {
    devices = stages * replicas // v, chunks = chunks, replicas = replicas, schedule = schedule,
    loss = loss, precision = models[kind].precision,
  })
  local opt = used and optim.AdamW(pipe:parameters(), { lr = 0.01 })
    or optim.SGD(pipe:parameters(), { lr = 0.05, momentum = 0.9 })
  if used then pipe:use(opt, { clip_norm = models[kind].clip }) end
  train(pipe, opt, used, kind)
  say("evaluated", pipe:evaluate(x, y))
  if not used then
    go_through(pipe, x)
    accumulate(pipe, kind)
  end
  say_all("state", pipe:state_dict())
  say_all("moments", opt:state_dict())
  check_memory(pipe)
end

for i = 4, #arg do
  for _, kind in ipairs { "dropout", "tied", "skip", "few" } do
    run(kind, arg[i], true)
    run(kind, arg[i], false)
  end
end
