-- tests/spec/cuda/update_graphs_spec.lua - where devices decide about the end of a step themselves,
-- and replay it (runtime/engine/update/queued.c), they leave what hosts leave that decide and
-- launch.
--
-- Losses, parameters, moments, counts of steps and of skips are compared with ==, after each of a
-- few steps.

local child = dofile "tests/child.lua"
local gpu = require "tests.support.gpu"

local on_gpu = gpu.spec(it)

local SCRIPT = [[
  local gp = require "gpipe"
  local models = require "tests.support.models"
  local nn, optim = gp.nn, gp.optim
  local two = #gp.devices() > 1 and { "cuda:0", "cuda:1" } or { "cuda:0", "cuda:0" }

  local function mlp()
    gp.seed(3)
    return nn.Sequential {
      nn.Linear(6, 23), nn.Tanh(), nn.LayerNorm(23), nn.Linear(23, 23), nn.GELU(), nn.Linear(23, 3),
    }
  end
  local function tied()
    local model = mlp()
    local first, last = nn.Linear(6, 6), nn.Linear(6, 6)
    last.weight = first.weight
    return nn.Sequential { first, nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), last, model }
  end

  local x, y = models.rows_of(8, 6), models.rows_of(8, 3)
  local broken = x:clone()
  broken[5][2] = 0 / 0
  local few = x:narrow(1, 1, 5)

  -- A case changes something before a step of that number, or replaces x.
  local function rates(opt, i) opt.groups[1].lr = 0.02 / i end
  local function wrong_at(n) return function(_, i) if i == n then return broken end end end

  local AdamW, Adam, SGD = { "AdamW", { lr = 0.02 } }, { "Adam", { lr = 0.02, weight_decay = 0.1 } },
    { "SGD", { lr = 0.1, momentum = 0.9 } }
  local CASES = {
    { "rates", AdamW, before = rates },
    { "Adam clipped", Adam, use = { clip_norm = 0.3 }, before = rates },
    { "momentum", SGD, before = rates },
    { "seldom clipped", SGD, use = { clip_norm = 0.9 }, devices = two },
    { "a step skipped", AdamW, before = wrong_at(4), use = { clip_norm = 0.3 }, devices = two },
    { "a step refused", AdamW, before = wrong_at(4), finite = true, devices = two },
    { "a loss refused", AdamW, before = wrong_at(4), finite = true, use = { clip_norm = 0.3 } },
    { "nothing asked", AdamW, before = wrong_at(6), finite = "ignore", devices = two },
    { "nothing asked, clipped", AdamW, before = wrong_at(6), finite = "ignore", use = { clip_norm = 0.3 } },
    { "bf16", AdamW, precision = "bf16", use = { clip_norm = 0.3 }, devices = two },
    { "f16", AdamW, precision = "f16", loss_scale = { initial = 2 ^ 30, backoff = 2 ^ -8, window = 2 },
      use = { clip_norm = 0.3 }, devices = two },
    { "f16 by the script", AdamW, precision = "f16", loss_scale = { initial = 2 ^ 30, backoff = 2 ^ -8 },
      by_script = true, devices = two },
    { "groups", groups = true, use = { clip_norm = 0.3 }, before = rates, devices = two },
    { "tied", AdamW, model = tied, devices = two, use = { clip_norm = 0.3 } },
    { "accumulated", AdamW, model = tied, devices = two, by_script = true, accumulate = true,
      precision = "f16", loss_scale = { initial = 2 ^ 12 } },
    { "two copies", AdamW, schedule = "chimera", devices = two, use = { clip_norm = 0.3 } },
    { "batches of two shapes", AdamW, before = function(_, i) return i % 3 == 0 and few end },
    { "another optimizer", AdamW, before = function(_, i, pipe)
      if i == 5 then pipe:use(optim.SGD(pipe:parameters(), { lr = 0.1, momentum = 0.9 })) end
    end },
    { "moments loaded", Adam, before = function(opt, i)
      if i == 5 then opt:load_state_dict(opt:state_dict()) end
    end },
    { "no barrier", AdamW, devices = two, use = { barrier = false } },
    { "RMSprop", { "RMSprop", { centered = true, momentum = 0.9, eps = 0.01 } }, devices = two },
    { "Adagrad", { "Adagrad", { lr_decay = 0.1 } }, devices = two },
    { "Lion", { "Lion", { lr = 0.01 } }, devices = two },
    { "Adamax", { "Adamax", { lr = 0.01 } }, devices = two },
    { "Adadelta", { "Adadelta", { lr = 0.5 } }, devices = two },
    { "NAdam", { "NAdam", { lr = 0.01, weight_decay = 0.1, decoupled_weight_decay = true } }, devices = two },
  }

  local function optimizer(case, pipe)
    local list = pipe:parameters()
    if not case.groups then return optim[case[2] [1] ](list, case[2][2]) end
    local decay, rest = {}, {}
    for i, p in ipairs(list) do table.insert(i % 2 == 1 and decay or rest, p) end
    return optim.AdamW({ { params = decay, weight_decay = 0.1 }, { params = rest, lr = 0.01 } },
      { lr = 0.02, weight_decay = 0 })
  end

  local function bits(text, state)
    local names = {}
    for name in pairs(state) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      local sum = 0
      for k, v in ipairs(state[name]:to("cpu"):reshape { -1 }:totable()) do sum = sum + v * k end
      text[#text + 1] = ("%a"):format(sum)
    end
  end

  for _, case in ipairs(CASES) do
    local pipe <close> = gp.pipeline((case.model or mlp)(), { chunks = 2, loss = nn.MSELoss(),
      devices = case.devices or { "cuda:0" }, precision = case.precision, schedule = case.schedule,
      loss_scale = case.loss_scale, finite = case.finite })
    local opt = optimizer(case, pipe)
    if not case.by_script then pipe:use(opt, case.use or {}) end
    local text = {}
    for i = 1, 7 do
      local input = case.before and case.before(opt, i, pipe) or x
      local target = y:narrow(1, 1, input:size(1))
      local ok, loss = pcall(pipe.step, pipe, input, target,
        { accumulate = case.accumulate and i % 3 ~= 0 or nil })
      if case.by_script then opt:step() end
      text[#text + 1] = ok and ("%a"):format(loss) or "failed"
      pipe:flush()
      bits(text, pipe:state_dict())
      bits(text, opt:state_dict())
      text[#text + 1] = tostring(pipe.stats.skipped)
    end
    print(case[1] .. ": " .. table.concat(text, " "))
  end
]]

local function run(environment)
  local out, err, code = child.run({ "-" }, { input = SCRIPT, environment = environment })
  assert.are.equal(0, code, out .. err)
  return out, err
end

on_gpu("devices end every step with the bits of hosts, on late streams too", function()
  local want = run { GPIPE_UPDATE_GRAPHS = "0" }
  assert.are.equal(want, (run {}))
  assert.are.equal(want, (run { GPIPE_TEST_LAZY = "1" }))
end, 2)

-- ---- launches ----------------------------------------------------------------------------------

-- Counts the kernels, copies and graphs that each step of a model of many parameters gives to
-- streams; only the plugin compiled for the host can count them.
local COUNT = [[
  local gp = require "gpipe"
  local nn = gp.nn
  local layers = {}
  for i = 1, 60 do layers[i] = nn.Linear(4, 4) end
  local pipe <close> = gp.pipeline(nn.Sequential(layers), { devices = { "cuda:0" }, chunks = 1,
    loss = nn.MSELoss() })
  local weights, biases = {}, {}
  for i, p in ipairs(pipe:parameters()) do table.insert(i % 2 == 1 and weights or biases, p) end
  local groups = { { params = weights, weight_decay = 0.1 }, { params = biases, weight_decay = 0 } }
  pipe:use(gp.optim.AdamW(groups, { lr = 1e-3 }), { clip_norm = 1e-6 })
  local count = package.loadlib(os.getenv "GPIPE_CUDA_PLUGIN" or "", "gp_queue_count")
  local many = {}
  for i = 1, 4000 do many[i] = i end
  for _ = 1, 4 do
    if count then count(table.unpack(many)) end
    pipe:step(gp.ones { 2, 4 }, gp.ones { 2, 4 })
    print(count and select("#", count(table.unpack(many))))
  end
]]

local function counts(environment)
  local out, err, code = child.run({ "-" }, { input = COUNT, environment = environment })
  assert.are.equal(0, code, out .. err)
  local list = {}
  for line in out:gmatch "[^\n]+" do list[#list + 1] = tonumber(line) end
  return list
end

on_gpu("a replayed end of a step takes five launches, however many parameters there are", function()
  local with, without = counts {}, counts { GPIPE_UPDATE_GRAPHS = "0" }
  if not with[4] then return end
  -- Launched one by one they are 15: 3 x 2 for norms of 48 tensors each, 3 scales, 2 x 2 updates of
  -- 32, a copy of norms, and one of faults. In graphs they are 5: what is offered, norms, the
  -- decision, scales, updates.
  assert.are.same({ without[3] - 10, without[4] - 10 }, { with[3], with[4] })
end)
