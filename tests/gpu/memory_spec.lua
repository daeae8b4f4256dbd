-- tests/gpu/memory_spec.lua - a step allocates no memory of a GPU, and close frees all of it.
local gp = require "gpipe"
local inside = require "gpipe.pipeline.object".inside
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local placements = require "tests.support.placements"
local nn, optim = gp.nn, gp.optim
local on_gpu = gpu.spec(it, pending)
local x, y = models.ids(7, 6), models.ids(7, 6)

-- Returns the bytes held on all GPUs, and the number of allocations on the CPU.
local function held()
  collectgarbage()
  local bytes = 0
  for name, memory in pairs(gp.memory()) do
    if name:match "^cuda" then bytes = bytes + memory.live end
  end
  return bytes
end

local function pipe_of(placement, options)
  local merged = {
    balance = { 2, 3, 2 }, devices = placements.devices(placement, 3), chunks = 3,
    loss = nn.CrossEntropyLoss(),
  }
  for key, value in pairs(options or {}) do merged[key] = value end
  return gp.pipeline(models.gpt()(), merged)
end

-- Lists the placements that this machine can have, with CPUs among them.
local function all_placements()
  local names = placements.names()
  names[#names + 1] = "mixed"
  return names
end

describe("after the first step of a batch shape", function()
  for _, schedule in ipairs { "gpipe", "1f1b", "pipedream" } do
    on_gpu("a step allocates nothing, on GPUs or on the CPU: " .. schedule, function()
      for _, placement in ipairs(all_placements()) do
        local pipe <close> = pipe_of(placement, { schedule = schedule })
        pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
        for _ = 1, 3 do pipe:step(x, y) end -- launched, captured, replayed
        local before, calls = held(), gp.memory().cpu.allocations
        for _ = 1, 10 do pipe:step(x, y) end
        assert.equal(calls, gp.memory().cpu.allocations)
        assert.equal(before, held())
      end
    end)
  end

  on_gpu("optimizers, clipping, accumulation and evaluation allocate only the first time",
    function()
    local pipe <close> = pipe_of "same"
    local params = pipe:parameters()
    local opt = optim.AdamW(params, { lr = 1e-2 })
    local function all()
      pipe:step(x, y)
      pipe:step(x, y, { accumulate = true })
      optim.clip_grad_norm(params, 1)
      opt:step()
      pipe:evaluate(x, y)
    end
    for _ = 1, 3 do all() end
    local before = held()
    for _ = 1, 5 do all() end
    assert.equal(before, held())
  end)
end)

describe("close", function()
  on_gpu("gives all memory back", function()
    for _, placement in ipairs(all_placements()) do
      local before = held()
      for _ = 1, 3 do
        do
          local pipe <close> = pipe_of(placement)
          local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
          for _ = 1, 3 do
            pipe:step(x, y)
            opt:step()
          end
          assert.is_true(held() > before)
        end
        assert.equal(before, held())
      end
    end
  end)

  on_gpu("leaves values and gradients that the script still holds as they are", function()
    local pipe = pipe_of "same"
    pipe:step(x, y)
    local entry = pipe:parameters()[1]
    local value, grad = entry.value, entry.grad
    local copies = { value:to "cpu", grad:to "cpu" }
    pipe:close()
    collectgarbage()
    assert.is_true(gp.equal(copies[1], value:to "cpu"))
    assert.is_true(gp.equal(copies[2], grad:to "cpu"))
  end)
end)

-- ---- what is reported ---------------------------------------------------------------------------

-- Bytes of the products' workspace, which every logical device keeps from its first product on
-- (compute capability 9.0).
local WORKSPACE = 32 << 20

-- Counts bytes by the runtime's own account. On the host-compiled plugin the GPU's account must
-- agree, except for workspaces of products, which the runtime does not count.
local function live_bytes(pipe)
  collectgarbage()
  local memory, bytes, own = gp.memory(), {}, (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host"
  for d, device in ipairs(pipe.devices) do
    local found = memory[device.memory]
    bytes[device.memory] = device.kind == "cuda" and found.live or nil
    if own and device.kind == "cuda" then
      local beside = found.total - inside(pipe).core:free_bytes(d) - found.live
      assert.equal(0, beside % WORKSPACE, device.name)
      assert.is_true(beside >= 0 and beside <= #pipe.devices * WORKSPACE, device.name)
    end
  end
  return bytes
end

-- Sums the bytes reported of the passes so far, by memory space, because devices may share one.
local function reported_bytes(pipe)
  local bytes = {}
  for d, device in ipairs(pipe.devices) do
    if device.kind == "cuda" then
      bytes[device.memory] = (bytes[device.memory] or 0) + pipe.stats.peak_bytes[d]
    end
  end
  return bytes
end

local function minus(a, b)
  local difference = {}
  for name, bytes in pairs(a) do difference[name] = bytes - b[name] end
  return difference
end

describe("the bytes that a pipeline reports for its devices are those that it takes", function()
  local CASES = {
    { "gpipe" }, { "1f1b", checkpoint = "always" }, { "zb_h1" }, { "pipedream" },
    { "chimera", cut = { 4, 3 } }, { "1f1b", use = { clip_norm = 1 } },
  }
  for _, case in ipairs(CASES) do
    on_gpu(case[1] .. (case.checkpoint or ""), function()
      for _, placement in ipairs(all_placements()) do
        local cut = case.cut or { 2, 3, 2 }
        local pipe <close> = pipe_of(placement, {
          balance = cut, devices = placements.devices(placement, #cut), schedule = case[1],
          checkpoint = case.checkpoint, chunks = case.cut and 4 or 3,
        })
        pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }), case.use)
        local before = live_bytes(pipe)
        pipe:step(x, y)
        pipe:flush()
        local live, reported = live_bytes(pipe), reported_bytes(pipe)
        -- The pipeline takes second copies of the weights when it is made.
        if not case.cut then assert.same(reported, minus(live, before), placement) end
        pipe:evaluate(x, y)
        assert.same(minus(reported_bytes(pipe), reported), minus(live_bytes(pipe), live), placement)
      end
    end)
  end
end)
