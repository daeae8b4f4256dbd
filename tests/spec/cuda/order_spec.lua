-- tests/spec/cuda/order_spec.lua - only events order what is enqueued on several streams.
--
-- The plugin compiled for the host can run work as late as a program allows (GPIPE_TEST_LAZY,
-- tests/cuda/cudart/queue.c): a reader that does not wait, or waits for an event of the round
-- before, then gets other values. Pauses within calls (GPIPE_TEST_CUDA_SLOW) give other workers
-- time to run in between. The bits must be those of work that is done at once.

local child = dofile "tests/child.lua"

-- Trains in each of these pipelines and prints the losses; the argument is text that runs before.
local SCRIPT = [[
  local gp = require "gpipe"
  local models = require "tests.support.models"
  local x, y = models.ids(7, 6), models.ids(7, 6)
  local G0, G1, G2, CPU = "cuda:0", "cuda:1", "cuda:2", "cpu:0"
  local CASES = {
    { { 3, 4 }, { G0, G1 }, "gpipe" }, { { 3, 4 }, { G0, G1 }, "1f1b", checkpoint = "always" },
    { { 3, 4 }, { G0, G0 }, "1f1b" }, { { 2, 3, 2 }, { G0, G1, G2 }, "1f1b" },
    { { 2, 3, 2 }, { G0, G1, G0 }, "zb_h1" }, { { 2, 3, 2 }, { CPU, G0, G1 }, "1f1b" },
    { { 3, 4 }, { G1, CPU }, "1f1b" }, { { 1, 2, 2, 2 }, { G0, G1 }, "interleaved_1f1b" },
    { { 1, 2, 2, 2 }, { G0, G1 }, "zbv" }, { { 3, 4 }, { G0, G1 }, "chimera", chunks = 4 },
    { { 3, 4 }, { G0, G1 }, "dualpipe", chunks = 4 },
    { { 3, 4 }, { G0, G1 }, "1f1b", use = { barrier = false } },
    { { 3, 4 }, { G0, G1 }, "pipedream_2bw", use = {} },
    { { 3, 4 }, { G0, G1 }, "1f1b", tied = true },
    { { 3, 4 }, { G0, G1 }, "chimera", chunks = 4, tied = true },
  }
  local function pipe_of(case)
    local model = models.gpt()()
    if case.tied then model[7].weight = model[1].weight end
    local pipe = gp.pipeline(model, {
      balance = case[1], devices = case[2], schedule = case[3], chunks = case.chunks or 7,
      checkpoint = case.checkpoint or "except_last", loss = gp.nn.CrossEntropyLoss(),
    })
    return pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }), case.use or { clip_norm = 1 })
  end
]]

local TRAIN = SCRIPT .. [[
  for _, case in ipairs(CASES) do
    local pipe <close>, text = pipe_of(case), {}
    for _ = 1, 4 do -- launched, captured, replayed
      local loss = pipe:step(x, y)
      for _, one in ipairs(type(loss) == "table" and loss or { loss }) do
        text[#text + 1] = ("%a"):format(one)
      end
    end
    pipe:flush()
    text[#text + 1] = ("%a"):format(pipe:evaluate(x, y))
    print(table.concat(case[2], " "), case[3], table.concat(text, " "))
  end
]]

local function run(script, environment)
  environment.GPIPE_TEST_GPUS = "3"
  local out, err, code = child.run({ "-" }, { input = script, environment = environment })
  assert.are.equal(0, code, out .. err)
  return out
end

-- Returns the right losses: those of work that is done at once.
local wanted = {}
local function reference(script)
  wanted[script] = wanted[script] or run(script, {})
  return wanted[script]
end

local function on_host_form(f)
  return function()
    if (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host" then f() return end
    pending "no way to let work run late"
  end
end

describe("work that runs as late as it may gives the same bits", function()
  for title, environment in pairs {
    ["while events are recorded"] = { GPIPE_TEST_CUDA_SLOW = "cudaEventRecordWithFlags:100" },
    ["while copies are enqueued"] = { GPIPE_TEST_CUDA_SLOW = "cudaMemcpyPeerAsync:100" },
    ["without peers"] = {
      GPIPE_TEST_NOPEER = "1", GPIPE_TEST_CUDA_SLOW = "cudaEventRecordWithFlags:100",
    },
  } do
    it(title, on_host_form(function()
      environment.GPIPE_TEST_LAZY = "1"
      assert.are.equal(reference(TRAIN), run(TRAIN, environment))
    end))
  end
end)

-- ---- failures -------------------------------------------------------------------------------------

-- Trains for five steps in each of the pipelines, says which failed, and whether work was left then.
local FAIL = SCRIPT .. [[
  local done = assert(package.loadlib(os.getenv "GPIPE_CUDA_PLUGIN", "gp_queue_all_done"))
  for _, case in ipairs(CASES) do
    local pipe <close>, text = pipe_of(case), {}
    for i = 1, 5 do
      local good, loss = pcall(pipe.step, pipe, x, y)
      text[i] = good and (type(loss) == "table" and "losses" or ("%a"):format(loss)) or "failed"
      if not good and not done(true) then text[i] = "failed, left work" end
    end
    print(table.concat(case[2], " "), case[3], table.concat(text, " "))
  end
]]

-- Are the losses of a line a subsequence of those of the same line without failures?
local function is_part_of(line, whole)
  local at = 1
  for word in line:gmatch "%S+" do
    local found = word ~= "failed" and whole:find(word, at, true)
    if word ~= "failed" and not found then return false end
    at = found or at
  end
  return true
end

-- Returns how many steps failed.
local function check_failures(environment, script)
  environment.GPIPE_TEST_LAZY = "1"
  local out, count = run(script, environment), 0
  local lines = reference(script):gmatch "[^\n]+"
  assert.is_nil(out:find("left work", 1, true), out)
  for line in out:gmatch "[^\n]+" do
    assert.is_true(is_part_of(line, lines()), line)
    count = count + select(2, line:gsub("failed", ""))
  end
  return count
end

describe("a failed step leaves no work behind when it raises, and later steps are as usual:",
  function()
  for title, fault in pairs {
    ["a task fails"] = "stage=1,op=F,micro=3,step=2,action=fail",
    ["a backward pass fails"] = "stage=0,op=B,micro=1,step=1,action=fail",
    ["the first task fails"] = "stage=0,op=F,micro=0,step=3,action=fail",
  } do
    it(title, on_host_form(function()
      assert.is_true(check_failures({ GPIPE_FAULT = fault }, FAIL) >= 10)
    end))
  end

  -- Two of the pipelines make about as many calls as the numbers say.
  local FEW = FAIL:gsub("for _, case in ipairs%(CASES%)", "for _, case in ipairs { CASES[2], CASES[4] }")
  for _, call in ipairs {
    "cudaEventRecordWithFlags", "cudaStreamWaitEvent", "cudaMemcpyPeerAsync", "cudaLaunchKernel",
    "cudaGraphLaunch",
  } do
    it(call, on_host_form(function()
      local count = 0
      for _, n in ipairs { 23, 59, 150 } do
        count = count
          + check_failures({ GPIPE_TEST_CUDA_FAIL = ("%s:%d"):format(call, n) }, FEW)
      end
      assert.is_true(count > 0)
    end))
  end
end)

-- ---- Ctrl-C ---------------------------------------------------------------------------------------

-- The third step waits in a backward pass until it is interrupted. There is one interrupt a
-- process, because a script cannot catch the second one as an error.
local FAULT = "stage=1,op=B,micro=2,step=2,action=sleep:50"
local INTERRUPT = SCRIPT .. [[
  local case = CASES[%d]
  local pipe <close> = pipe_of(case)
  print(("%%a %%a"):format(pipe:step(x, y), pipe:step(x, y)))
  if os.getenv "GPIPE_FAULT" then
    local done = assert(package.loadlib(os.getenv "GPIPE_CUDA_PLUGIN", "gp_queue_all_done"))
    Presses = io.popen "sleep 0.2; kill -INT $PPID"
    local good, why = pcall(pipe.step, pipe, x, y)
    if good or not tostring(why):find "interrupted" then print(why) end
    if not done(true) then print "left work" end
  end
  print(("%%a"):format(pipe:evaluate(x, y)))
]]

describe("an interrupted step leaves no work behind when it raises, and weights are as before:",
  function()
  for title, case in pairs {
    ["two GPUs"] = { 1 }, ["two GPUs, no peers"] = { 1, "1" }, ["one GPU twice"] = { 3 },
    ["three GPUs"] = { 4 }, ["beside a CPU"] = { 6 }, ["two copies"] = { 10 },
  } do
    it(title, on_host_form(function()
      local script = INTERRUPT:format(case[1])
      assert.are.equal(reference(script), run(script, {
        GPIPE_TEST_LAZY = "1", GPIPE_TEST_NOPEER = case[2] or "0", GPIPE_FAULT = FAULT,
      }))
    end))
  end
end)
