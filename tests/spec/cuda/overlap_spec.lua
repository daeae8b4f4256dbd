-- tests/spec/cuda/overlap_spec.lua - GPIPE_GPU_PDL: kernels that begin while the one before them
-- ends change no bit, and reports say whether kernels can do so.
--
-- The stand-in for CUDA's runtime refuses an early launch that does not follow a kernel, so a step
-- that succeeds has none (tests/cuda/overlap_test.c counts them).

local child = dofile "tests/child.lua"
local gpu = require "tests.support.gpu"

local on_gpu = gpu.spec(it)

-- Prints losses of launched and of replayed steps, and how kernels are launched.
local SCRIPT = [[
  local gp = require "gpipe"
  local models = require "tests.support.models"
  local x, y = models.ids(8, 6), models.ids(8, 6)
  local PRECISIONS = { "f32", "bf16" }
  for _, precision in ipairs(PRECISIONS) do
    local pipe <close> = gp.pipeline(models.gpt()(), { balance = { 3, 4 }, chunks = 2,
      devices = { "cuda:0", "cuda:1" }, precision = precision, loss = gp.nn.CrossEntropyLoss() })
    local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
    local text = {}
    for i = 1, 5 do
      text[i] = ("%a"):format(pipe:step(x, y))
      opt:step()
    end
    print(table.concat(text, " "))
    if PATHS then
      for _, path in ipairs(pipe:describe().devices[1].paths) do
        if path.kind == "launches" then print(path.shape, path.path, path.why) end
      end
    end
  end
]]

local function run(environment, paths)
  local out, err, code = child.run({ "-e", "PATHS = " .. tostring(paths), "-" },
    { input = SCRIPT, environment = environment })
  assert.are.equal(0, code, out .. err)
  return out
end

describe("kernels that begin early", function()
  on_gpu("leave the bits as they are, launched and replayed", function()
    local want = run({}, true)
    assert.is_nil(want:find "early")
    for _, wish in ipairs { "1", "own" } do
      assert.are.equal(want, run({ GPIPE_GPU_PDL = wish }, false))
      assert.are.equal(want, run({ GPIPE_GPU_PDL = wish, GPIPE_TEST_LAZY = "1" }, false))
    end
  end, 2)

  on_gpu("are named in reports, with the reason where kernels cannot begin early", function()
    assert.matches("after kernels\tearly\t", run({ GPIPE_GPU_PDL = "1" }, true), 1, true)
    assert.matches("after own kernels\tearly\t", run({ GPIPE_GPU_PDL = "own" }, true), 1, true)
    local old = run({ GPIPE_GPU_PDL = "1", GPIPE_TEST_PTX = "80" }, true)
    if not old:find "early" then assert.matches("one after the other\t[^\n]*8%.0", old) end
  end, 2)
end)
