-- tests/support/synchronous.lua - trains under every synchronous schedule and compares the bits
-- with those of one stage.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local synchronous = {}

--- Every synchronous schedule with its options: {name, option = value, copies = 2 where the weights
--- have two copies}.
synchronous.CASES = {
  { "naive" }, { "gpipe" }, { "gpipe", backward = "lifo" },
  { "1f1b" }, { "1f1b", warmup = 2 }, { "1f1b", warmup = 4 },
  { "interleaved_1f1b" }, { "interleaved_1f1b", stages_per_device = 4 },
  { "interleaved_1f1b", group = 3 },
  { "looped_bfs" }, { "looped_bfs", stages_per_device = 4 },
  { "interleaved_zero_bubble" }, { "interleaved_zero_bubble", stages_per_device = 4 },
  { "interleaved_zero_bubble", group = 5 },
  { "zb_h1" }, { "zb_h2" }, { "zb_auto" }, { "zb_auto", memory = 2 }, { "zb_auto", memory = 16 },
  { "zbv" }, { "v_half" }, { "v_min" }, { "dualpipev" },
  { "dualpipe" }, { "chimera" },
}

synchronous.COPIES = { dualpipe = 2, chimera = 2 }

--- How the update is made: by opt:step(), as an action, as an action without a barrier.
synchronous.UPDATES = { step = false, use = {}, free = { barrier = false } }

--- "interleaved_1f1b, group = 3"
function synchronous.title(case)
  local words = { case[1] }
  for key, value in pairs(case) do
    if key ~= 1 then words[#words + 1] = key .. " = " .. tostring(value) end
  end
  table.sort(words, function(a, b) return a == case[1] and b ~= a or b ~= case[1] and a < b end)
  return table.concat(words, ", ")
end

--- Return a copy of the case for the option `schedule`, because pipelines may keep it.
function synchronous.schedule(case)
  local copy = {}
  for key, value in pairs(case) do copy[key] = value end
  return copy
end

--- Say whether a schedule exists for so many stages and micro-batches.
function synchronous.is_defined(case, stages, m)
  local probe = synchronous.schedule(case)
  probe[1] = nil
  local per = 1
  for _, p in ipairs { 1, 2 } do -- a schedule may exist for one or both
    probe.devices, probe.chunks = p, m
    local good, made = pcall(gp.schedule.build, case[1], probe)
    if good then per = made.stages // made.devices break end
  end
  if stages % per ~= 0 then return false end
  probe.devices, probe.chunks = stages // per, m
  return (pcall(gp.schedule.build, case[1], probe))
end

--- Cut n layers evenly.
function synchronous.cut(n, stages)
  local list = {}
  for s = 1, stages do list[s] = n * s // stages - n * (s - 1) // stages end
  return list
end

-- Makes n layers with a skip from the first to the last, dropout, and frozen biases.
local function skipping(n)
  gp.seed(3)
  local kept
  local Keep, Add = nn.class("Keep"), nn.class("Add")
  function Keep.forward(_, x) kept = x return x end
  function Add.forward(_, x) return x + kept * 0.5 end
  local layers = { nn.Sequential { nn.Linear(5, 6), nn.Tanh(), Keep() } }
  for i = 2, n - 1 do
    layers[i] = nn.Residual(nn.Sequential { nn.LayerNorm(6), nn.Linear(6, 6), nn.Dropout(0.1),
      nn.Tanh() })
  end
  layers[n] = nn.Sequential { Add(), nn.Linear(6, 3) }
  local model = nn.Sequential(layers)
  model:freeze "^2%..*bias$"
  return model
end

--- Return a training of ten steps on n rows (19 by default): most numbers of micro-batches do not
--- divide them.
function synchronous.regression(fields)
  local n = fields and fields.rows or 19
  local made = {
    model = function() return skipping(8) end, layers = 8, steps = 10, loss = nn.MSELoss(),
    x = gp.randn({ n, 5 }, { seed = 21 }), y = gp.randn({ n, 3 }, { seed = 22 }),
  }
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

-- Makes eight layers of 5 -> 5 -> .. -> 3; change(layers) may replace some.
local function tower(change)
  return function()
    gp.seed(4)
    local layers = {}
    for i = 1, 7 do layers[i] = nn.Sequential { nn.Linear(5, 5), nn.Tanh() } end
    layers[8] = nn.Linear(5, 3)
    change(layers)
    return nn.Sequential(layers)
  end
end

--- Return a training in which layers 1, 4 and 7 share one weight.
function synchronous.tied()
  return synchronous.regression {
    steps = 4, tied = true,
    model = tower(function(layers)
      layers[4][1].weight, layers[7][1].weight = layers[1][1].weight, layers[1][1].weight
    end),
  }
end

--- Return a training in which layers 1 and 2 share a weight and a bias.
function synchronous.tied_within()
  return synchronous.regression {
    steps = 4,
    model = tower(function(layers)
      layers[2][1].weight, layers[1][1].bias = layers[1][1].weight, layers[2][1].bias
    end),
  }
end

--- Return a training with a running mean in the middle.
function synchronous.centred()
  local Center = nn.class("Center")
  function Center:init(n) self.mean = nn.Buffer({ n }) end
  function Center:forward(x)
    if self:is_training() then self.mean:copy_(self.mean * 0.9 + x:mean(1) * 0.1) end
    return x - self.mean
  end
  return synchronous.regression {
    steps = 4,
    model = tower(function(layers) layers[3], layers[6] = Center(5), Center(5) end),
  }
end

--- Return a training with batch norms, whose running statistics forward writes and does not read.
function synchronous.normed()
  return synchronous.regression {
    steps = 4,
    model = tower(function(layers) layers[3], layers[6] = nn.BatchNorm1d(5), nn.BatchNorm1d(5) end),
  }
end

--- Return a training in which nothing flows back to the first two layers.
function synchronous.frozen()
  return synchronous.regression {
    steps = 4,
    model = function()
      local model = tower(function() end)()
      model:freeze "^1%."
      model:freeze "^2%."
      return model
    end,
  }
end

--- Return a training of attention over ids; the loss counts only ids that are not 0.
function synchronous.language(dtype)
  local d = { dtype = dtype }
  local function block()
    return nn.Residual(nn.Sequential { nn.LayerNorm(8, d),
      nn.CausalSelfAttention(8, 2, { dropout = 0.1,
      dtype = dtype }) })
  end
  local function model()
    gp.seed(6)
    return nn.Sequential {
      nn.Embedding(7, 8, d), block(), nn.Dropout(0.1), block(),
      nn.Residual(nn.Sequential { nn.Linear(8, 16, d), nn.GELU(), nn.Linear(16, 8, d) }),
      nn.LayerNorm(8, d),
      nn.Linear(8, 8, d), nn.Linear(8, 7, d),
    }
  end
  local ids = {}
  for i = 1, 11 do ids[i] = { i % 7, i * i % 7, (i + 3) % 7, i < 4 and 0 or 5 } end
  local x = gp.tensor(ids, { dtype = "i64" })
  return {
    model = model, layers = 8, steps = 4, x = x, y = x,
    loss = nn.CrossEntropyLoss { ignore_index = 0 },
  }
end

--- Train; `use`: false, or the options of pipe:use. Returns losses and state in the form that
--- training.difference compares.
function synchronous.run(made, options, use)
  local merged = { loss = made.loss, seed = 5 }
  for key, value in pairs(options) do merged[key] = value end
  local pipe <close> = gp.pipeline(made.model(), merged)
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  if use then pipe:use(opt, { barrier = use.barrier, clip_norm = use.clip_norm }) end
  local run = { losses = {}, first = {}, gradients = {} }
  for step = 1, made.steps do
    opt.lr = 1e-2 / step
    run.losses[step] = pipe:step(made.x, made.y)
    if not use then opt:step() end
  end
  run.evaluated, run.state = pipe:evaluate(made.x, made.y), pipe:state_dict()
  return run
end

-- Returns the distance of two tensors by the norm, because single elements nearly cancel.
local function apart(a, b)
  local wide = b:to "cpu":to "f64"
  local gap = a:to "cpu":to "f64" - wide
  return math.sqrt((gap * gap):sum():item() / (wide * wide):sum():item())
end

--- Return the largest relative distance of two runs' losses and parameters.
function synchronous.distance(a, b)
  local worst = 0
  for name, tensor in pairs(a.state) do worst = math.max(worst, apart(tensor, b.state[name])) end
  for step, loss in ipairs(a.losses) do
    worst = math.max(worst, math.abs(loss - b.losses[step]) / math.abs(b.losses[step]))
  end
  return worst
end

return synchronous
