-- tests/spec/cuda/ranks_spec.lua - GPUs that several processes drive: the bits of one process, what
-- crosses between them, and what happens when a GPU fails.

local child = dofile "tests/child.lua"
local gpu = require "tests.support.gpu"
local jobs = dofile "tests/support/jobs.lua"

local on_gpu = gpu.spec(it)
-- Are the GPUs those of the plugin that is compiled for the host? Only it refuses on demand.
local PRETENDED = (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find("cuda_host", 1, true) ~= nil

local TRAIN, REPLICAS = "tests/support/ranks_train.lua", "tests/support/replicas_train.lua"

local function lines_of(out, err, code)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

-- Everything that one process prints is printed by a job, too, but gradients, which each rank has of
-- its own stages only.
local function check(way, ranks, words, variables)
  local whole = {}
  for _, line in ipairs(lines_of(child.run(words))) do
    if not line:find "^gradient of" then whole[#whole + 1] = line end
  end
  local shared = lines_of(jobs.run(way, ranks, words, variables))
  assert.truthy(#whole > 50)
  for i, line in ipairs(whole) do assert.equal(line, shared[i]) end
  assert.equal(#whole, #shared)
end

-- ---- bits ---------------------------------------------------------------------------------------

describe("the bits of one process with GPUs", function()
  on_gpu("are those of two processes with a GPU each", function()
    check("unix", 2, { TRAIN, "0/cuda:0,1/cuda:1", "gpipe", "1f1b" })
  end, 2)

  on_gpu("are those of two processes that drive one GPU", function()
    check("unix", 2, { TRAIN, "0/cuda:0,1/cuda:0", "1f1b" })
  end)

  on_gpu("are those of two processes that both have every stage", function()
    check("unix", 2, { TRAIN, "0/cuda:0,1/cuda:1", "dualpipe" })
  end, 2)

  on_gpu("are those of two processes with several stages on each GPU", function()
    check("unix", 2, { TRAIN, "0/cuda:0,1/cuda:1", "interleaved_1f1b" })
  end, 2)

  on_gpu("are those of a GPU and a CPU device of two processes, either way round", function()
    check("unix", 2, { TRAIN, "0/cuda:0,1/cpu:0", "1f1b" })
    check("unix", 2, { TRAIN, "0/cpu:0,1/cuda:0", "1f1b" })
  end)

  on_gpu("are those of three processes with two copies of every stage, on GPUs and cores", function()
    check("unix", 3, { TRAIN, "0/cuda:0,1/cuda:1,1/cuda:0,2/cpu:0", "dualpipe" })
  end, 2)

  on_gpu("are those of processes that are connected by TCP", function()
    check("tcp", 2, { TRAIN, "0/cuda:0,1/cuda:1", "1f1b" })
  end, 2)

  on_gpu("are those of processes that are connected by MPI", function()
    if jobs.missing "mpi" then return pending(jobs.missing "mpi") end
    check("mpi", 2, { TRAIN, "0/cuda:0,1/cuda:1", "1f1b" })
  end, 2)

  on_gpu("are those of a job where work runs as late as it may", function()
    check("unix", 2, { TRAIN, "0/cuda:0,1/cuda:1", "1f1b" }, { GPIPE_TEST_LAZY = "1" })
  end, 2)

  on_gpu("are those of two replicas over two processes", function()
    check("unix", 2, { REPLICAS, "2", "4", "1", "1f1b" })
    check("unix", 2, { REPLICAS, "2", "4", "2", "gpipe" })
  end)
end)

-- ---- large values -------------------------------------------------------------------------------

-- Prints losses and bytes; the last line says how many pieces of shared memory rank 0 has.
local LARGE = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(4)
local model = nn.Sequential {
  nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 128), nn.Dropout(0.1), nn.Linear(128, 8),
}
local pipe <close> = gp.pipeline(model, { devices = gp.ranks() > 1 and {"0/cuda:0", "1/cuda:1"} or
  {"cuda:0", "cuda:1"}, balance = {2, 3}, chunks = 4, loss = nn.CrossEntropyLoss() })
local opt = gp.optim.AdamW(pipe:parameters(), { lr = 0.01 })
pipe:use(opt)
local x, y = gp.randn { 256, 64 }, gp.randint(0, 8, { 256 })
local bad = gp.full({ 256 }, 99, { dtype = "i64" })
for step = 1, 4 do
  print(("%.17g"):format(pipe:step(x, y)))
  if step == 2 then print((pcall(pipe.step, pipe, x, bad))) end
end
for _, name in ipairs { "1.weight", "5.weight" } do
  print(("%q"):format(pipe:state_dict()[name]:to("cpu"):bytes()))
end
local maps = io.open("/proc/self/maps"):read "a"
print("maps", select(2, maps:gsub("memfd:gpipe%-slots", "")))]]

describe("large values between GPUs of two processes", function()
  local script = child.file(LARGE)

  local function output(ranks, variables)
    local out, err, code
    if ranks == 1 then
      out, err, code = child.run { script }
    else
      out, err, code = jobs.run("unix", ranks, { script }, variables)
    end
    assert.equal("", err)
    assert.equal(0, code)
    local text, maps = out:match "^(.*)maps\t(%d+)\n$"
    return text, tonumber(maps)
  end

  on_gpu("go through pinned memory that both reach, with the same bits", function()
    local whole = output(1)
    local shared, maps = output(2)
    assert.truthy(whole == shared)
    assert.truthy(maps >= 2) -- the slots that it reads, and those that it writes
  end, 2)

  on_gpu("are sent where GPIPE_RANKS_SHARED is 0, with the same bits", function()
    local sent, maps = output(2, { GPIPE_RANKS_SHARED = "0" })
    assert.truthy(output(1) == sent)
    assert.equal(0, maps)
  end, 2)

  on_gpu("are sent where shared memory cannot be pinned, with the same bits", function()
    if not PRETENDED then return pending "the driver cannot be told to refuse" end
    local sent, maps = output(2, { GPIPE_TEST_CUDA_FAIL = "cudaHostRegister:1+" })
    assert.truthy(output(1) == sent)
    assert.equal(0, maps)
  end, 2)

  on_gpu("have the same bits where work runs as late as it may", function()
    assert.truthy(output(1) == output(2, { GPIPE_TEST_LAZY = "1" }))
  end, 2)

  teardown(function() os.remove(script) end)
end)
