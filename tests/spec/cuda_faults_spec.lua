-- tests/spec/cuda_faults_spec.lua - calls of CUDA that fail: a clear error, and the process trains on.
--
-- Only the host's form of the plugin can let any call fail (GPIPE_TEST_CUDA_FAIL, tests/cuda/cudart). Each case is
-- a process: it trains, one call fails, it trains again. Whatever leaks is found at its end under a sanitizer.

local child = dofile "tests/child.lua"

local SCRIPT = [[
  local gp = require "gpipe"
  local models = require "tests.support.models"
  local function train()
    local model, _, x, y = models.classifier()
    local pipe <close> = assert(gp.pipeline(model(), {
      balance = { 2, 2 }, chunks = 3, loss = gp.nn.CrossEntropyLoss(), seed = 2, devices = { "cuda:0", "cuda:1" },
    }))
    local opt, text = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }), ""
    for _ = 1, 4 do
      text = text .. (" %a"):format(assert(pipe:step(x, y)))
      assert(opt:step() ~= false)
    end
    return text
  end
  for _ = 1, 2 do print(select(2, pcall(train))) collectgarbage() end
]]

-- What the two trainings of a process say; `fail`: NAME:N[:CODE].
local function lines_of(fail)
  local out, err, code = child.run({ "-" }, { input = SCRIPT, environment = { GPIPE_TEST_CUDA_FAIL = fail } })
  assert.are.equal(0, code, ("%s: exit code %d, %s%s"):format(fail, code, out, err))
  local first, second = out:match "^(.-)\n(.-)\n$"
  assert(second, fail .. ": " .. out .. err)
  return first, second
end

-- On the host's form, of which two trainings give the same losses when nothing fails.
local healthy
local function on_host_form(f)
  return function()
    if not (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host" then pending("no way to let CUDA fail") return end
    if not healthy then
      local first, second = lines_of "none:0"
      assert.are.equal(first, second)
      assert.matches("^ 0x", first)
      healthy = first
    end
    f()
  end
end

-- Calls at which a training may fail: early, while it is set up, in steps, in graphs that are replayed.
local AT = { 1, 2, 3, 7, 20, 60 }

-- How many of the calls were reached, and failed with a text that names the GPU.
local function count_failures(name, code, check)
  local failed = 0
  for _, n in ipairs(AT) do
    local first, second = lines_of(("%s:%d%s"):format(name, n, code))
    if first ~= healthy then
      failed = failed + 1
      assert.matches("cuda", first)
      check(first, second, n)
    end
  end
  return failed
end

describe("a training whose call fails once says so, and the next one is as always:", function()
  for _, name in ipairs {
    "cudaMalloc", "cudaHostAlloc", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cudaMemcpyAsync",
    "cudaMemcpyPeerAsync", "cudaMemsetAsync", "cudaLaunchKernel", "cudaEventRecordWithFlags", "cudaStreamWaitEvent",
    "cudaStreamSynchronize", "cudaStreamBeginCapture", "cudaStreamEndCapture",
    "cudaGraphInstantiate", "cudaGraphLaunch",
  } do
    it(name, on_host_form(function()
      local failed = count_failures(name, "", function(first, second, n)
        assert.are.equal(healthy, second, ("%s:%d after %q"):format(name, n, first))
      end)
      assert.is_true(failed > 0, name .. " was never called")
    end))
  end
end)

describe("after a GPU was lost", function()
  it("every further use of it gives the text of the first error", on_host_form(function()
    local failed = count_failures("cudaLaunchKernel", ":700", function(first, second)
      assert.matches("nothing more can run on this GPU", first)
      assert.matches("cudaErrorIllegalAddress", first)
      assert.matches("nothing more can run on this GPU", second)
    end)
    assert.is_true(failed > 3)
  end))

  it("a machine without GPUs says why there is none", on_host_form(function()
    for count, text in pairs { ["0"] = "no GPU that it can see", none = "no NVIDIA driver on this machine" } do
      local out, _, code = child.run({ "--list-devices" }, { environment = { GPIPE_TEST_GPUS = count } })
      assert.are.equal(0, code)
      assert.matches(text, out)
    end
  end))
end)

describe("a GPU that is too small", function()
  it("is said to be, with what was wanted and what is free", on_host_form(function()
    local out = child.run({ "-" }, { input = SCRIPT, environment = { GPIPE_TEST_GPU_MEMORY = "3000" } })
    assert.matches("cuda:%d: out of memory: wanted [%d.]+ %a+, free are [%d.]+ %a+ of 2.9 KiB", out)
  end))
end)
