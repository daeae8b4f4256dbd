-- tests/spec/cuda/offload_spec.lua - checkpoint = "offload" on a GPU: saved values go to the host
-- beside the compute stream and come back, with the bits of "never".

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local nn, optim = gp.nn, gp.optim

local on_gpu = gpu.spec(it)

local function blocks()
  gp.seed(3)
  local list = {}
  for i = 1, 4 do
    list[i] = nn.Sequential {
      nn.LayerNorm(64), nn.Linear(64, 128), nn.GELU(), nn.Dropout(0.1), nn.Linear(128, 64),
    }
  end
  return nn.Sequential(list)
end

-- Returns what some steps leave behind, as text, and the report of the memory. From the second
-- step on captured graphs run.
local function train(schedule, checkpoint, balance)
  local devices = {}
  for s = 1, #balance do devices[s] = "cuda:0" end
  gp.seed(1)
  local x, y = gp.randn { 64, 64 }, gp.randn { 64, 64 }
  local model = blocks()
  local pipe <close> = gp.pipeline(model, {
    balance = balance, devices = devices, chunks = 8, schedule = schedule,
    checkpoint = checkpoint, loss = nn.MSELoss(), seed = 5,
  })
  local opt, parts = optim.SGD(pipe:parameters(), { lr = 1e-2 }), {}
  for i = 1, 4 do
    parts[i] = ("%a"):format(pipe:step(x, y))
    opt:step()
  end
  for _, entry in ipairs(pipe:parameters()) do parts[#parts + 1] = entry.param:bytes() end
  return table.concat(parts, "\n"), pipe:memory()
end

describe("checkpoint = \"offload\" on a GPU", function()
  for _, case in ipairs { { "gpipe", { 4 } }, { "gpipe", { 2, 2 } }, { "1f1b", { 1, 1, 1, 1 } },
    { "zb_h1", { 1, 1, 1, 1 } } } do
    on_gpu(("gives the bits of never in less memory: %s, %d stages"):format(case[1], #case[2]),
      function()
        local wanted, never = train(case[1], "never", case[2])
        local got, memory = train(case[1], "offload", case[2])
        assert.is_true(got == wanted)
        for d, one in ipairs(memory) do
          assert.equal(one.planned, one.measured)
          if one.host then
            assert.equal(one.host.planned, one.host.measured)
            assert.is_true(one.planned < never[d].planned)
          end
        end
        if case[1] ~= "zb_h1" then assert.is_truthy(memory[1].host) end
        local some
        got, some = train(case[1], { "offload", "keep", "recompute", "offload" }, case[2])
        assert.is_true(got == wanted)
        assert.equal(some[1].planned, some[1].measured)
        if case[1] == "gpipe" then assert.is_truthy(some[1].host) end
      end)
  end
end)
