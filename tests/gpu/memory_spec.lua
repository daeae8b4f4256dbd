-- tests/gpu/memory_spec.lua - a step takes no memory of a GPU, and close gives all of it back.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local placements = require "tests.support.placements"
local nn, optim = gp.nn, gp.optim
local on_gpu = gpu.spec(it, pending)
local x, y = models.ids(7, 6), models.ids(7, 6)

-- Bytes held on all GPUs, and calls for memory of the CPU.
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

-- Placements that this machine can have, with CPUs among them.
local function all_placements()
  local names = placements.names()
  names[#names + 1] = "mixed"
  return names
end

describe("after the first step of a batch shape", function()
  for _, schedule in ipairs { "gpipe", "1f1b", "pipedream" } do
    on_gpu("a step takes no memory, of GPUs or of the CPU: " .. schedule, function()
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

  on_gpu("optimizers, clipping, accumulation and evaluation take none after their first time",
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
