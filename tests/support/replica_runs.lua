-- tests/support/replica_runs.lua - what the scripts share that train with replicas and print bits:
-- the numbers from their command lines, layers, a model, a check, and a training with norms.
local gp = require "gpipe"
local bits = dofile "tests/support/bits.lua"
local nn, optim = gp.nn, gp.optim

local runs = {}

-- REPLICAS CHUNKS STAGES
for i, name in ipairs { "replicas", "chunks", "stages" } do
  runs[name] = math.tointeger(tonumber(arg[i]))
end

-- ---- layers and a model ------------------------------------------------------------------------

-- The weights of an embedding once more.
runs.Head = nn.class "Head"
function runs.Head:init(embedding) self.embedding = embedding end
function runs.Head:forward(v) return v:matmul(self.embedding.weight:transpose(1, 2)) end

-- A moving mean of inputs and of a weight, and a count of micro-batches, for the script to read.
runs.Watch = nn.class "Watch"
function runs.Watch:init(n)
  self.linear = nn.Linear(n, n)
  self.seen = nn.Buffer({ n }, 0)
  self.drift = nn.Buffer({ n, n }, 0)
  self.count = nn.Buffer({}, 0, { dtype = "i64" })
end
function runs.Watch:forward(x)
  self.seen:mul_(0.75)
  self.seen:add_(x:mean(1):to("f32") * 0.25)
  self.drift:copy_(self.drift * 0.5 + self.linear.weight:to("f32"))
  self.count:add_(1)
  return self.linear(x)
end

-- A small ResNet of eight layers for images of 2 x 4 x 4: a skip around norms, one of them without
-- momentum.
function runs.residual()
  return nn.Sequential {
    nn.Conv2d(2, 4, 3, { padding = 1 }), nn.BatchNorm2d(4, { momentum = 0.3 }), nn.ReLU(),
    nn.Sequential { nn.Stash "a", nn.Conv2d(4, 4, 3, { padding = 1, bias = false }) },
    nn.BatchNorm2d(4, { momentum = false }), nn.Sequential { nn.Pop("a", "add"), nn.ReLU() },
    nn.Sequential { nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8) }, nn.Linear(8, 4),
  }
end

-- ---- training ----------------------------------------------------------------------------------

-- What is planned for a device is what it takes; those of other ranks show nothing.
function runs.check_memory(pipe)
  for _, device in ipairs(pipe:memory()) do
    if gp.ranks() == 1 or device.name:match "^%d+" == tostring(gp.rank()) then
      assert(device.planned == device.measured, device.name)
    end
  end
end

-- The pipeline's options for a model { make, rows, shape, precision, deferred } and a schedule.
function runs.options(of, schedule, loss)
  local per_device = schedule == "interleaved_1f1b" and 2 or 1
  return {
    devices = runs.stages * runs.replicas // per_device, chunks = runs.chunks,
    replicas = runs.replicas, schedule = schedule, loss = loss, precision = of.precision,
    deferred_batch_norm = of.deferred,
  }
end

local function train(pipe, opt, used, x, y)
  for step = 1, 3 do
    bits.say("loss " .. step, pipe:step(x, y))
    if not used then opt:step() end
    if step == 1 then bits.say_all("state 1", pipe:state_dict()) end
  end
end

-- Train a model with norms and print losses, outputs and state, of training and of evaluation.
-- With `used` the schedule updates, with clipping; else the script does.
function runs.with_norms(of, schedule, used, more)
  gp.seed(7)
  local model, shape = of.make(), { of.rows, table.unpack(of.shape) }
  local x, y = gp.randn(shape), gp.randint(0, 4, { of.rows })
  local options = runs.options(of, schedule, nn.CrossEntropyLoss())
  for name, value in pairs(more or {}) do options[name] = value end
  local pipe <close> = gp.pipeline(model, options)
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
  runs.check_memory(pipe)
end

return runs
