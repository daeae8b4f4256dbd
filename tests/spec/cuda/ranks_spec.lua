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

  on_gpu("are those of two processes with two copies of every stage, on two GPUs each", function()
    local devices = "0/cuda:0,0/cuda:1,1/cuda:0,1/cuda:1"
    check("unix", 2, { TRAIN, devices, "dualpipe" })
    check("unix", 2, { TRAIN, devices, "chimera" }, { GPIPE_TEST_LAZY = "1" })
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
local maps = 0 -- of large values: bells, words and votes take less
for first, last in io.open("/proc/self/maps"):read("a"):gmatch "(%x+)%-(%x+) [^\n]*memfd:gpipe%-slots" do
  if tonumber(last, 16) - tonumber(first, 16) > 16384 then maps = maps + 1 end
end
print("maps", maps)]]

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
    local shared, maps = output(2, { GPIPE_IPC = "0" })
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

  local IPC = { GPIPE_TEST_IPC = "1" }

  -- What a pipeline says of the link between its GPUs, on rank 0.
  local function link_of(variables)
    local text = LARGE:gsub("local maps.*$", "print(pipe:describe())")
    local out, err = jobs.script("unix", 2, text, variables)
    return out:match "link cuda:0 to 1/cuda:1: [^\n]*", err
  end

  on_gpu("are copied from GPU to GPU where the driver shares memory, with the same bits", function()
    local whole = output(1)
    local direct, maps = output(2, IPC)
    assert.truthy(whole == direct)
    assert.truthy(maps >= 1) -- of memory that is there for makers without a GPU
    assert.equal("link cuda:0 to 1/cuda:1: CUDA IPC", link_of(IPC))
  end, 2)

  on_gpu("are copied from GPU to GPU with the same bits where work runs as late as it may", function()
    assert.truthy(output(1) == output(2, { GPIPE_TEST_IPC = "1", GPIPE_TEST_LAZY = "1" }))
  end, 2)

  on_gpu("go by way of the host where GPIPE_IPC is 0 or the driver refuses, which is said", function()
    local off = { GPIPE_TEST_IPC = "1", GPIPE_IPC = "0" }
    assert.truthy(output(1) == output(2, off))
    assert.equal("link cuda:0 to 1/cuda:1: by way of the host; GPIPE_IPC=0", link_of(off))
    if not PRETENDED then return end
    local refused = { GPIPE_TEST_IPC = "1", GPIPE_TEST_CUDA_FAIL = "cudaIpcOpenMemHandle:1+:217" }
    assert.truthy(output(1) == output(2, refused))
    assert.truthy(link_of(refused):find "by way of the host; ")
    assert.truthy(link_of {}:find "by way of the host; ")
  end, 2)

  -- Gradients and new values of replicas, in halves too.
  on_gpu("of replicas have the same bits, by either way", function()
    local replicas = child.file((LARGE:gsub("devices = ", "replicas = 2, precision = arg[1], devices = ")
      :gsub("balance = {2, 3}", "balance = {5}")))
    for _, precision in ipairs { "f32", "bf16" } do
      local whole = child.run { replicas, precision }:match "^(.*)maps"
      for _, ipc in ipairs { "0", "1" } do
        for _, bucket in ipairs { "", "4096" } do -- the last pass sends them while it runs
          local out, err = jobs.run("unix", 2, { replicas, precision },
            { GPIPE_TEST_IPC = ipc, GPIPE_BUCKET_BYTES = bucket })
          assert.equal("", err)
          assert.truthy(whole == out:match "^(.*)maps")
        end
      end
    end
    os.remove(replicas)
  end, 2)

  teardown(function() os.remove(script) end)
end)

-- ---- NCCL ---------------------------------------------------------------------------------------

describe("values that go by NCCL", function()
  local folder = child.program:match "^(.*)/[^/]*$"
  local library = folder .. "/libgpipe_fake_nccl.so"
  local script = child.file(LARGE)

  -- Runs with the fake library (tests/cuda/nccl); returns also what that has found wrong.
  local function run(variables, text)
    local report = os.tmpname()
    local set = { GPIPE_NCCL = "1", GPIPE_NCCL_LIBRARY = library, FAKE_NCCL_REPORT = report,
      GPIPE_TEST_IPC = "1" }
    for name, value in pairs(variables or {}) do set[name] = value end
    local out, err, code
    if text then
      out, err, code = jobs.script("unix", 2, text, set)
    else
      out, err, code = jobs.run("unix", 2, { script }, set)
    end
    local file = assert(io.open(report))
    local found = file:read "a"
    file:close()
    child.shell("rm -f " .. report .. " " .. report .. ".*")
    return out, err, code, found
  end

  local function on_fake(sentence, f)
    on_gpu(sentence, function()
      local file = PRETENDED and io.open(library, "rb")
      if not file then return pending "this build has no libgpipe_fake_nccl.so" end
      file:close()
      f()
    end, 2)
  end

  on_fake("have the bits of one process, and both sides agree on all of them", function()
    local whole = child.run { script }
    local out, err, code, found = run()
    assert.equal("", err)
    assert.equal(0, code)
    assert.truthy(whole:match "^(.*)maps" == out:match "^(.*)maps")
    assert.equal("", found)
    local said = run({}, (LARGE:gsub("local maps.*$", "print(pipe:describe())")))
    assert.truthy(said:find("link cuda:0 to 1/cuda:1: NCCL\n", 1, true), said)
    assert.truthy(said:find("NCCL 2.", 1, true), said)
  end)

  on_fake("are those of both copies of a stage, each in its own order", function()
    for _, schedule in ipairs { "dualpipe", "chimera" } do
      local text = LARGE:gsub("devices = ", ("schedule = %q, devices = "):format(schedule), 1)
      local whole = child.file(text)
      local one = child.run { whole }:match "^(.*)maps"
      os.remove(whole)
      local out, err, _, found = run({}, text)
      assert.equal("", err)
      assert.truthy(one == out:match "^(.*)maps", schedule)
      assert.equal("", found)
    end
  end)

  on_fake("are gradients of replicas, in buckets that the last pass sends while it runs", function()
    local replicas = LARGE:gsub("devices = ", "replicas = 2, devices = ")
      :gsub("balance = {2, 3}", "balance = {5}")
    local whole = child.file(replicas)
    local one = child.run { whole }:match "^(.*)maps"
    os.remove(whole)
    local out, err, _, found = run({ GPIPE_BUCKET_BYTES = "4096" }, replicas)
    assert.equal("", err)
    assert.truthy(one == out:match "^(.*)maps")
    assert.equal("", found)
  end)

  on_fake("go by way of the host where there is no NCCL, which is said", function()
    local none = { GPIPE_NCCL_LIBRARY = "/nowhere/libnccl.so.2", GPIPE_TEST_IPC = "0" }
    local out = run(none, (LARGE:gsub("local maps.*$", "print(pipe:describe())")))
    assert.truthy(out:find("link cuda:0 to 1/cuda:1: by way of the host; no NCCL: /nowhere", 1, true), out)
    assert.truthy(child.run { script }:match "^(.*)maps" == run(none):match "^(.*)maps")
  end)

  on_fake("fail on all ranks where NCCL does, without a hang", function()
    local began = require("gpipe.core").seconds()
    local out, err = run({ FAKE_NCCL_FAIL = "7" }, (LARGE:gsub("for step = 1, 4 do.*$", [[
      for step = 1, 6 do
        local good, why = pcall(pipe.step, pipe, x, y)
        if not good then print("failed", why) break end
      end]])))
    assert.truthy(out:find "failed\t.*rank %d: .*NCCL", out .. err)
    assert.truthy(require("gpipe.core").seconds() - began < 30)
  end)

  on_fake("end with a rank that is killed", function()
    local text = LARGE:gsub("for step = 1, 4 do.*$", [[
      if gp.rank() == 1 then os.execute "(sleep 1; kill -9 $PPID) &" end
      while true do pipe:step(x, y) end]])
    local _, err = run({}, text)
    assert.truthy(err:find "rank 1 %(process %d+%) is gone: ", err)
  end)

  teardown(function() os.remove(script) end)
end)

-- ---- failures -----------------------------------------------------------------------------------

-- Trains for ever; `text` says what happens to rank 1.
local FOREVER = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(4)
local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 8) }, {
  devices = {"0/cuda:0", "1/cuda:1"}, balance = {2, 1}, chunks = 4, loss = nn.MSELoss(), watchdog = 20 })
pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.01 }))
local x, y = gp.randn { 256, 64 }, gp.randn { 256, 8 }
]]

describe("a job with GPUs", function()
  local seconds = require("gpipe.core").seconds

  local function run(text, variables)
    local script, began = child.file(FOREVER .. text), seconds()
    local out, err, code = jobs.run("unix", 2, { script }, variables)
    local left = child.shell("pgrep -f " .. child.quote("[/]" .. script:sub(2)))
    os.remove(script)
    assert.equal("", left) -- no process of the job is left
    assert.truthy(seconds() - began < 60)
    return out, err, code
  end

  for _, ipc in ipairs { "0", "1" } do
    on_gpu("ends with the name of a rank that is killed, GPIPE_TEST_IPC=" .. ipc, function()
      local _, err, code = run([[
        pipe:step(x, y)
        if gp.rank() == 1 then os.execute "(sleep 0.5; kill -9 $PPID) &" end
        while true do pipe:step(x, y) end]], { GPIPE_TEST_IPC = ipc })
      assert.truthy(err:find "rank 1 %(process %d+%) is gone: ", err)
      assert.truthy(code ~= 0)
    end, 2)
  end

  -- The process of rank 1 has a GPU that is lost; the other rank waits for what it would send.
  for _, call in ipairs { "cudaLaunchHostFunc", "cudaMemcpyAsync", "cudaStreamWaitEvent" } do
    on_gpu("reports a GPU that is lost in " .. call .. " on all ranks", function()
      if not PRETENDED then return pending "the driver cannot be told to refuse" end
      local out, err = run([[
        for step = 1, 6 do
          local good, why = pcall(pipe.step, pipe, x, y)
          if not good then print("failed", (tostring(why):gsub("\n.*", ""))) break end
        end]], { GPIPE_TEST_CUDA_FAIL = call .. ":20+:700" })
      assert.truthy(out:find "failed\t.*rank %d: .*cuda:%d: ", out .. err)
    end, 2)
  end

  on_gpu("goes on after a rank has raised", function()
    local out = run([[
      local bad = gp.ones { 256, 64 } * 0 / 0
      print((pcall(pipe.step, pipe, bad, y)))
      print(pipe:step(x, y) == pipe:step(x, y), gp.ranks())]])
    assert.truthy(out:find "\t2\n", out)
  end, 2)

  on_gpu("refuses a plan that is larger than a GPU's cap, on all ranks", function()
    local out = run [[
      local capped = gp.pipeline(nn.Sequential { nn.Linear(64, 8), nn.Linear(8, 8) }, {
        devices = {"0/cuda:0", {"1/cuda:1", memory = "20KiB"}}, balance = {1, 1}, loss = nn.MSELoss() })
      local all = gp.all_gather(select(2, pcall(capped.step, capped, x, y)))
      print(all[1] == all[2], all[2])]]
    assert.truthy(out:find("device 1/cuda:1 may take 20.0 KiB", 1, true), out)
    assert.equal("true", out:match "^%a+")
  end, 2)

  on_gpu("says which rank has too few GPUs, on all ranks", function()
    local out = jobs.script("unix", 2, [[
      local gp = require "gpipe"
      local model = gp.nn.Sequential { gp.nn.Linear(2, 2), gp.nn.Linear(2, 2) }
      local all = gp.all_gather(select(2, pcall(gp.pipeline, model,
        { devices = {"0/cuda:0", "1/cuda:99"}, balance = {1, 1}, loss = gp.nn.MSELoss() })))
      print(all[1]) print(all[2])]])
    local text = "gp.pipeline: device '1/cuda:99' cannot be used: rank 1 sees "
    assert.equal(2, select(2, out:gsub(text:gsub("%p", "%%%0"), "")), out)
  end)
end)

-- ---- which GPUs ---------------------------------------------------------------------------------

describe("GPUs that no option names", function()
  local deal = require("gpipe.ranks.gpus").deal

  local function rank(machine, ...)
    local list = {}
    for i, id in ipairs { ... } do list[i] = { id = id, memory = 1 } end
    return { machine = machine, gpus = list }
  end

  it("are shared out among ranks of one machine that see all of them", function()
    local all = { rank("a", "p", "q", "r", "s"), rank("a", "p", "q", "r", "s") }
    assert.same({ "0/cuda:0", "0/cuda:1", "1/cuda:2", "1/cuda:3" }, deal(all))
  end)

  it("are each rank's own where ranks see others", function()
    assert.same({ "0/cuda:0", "1/cuda:0" }, deal { rank("a", "p"), rank("a", "q") })
    assert.same({ "0/cuda:0", "1/cuda:0" }, deal { rank("a", "p"), rank("b", "p") })
  end)

  it("are driven by several ranks where there are fewer", function()
    local all = { rank("a", "p", "q"), rank("a", "p", "q"), rank("a", "p", "q"), rank("a", "p", "q") }
    assert.same({ "0/cuda:0", "1/cuda:0", "2/cuda:1", "3/cuda:1" }, deal(all))
  end)

  it("leave a core to a rank that has none", function()
    assert.same({ "0/cuda:0", "1/cpu:0" }, deal { rank("a", "p"), rank("b") })
    assert.is_nil(deal { rank("a"), rank("a") })
  end)

  on_gpu("are the devices of a job, and one that two ranks drive is told once", function()
    local out, err = jobs.script("unix", 2, [[
      local gp = require "gpipe"
      local nn = gp.nn
      local model = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2) }
      local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss(), balance = {1, 1},
        devices = {"0/cuda:0", "1/cuda:0"} })
      pipe:step(gp.ones {4, 2}, gp.ones {4, 2})
      local memory, timeline = pipe:memory(), pipe:timeline()
      for d, device in ipairs(memory) do
        print(device.name, device.planned == device.measured, #timeline[d] > 0)
      end
      local profile = pipe:profile(gp.ones {4, 2}, gp.ones {4, 2})
      print(#tostring(profile) > 0)]])
    assert.equal("0/cuda:0\ttrue\ttrue\n1/cuda:0\ttrue\ttrue\ntrue\n", out)
    local text = "devices 0/cuda:0, 1/cuda:0 are one GPU, which several processes drive"
    assert.equal(1, select(2, err:gsub(text, "")), err)
  end)
end)
