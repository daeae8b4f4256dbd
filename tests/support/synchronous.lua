-- tests/support/synchronous.lua - train under every synchronous schedule and see whether one stage gives the same
-- bits.

local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local synchronous = {}

--- Every synchronous schedule with its options: {name, option = value, copies = 2 where it has two of the weights}.
synchronous.CASES = {
  { "naive" }, { "gpipe" }, { "gpipe", backward = "lifo" },
  { "1f1b" }, { "1f1b", warmup = 2 }, { "1f1b", warmup = 4 },
  { "interleaved_1f1b" }, { "interleaved_1f1b", stages_per_device = 4 }, { "interleaved_1f1b", group = 3 },
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

--- The case's table for the option `schedule`: pipelines may keep it.
function synchronous.schedule(case)
  local copy = {}
  for key, value in pairs(case) do copy[key] = value end
  return copy
end

--- Whether a schedule exists for so many stages and micro-batches.
function synchronous.is_defined(case, stages, m)
  local probe = synchronous.schedule(case)
  probe[1] = nil
  local per = 1
  for _, p in ipairs { 1, 2 } do -- one or both of them exist
    probe.devices, probe.chunks = p, m
    local good, made = pcall(gp.schedule.build, case[1], probe)
    if good then per = made.stages // made.devices break end
  end
  if stages % per ~= 0 then return false end
  probe.devices, probe.chunks = stages // per, m
  return (pcall(gp.schedule.build, case[1], probe))
end

--- An even cut of n layers.
function synchronous.cut(n, stages)
  local list = {}
  for s = 1, stages do list[s] = n * s // stages - n * (s - 1) // stages end
  return list
end

-- Twelve layers, or n, with a skip from the first to the last, dropout, and a frozen bias.
local function skipping(n)
  gp.seed(3)
  local kept
  local Keep, Add = nn.class("Keep"), nn.class("Add")
  function Keep.forward(_, x) kept = x return x end
  function Add.forward(_, x) return x + kept * 0.5 end
  local layers = { nn.Sequential { nn.Linear(5, 6), nn.Tanh(), Keep() } }
  for i = 2, n - 1 do
    layers[i] = nn.Residual(nn.Sequential { nn.LayerNorm(6), nn.Linear(6, 6), nn.Dropout(0.1), nn.Tanh() })
  end
  layers[n] = nn.Sequential { Add(), nn.Linear(6, 3) }
  local model = nn.Sequential(layers)
  model:freeze "^2%..*bias$"
  return model
end

--- Ten steps of regression on n rows (default 19): uneven for most numbers of micro-batches.
function synchronous.regression(fields)
  local n = fields and fields.rows or 19
  local made = {
    model = function() return skipping(8) end, layers = 8, steps = 10, loss = nn.MSELoss(),
    x = gp.randn({ n, 5 }, { seed = 21 }), y = gp.randn({ n, 3 }, { seed = 22 }),
  }
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

--- Train; `use`: false, or the options of pipe:use. Returns losses and state as training.difference compares them.
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

-- Of two tensors, by the norm: single elements nearly cancel.
local function apart(a, b)
  local wide = b:to "f64"
  local gap = a:to "f64" - wide
  return math.sqrt((gap * gap):sum():item() / (wide * wide):sum():item())
end

--- The largest relative distance of two runs' losses and parameters.
function synchronous.distance(a, b)
  local worst = 0
  for name, tensor in pairs(a.state) do worst = math.max(worst, apart(tensor, b.state[name])) end
  for step, loss in ipairs(a.losses) do
    worst = math.max(worst, math.abs(loss - b.losses[step]) / math.abs(b.losses[step]))
  end
  return worst
end

return synchronous
