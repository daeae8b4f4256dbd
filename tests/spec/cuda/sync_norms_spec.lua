-- tests/spec/cuda/sync_norms_spec.lua - `sync_batch_norm` on GPUs: replicas whose parts are copied to
-- the host's memory in the middle of a pass, and back, have the same bits in every process and for
-- every cut.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local jobs = dofile "tests/support/jobs.lua"
local nn = gp.nn
local on_gpu = gpu.spec(it)

-- ---- bits --------------------------------------------------------------------------------------

local SCRIPT = "tests/support/sync_norms.lua"

-- Lines of two replicas of four micro-batches, with so many stages, over so many ranks. Devices are
-- the GPUs in turn.
local function lines_of(ranks, stages, checkpoint, schedule, variables)
  local words = { SCRIPT, "2", "4", tostring(stages), checkpoint, schedule }
  local out, err, code
  if ranks == 1 then
    out, err, code = child.run(words, { environment = variables })
  else
    out, err, code = jobs.run("unix", ranks, words, variables)
  end
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  return out
end

local first

local function check(...)
  first = first or lines_of(1, 1, "never", "1f1b")
  assert.truthy(#first > 10000)
  assert.truthy(first == lines_of(...))
end

describe("replicas on GPUs that normalise together", function()
  on_gpu("have the same bits for every cut, policy and schedule", function()
    check(1, 2, "always", "1f1b")
    check(1, 2, "offload", "gpipe")
    check(1, 3, "selective", "zb_h1")
    check(1, 2, "never", "dualpipe")
  end, 2)

  on_gpu("have them over two and four processes", function()
    check(2, 1, "never", "1f1b")
    check(2, 2, "always", "gpipe")
    check(4, 2, "never", "1f1b")
  end, 2)

  on_gpu("have them where work runs as late as it may", function()
    check(1, 2, "always", "1f1b", { GPIPE_TEST_LAZY = "1" })
    check(2, 1, "never", "1f1b", { GPIPE_TEST_LAZY = "1" })
  end, 2)
end)

-- ---- what they compute -------------------------------------------------------------------------

local F64 = { dtype = "f64" }
local X = gp.randn({ 24, 5 }, { seed = 1, dtype = "f64" })
local Y = gp.randn({ 24, 2 }, { seed = 2, dtype = "f64" })

local function pipeline(devices, more)
  gp.seed(9)
  local all = { devices = devices, chunks = 3, replicas = 2, sum_group = 3, loss = nn.MSELoss(),
    sync_batch_norm = true }
  for key, value in pairs(more or {}) do all[key] = value end
  return gp.pipeline(nn.Sequential {
    nn.Linear(5, 4, F64), nn.BatchNorm1d(4, F64), nn.Tanh(), nn.Linear(4, 3, F64),
    nn.BatchNorm1d(3, { dtype = "f64", momentum = false }), nn.Linear(3, 2, F64),
  }, all)
end

-- The largest difference of two states after two steps.
local function apart(pipe, other)
  local most = 0
  for _ = 1, 2 do most = math.max(most, math.abs(pipe:step(X, Y) - other:step(X, Y))) end
  local state = other:state_dict()
  for name, value in pairs(pipe:state_dict()) do
    local off = value:to "cpu":to "f64" - state[name]:to "cpu":to "f64"
    most = math.max(most, off:abs():max():item())
  end
  return most
end

describe("sync_batch_norm on GPUs", function()
  local cpus = { "cpu:0", "cpu:1" }

  on_gpu("computes what it does on CPU devices, to a rounding of f64", function()
    local pipe <close> = pipeline { "cuda:0", "cuda:1" }
    local other <close> = pipeline(cpus)
    assert.truthy(apart(pipe, other) < 1e-13)
  end, 2)

  on_gpu("joins a GPU and a CPU device, either way round", function()
    for _, devices in ipairs { { "cuda:0", "cpu:0" }, { "cpu:0", "cuda:0" } } do
      local pipe <close> = pipeline(devices)
      local other <close> = pipeline(cpus)
      assert.truthy(apart(pipe, other) < 1e-13)
      for _, device in ipairs(pipe:memory()) do assert.equal(device.planned, device.measured) end
    end
  end)

  on_gpu("captures the tasks that gather nothing", function()
    local pipe <close> = pipeline({ "cuda:0", "cuda:1" }, { chunks = 4, sum_group = 1 })
    local alone <close> = pipeline({ "cuda:0", "cuda:1" }, { chunks = 4, sum_group = 1,
      sync_batch_norm = false })
    for _ = 1, 3 do pipe:step(X, Y) alone:step(X, Y) end
    local own, others = pipe:describe().devices[1].graphs, alone:describe().devices[1].graphs
    assert.equal(others.tasks - 2 * 4, own.tasks) -- F and B of four micro-batches
  end, 2)

  on_gpu("can be profiled, with the same losses", function()
    local function losses(profiles)
      local pipe <close> = pipeline { "cuda:0", "cuda:1" }
      local list = { pipe:step(X, Y), pipe:step(X, Y) }
      if profiles then pipe:profile(X, Y) end
      list[3] = pipe:step(X, Y)
      return list
    end
    assert.same(losses(false), losses(true))
  end, 2)
end)

-- ---- failures ----------------------------------------------------------------------------------

local FAULTY = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
gp.seed(3)
local model = nn.Sequential {nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 6), nn.BatchNorm1d(6)}
local pipe <close> = gp.pipeline(model, {
  replicas = 2, chunks = 2, loss = nn.MSELoss(), sync_batch_norm = true,
  devices = gp.ranks() > 1 and {"0/cuda:0", "1/cuda:1"} or {"cuda:0", "cuda:1"},
})
pipe:use(optim.Adam(pipe:parameters(), {lr = 0.1}))
local x, y = gp.randn({8, 4}, {seed = 1}), gp.randn({8, 6}, {seed = 2})
local before = pipe:state_dict()["2.running_mean"]:to "cpu":bytes()
local good, message = pcall(pipe.step, pipe, x, y)
print(good, good and pipe.stats.skipped or message:match "[^\n]*$")
print("unchanged", before == pipe:state_dict()["2.running_mean"]:to "cpu":bytes()) ]]

describe("a failure on one of the GPUs that normalise together", function()
  for _, ranks in ipairs { 1, 2 } do
    on_gpu(("is raised on both, and leaves them as they were (%d ranks)"):format(ranks), function()
      local path = child.file(FAULTY)
      for _, fault in ipairs { "device=1,op=F,micro=2", "device=0,op=B,micro=1" } do
        local variables = { GPIPE_FAULT = fault .. ",step=0,action=fail" }
        local out, err, code
        if ranks == 1 then
          out, err, code = child.run({ path }, { environment = variables })
        else
          out, err, code = jobs.run("unix", ranks, { path }, variables)
        end
        assert.equal(0, code, err)
        assert.matches("false\t.*GPIPE_FAULT asked for this failure\nunchanged\ttrue", out)
      end
      os.remove(path)
    end, 2)
  end
end)
