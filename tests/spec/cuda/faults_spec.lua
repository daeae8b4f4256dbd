-- tests/spec/cuda/faults_spec.lua - a call of CUDA that fails gives a clear error, and the process
-- trains on.
--
-- Only the plugin compiled for the host can let any call fail (GPIPE_TEST_CUDA_FAIL,
-- tests/cuda/cudart). Each case is a process: it trains, one call fails, it trains again. A
-- sanitizer finds leaks at its end.

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

-- Returns what the two trainings of a process print; `fail`: NAME:N[:CODE].
local function lines_of(fail)
  local out, err, code = child.run({ "-" },
    { input = SCRIPT, environment = { GPIPE_TEST_CUDA_FAIL = fail } })
  assert.are.equal(0, code, ("%s: exit code %d, %s%s"):format(fail, code, out, err))
  local first, second = out:match "^(.-)\n(.-)\n$"
  assert(second, fail .. ": " .. out .. err)
  return first, second
end

-- Runs on the plugin compiled for the host, where two trainings give the same losses when nothing
-- fails.
local healthy
local function on_host_form(f)
  return function()
    if not (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host" then
      pending("no way to let CUDA fail") return
    end
    if not healthy then
      local first, second = lines_of "none:0"
      assert.are.equal(first, second)
      assert.matches("^ 0x", first)
      healthy = first
    end
    f()
  end
end

-- The calls at which a training may fail: early, while it is set up, in steps, in graphs that are
-- replayed.
local AT = { 1, 2, 3, 7, 20, 60 }

-- Counts the calls that were reached, and failed with a text that names the GPU.
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

describe("a training whose call fails once says so, and the next one is as usual:", function()
  for _, name in ipairs {
    "cudaMalloc", "cudaHostAlloc", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags",
    "cudaMemcpyAsync",
    "cudaMemcpyPeerAsync", "cudaMemsetAsync", "cudaLaunchKernel", "cudaEventRecordWithFlags",
    "cudaStreamWaitEvent",
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

describe("a device whose call fails before the updates", function()
  -- The updates of these steps are actions of the schedule: every device waits for the others
  -- before its own.
  local STEPS = [[
    local gp = require "gpipe"
    local models = require "tests.support.models"
    local model, _, x, y = models.classifier()
    local pipe <close> = gp.pipeline(model(), {
      balance = { 2, 2 }, chunks = 3, loss = gp.nn.CrossEntropyLoss(), seed = 2, devices = { "cuda:0", "cuda:1" },
      watchdog = 20,
    })
    pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }), { clip_norm = 1 })
    for _ = 1, 4 do
      local good, result = pcall(pipe.step, pipe, x, y)
      io.write(good and ("%a"):format(result) or result:match "cuda:%d: waiting for a stream" or result, "\n")
    end
  ]]

  -- These are the calls of the first step before the updates: if one fails, no stage may be
  -- updated.
  for n = 15, 18 do
    it(("blocks no other device, and no stage is updated: cudaStreamSynchronize:%d"):format(n),
      on_host_form(function()
      local environment = { GPIPE_TEST_CUDA_FAIL = ("cudaStreamSynchronize:%d"):format(n) }
      local wanted = child.run({ "-" }, { input = STEPS })
      local out = child.run({ "-" }, { input = STEPS, environment = environment })
      local failed, rest = out:match "^(cuda:%d: waiting for a stream)\n(.*)$"
      assert(failed, out)
      assert.are.equal(rest, wanted:sub(1, #rest))
    end))
  end
end)

describe("after a GPU was lost", function()
  it("every further use of the GPU gives the text of the first error", on_host_form(function()
    local failed = count_failures("cudaLaunchKernel", ":700", function(first, second)
      assert.matches("nothing more can run on this GPU", first)
      assert.matches("cudaErrorIllegalAddress", first)
      assert.matches("nothing more can run on this GPU", second)
    end)
    assert.is_true(failed > 3)
  end))

  it("the machine says why it has no GPU", on_host_form(function()
    for count, text in pairs { ["0"] = "no GPU that it can see",
      none = "no NVIDIA driver on this machine" } do
      local out, _, code = child.run({ "--list-devices" },
        { environment = { GPIPE_TEST_GPUS = count } })
      assert.are.equal(0, code)
      assert.matches(text, out)
    end
  end))
end)

describe("a GPU that is too small", function()
  -- Runs a step of 4,096 rows, then what else the arguments say, on a GPU of so many bytes.
  local STEPS = [[
    local gp = require "gpipe"
    local layers = {}
    for i = 1, 16, 2 do layers[i], layers[i + 1] = gp.nn.Linear(256, 256), gp.nn.GELU "tanh" end
    local function train(device, chunks, mode, rows, schedule)
      local pipe <close> = gp.pipeline(gp.nn.Sequential(layers), {
        devices = { "cuda:0", device }, chunks = chunks, checkpoint = mode, schedule = schedule,
        loss = gp.nn.MSELoss(), seed = 1,
      })
      for _, n in ipairs(rows) do
        local x = gp.zeros { n, 256 }
        local good, result = pcall(pipe.step, pipe, x, x)
        io.write(good and "trained " .. n or result, "\n")
      end
    end
  ]]

  -- The workspace of products, which every logical device has in addition.
  local WORKSPACE = 32 << 20

  local function run(bytes, call)
    bytes = bytes + WORKSPACE * (call:find("cuda:0/", 1, true) and 2 or 1)
    local out, err = child.run({ "-" }, {
      input = STEPS .. "print(select(2, pcall(train, " .. call .. ")))",
      environment = { GPIPE_TEST_GPU_MEMORY = ("%d"):format(bytes) },
    })
    assert.are.equal("", err)
    return out
  end

  it("is reported with the size asked for and the free size", on_host_form(function()
    local out = child.run({ "-" },
      { input = SCRIPT, environment = { GPIPE_TEST_GPU_MEMORY = "300" } })
    assert.matches("parameters and gradients take 320 bytes of cuda:0, which has 300 bytes: stage 0 "
      .. "%(layers 1%-2%) 320 bytes, of that layer 1 %(Linear 4 %-> 8%) 320 bytes", out)
    out = child.run({ "-" }, { environment = { GPIPE_TEST_GPU_MEMORY = "1100000" }, input = [[
      local gp = require "gpipe"
      local function pipe()
        return gp.pipeline(gp.nn.Sequential { gp.nn.Linear(200, 200) }, { devices = { "cuda:0" },
          loss = gp.nn.MSELoss() })
      end
      local first <close> = pipe()
      print(pcall(pipe))
    ]] })
    assert.matches("the parameters and gradients of stage 0: cuda:%d: out of memory: asked for "
      .. "[%d.]+ %a+, "
      .. "free are [%d.]+ %a+ of 1.0 MiB", out)
  end))

  it("gets a number of micro-batches that does fit, and goes on", on_host_form(function()
    local out = run(30e6, "'cuda:1', 2, 'never', {4096, 8}")
    local chunks =
      out:match "out of memory: asked for 34.0 MiB, .*; would fit: .-chunks = (%d+) %([%d.]+ MiB%)\ntrained 8"
    assert(chunks, out)
    assert.matches("^trained 4096", run(30e6, ("'cuda:1', %s, 'never', {4096}"):format(chunks)))
  end))

  it("counts devices that share it together", on_host_form(function()
    local out = run(30e6, "'cuda:0/0of2', 2, 'never', {4096}")
    local chunks = out:match "would fit: chunks = (%d+)"
    assert(chunks, out)
    assert.matches("^trained 4096",
      run(30e6, ("'cuda:0/0of2', %s, 'never', {4096}"):format(chunks)))
  end))

  it("gets a checkpoint mode that does fit", on_host_form(function()
    local out = run(8e6, "'cuda:1', 16, 'never', {512}, 'gpipe'")
    assert.matches('would fit: checkpoint = "[%a_]+" %([%d.]+ MiB%)', out)
    local mode = out:match 'checkpoint = "([%a_]+)"'
    assert.matches("^trained 512", run(8e6, ("'cuda:1', 16, '%s', {512}, 'gpipe'"):format(mode)))
  end))

  it("says so where nothing fits", on_host_form(function()
    assert.matches("no setting of chunks and checkpoint would fit: .* comes nearest, and device "
      .. "cuda:0 would need [%d.]+ MiB more than there is",
      run(5e6, "'cuda:1', 2, 'never', {4096}"))
  end))

  it("takes the memory of plans for other shapes", on_host_form(function()
    assert.are.equal("trained 512\ntrained 640\ntrained 768\ntrained 512\n\n",
      run(15e6, "'cuda:1', 2, 'never', {512, 640, 768, 512}"))
  end))
end)
