-- tests/spec/cuda/order_spec.lua - what is enqueued on several streams is ordered by events alone.
--
-- The host's form of the plugin can run work as late as a program allows (GPIPE_TEST_LAZY,
-- tests/cuda/cudart/queue.c): a reader that waits for nothing, or for an event of the round before,
-- then gets other values. Pauses inside of calls (GPIPE_TEST_CUDA_SLOW) keep open what other workers
-- could slip through. Bits must be those of work that is done at once.

local child = dofile "tests/child.lua"

-- Trains in each of these pipelines and prints the losses; argument: text to run before.
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
  }
  local function pipe_of(case)
    local pipe = gp.pipeline(models.gpt()(), {
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

-- What is right: done at once.
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
