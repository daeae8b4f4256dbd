-- tests/gpu/matrix_spec.lua - every synchronous schedule in every precision, fused and not, gives
-- the bits of one stage: on one GPU, and on two and three where the machine has them.
--
-- One cell trains one model under one schedule. Without --full only a few of the cells run.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"
local nn = gp.nn
local on_gpu = gpu.spec(it)

local M = 8 -- micro-batches
local WIDTH, VOCABULARY = 16, 13

-- Eight layers: products that fuse, attention that cuDNN computes in halves, and attention with
-- dropout, which cuDNN does not compute.
local function model()
  gp.seed(8)
  local function attention(p)
    return nn.Residual(nn.Sequential { nn.LayerNorm(WIDTH),
      nn.CausalSelfAttention(WIDTH, 2, { dropout = p, kv_heads = p and 1 or 2 }) })
  end
  local function mlp()
    return nn.Residual(nn.Sequential { nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH),
      nn.GELU "tanh", nn.Linear(3 * WIDTH, WIDTH), nn.Dropout(0.1) })
  end
  return nn.Sequential { nn.Embedding(VOCABULARY, WIDTH), attention(), mlp(), attention(0.1), mlp(),
    nn.Dropout(0.2), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY) }
end

local function ids(step)
  local list = {}
  for i = 1, 11 do -- eleven rows: two sizes of micro-batches
    list[i] = {}
    for t = 1, 5 do list[i][t] = (i * step + t * t) % VOCABULARY end
  end
  return gp.tensor(list, { dtype = "i64" })
end
local MADE = { model = model, steps = 4, x = ids(3), y = ids(5), loss = nn.CrossEntropyLoss() }

-- Places the n-th stage on GPU n modulo `count`.
local function devices(stages, count)
  local list = {}
  for s = 0, stages - 1 do list[s + 1] = "cuda:" .. s % count end
  return list
end

-- Returns the largest number of stages that the schedule and the eight layers allow, and of its
-- devices.
local function size_of(case)
  for _, stages in ipairs { 8, 4, 2 } do
    for _, per in ipairs { 1, 2, 4 } do
      local schedule = synchronous.schedule(case)
      schedule[1], schedule.devices, schedule.chunks = nil, stages // per, M
      local good, made = pcall(gp.schedule.build, case[1], schedule)
      if good and made.stages == stages then return stages, made.devices end
    end
  end
end

local function run(options, precision, fuse)
  options.chunks, options.precision, options.fuse = M, precision, fuse
  return synchronous.run(MADE, options, {})
end

-- Lists what differs from the bits of one stage, a line each. Two copies of the weights add two
-- sums of gradients: their bits are only the same on every number of GPUs.
local function differences(cases, precision, fuse)
  local list = {}
  local whole = run({ balance = { 8 }, devices = { "cuda:0" }, schedule = "gpipe" }, precision, fuse)
  for _, case in ipairs(cases) do
    local stages, device_count = size_of(case)
    local wanted = not synchronous.COPIES[case[1]] and whole
    for count = 1, math.min(gpu.count(), 3) do
      local got = run({ balance = synchronous.cut(8, stages), schedule = synchronous.schedule(case),
        devices = devices(device_count, count) }, precision, fuse)
      wanted = wanted or got
      local what = training.difference(wanted, got)
      if what then
        list[#list + 1] = ("%s on %d: %s"):format(synchronous.title(case), count, what)
      end
    end
  end
  return table.concat(list, "\n")
end

-- The cells that run without --full: schedules that differ much from each other.
local FEW = {
  ["bf16, fused"] = { { "interleaved_1f1b" }, { "zbv" }, { "chimera" } },
  ["f16, op by op"] = { { "1f1b" } },
}

describe("a training on GPUs gives the bits of one stage", function()
  for _, precision in ipairs { "f32", "tf32", "bf16", "f16" } do
    for _, fuse in ipairs { true, false } do
      local name = ("%s, %s"):format(precision, fuse and "fused" or "op by op")
      if FEW[name] then
        on_gpu(name, function() assert.equal("", differences(FEW[name], precision, fuse)) end)
      end
      on_gpu("every schedule #slow: " .. name, function()
        assert.equal("", differences(synchronous.CASES, precision, fuse))
      end)
    end
  end
end)
