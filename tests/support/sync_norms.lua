-- tests/support/sync_norms.lua - a script that trains models whose replicas normalise together, and
-- prints every bit that comes out: for one number of replicas and of micro-batches it has to print
-- the same, however the model is cut and whatever runs again.
--
--   gpipe-lua [--ranks N] sync_norms.lua REPLICAS CHUNKS STAGES CHECKPOINT SCHEDULE...
local gp = require "gpipe"
local bits = dofile "tests/support/bits.lua"
local nn, optim = gp.nn, gp.optim

local replicas = math.tointeger(tonumber(arg[1]))
local chunks = math.tointeger(tonumber(arg[2]))
local stages = math.tointeger(tonumber(arg[3]))
local checkpoint = arg[4]

-- ---- models ------------------------------------------------------------------------------------

-- A count of micro-batches, and a moving mean: buffers of a layer that is no norm.
local Watch = nn.class "Watch"
function Watch:init(n)
  self.linear = nn.Linear(n, n)
  self.seen = nn.Buffer({ n }, 0)
  self.count = nn.Buffer({}, 0, { dtype = "i64" })
end
function Watch:forward(x)
  self.seen:copy_(self.seen * 0.75 + x:mean(1):to("f32") * 0.25)
  self.count:add_(1)
  return self.linear(x)
end

-- Eight layers each, with the options of their training.
local models = {
  -- a small ResNet: a skip around norms, statistics of images, one norm without momentum; a
  -- mini-batch that does not divide
  image = { rows = 30, shape = { 2, 4, 4 }, make = function()
    return nn.Sequential {
      nn.Conv2d(2, 4, 3, { padding = 1 }), nn.BatchNorm2d(4, { momentum = 0.3 }), nn.ReLU(),
      nn.Sequential { nn.Stash "a", nn.Conv2d(4, 4, 3, { padding = 1, bias = false }) },
      nn.BatchNorm2d(4, { momentum = false }), nn.Sequential { nn.Pop("a", "add"), nn.ReLU() },
      nn.Sequential { nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8) }, nn.Linear(8, 4),
    }
  end },
  -- statistics of the whole mini-batch; a norm without statistics; one row in a micro-batch
  deferred = { rows = 8, shape = { 6 }, deferred = true, make = function()
    return nn.Sequential {
      nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8),
      nn.BatchNorm1d(8, { track = false }), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 4),
    }
  end },
  -- buffers of a user's layer; halves; dropout; a norm that is frozen
  watched = { rows = 24, shape = { 6 }, precision = "bf16", make = function()
    local frozen = nn.BatchNorm1d(8)
    frozen:eval()
    return nn.Sequential {
      nn.BatchNorm1d(6), nn.Linear(6, 8), Watch(8), nn.Dropout(0.2), nn.BatchNorm1d(8), frozen,
      nn.Tanh(), nn.Linear(8, 4),
    }
  end },
}

-- ---- training ----------------------------------------------------------------------------------

-- What is planned for a device is what it takes; those of other ranks show nothing.
local function check_memory(pipe)
  for _, device in ipairs(pipe:memory()) do
    if gp.ranks() == 1 or device.name:match "^%d+" == tostring(gp.rank()) then
      assert(device.planned == device.measured, device.name)
    end
  end
end

local function train(pipe, opt, used, x, y)
  for step = 1, 3 do
    bits.say("loss " .. step, pipe:step(x, y))
    if not used then opt:step() end
    if step == 1 then bits.say_all("state 1", pipe:state_dict()) end
  end
end

local function run(kind, schedule, used)
  gp.seed(7)
  local of = models[kind]
  local model, shape = of.make(), { of.rows, table.unpack(of.shape) }
  local x, y = gp.randn(shape), gp.randint(0, 4, { of.rows })
  local v = schedule == "interleaved_1f1b" and 2 or 1
  print("----", kind, used)
  local pipe <close> = gp.pipeline(model, {
    devices = stages * replicas // v, chunks = chunks, replicas = replicas, schedule = schedule,
    loss = nn.CrossEntropyLoss(), precision = of.precision, deferred_batch_norm = of.deferred,
    checkpoint = checkpoint, sync_batch_norm = true,
  })
  local opt = optim.SGD(pipe:parameters(), { lr = 0.05, momentum = 0.9 })
  if used then pipe:use(opt, { clip_norm = 0.5 }) end
  train(pipe, opt, used, x, y)
  bits.say("evaluated", pipe:evaluate(x, y))
  local output = pipe:forward(x)
  bits.say("output", output)
  pipe:backward(gp.ones(output.shape))
  bits.say_all("state", pipe:state_dict())
  pipe:eval()
  bits.say("output in evaluation", pipe:forward(x))
  bits.say_all("state after evaluation", pipe:state_dict())
  bits.say_all("moments", opt:state_dict())
  check_memory(pipe)
end

for i = 5, #arg do
  for _, kind in ipairs { "image", "deferred", "watched" } do
    run(kind, arg[i], true)
    run(kind, arg[i], false)
  end
end
