-- tests/spec/cuda/side_spec.lua - gradients of weights on a second stream (GPIPE_SIDE_STREAM=1,
-- runtime/plan/program/side.c) have the bits of one stream, on late streams too, and take the
-- memory of one.

local child = dofile "tests/child.lua"
local gpu = require "tests.support.gpu"

local on_gpu = gpu.spec(it)

-- Trains each case; prints a line of its losses and sums of its gradients, one of the bytes of its
-- devices, and one of the streams that they use.
local SCRIPT = [[
  local gp = require "gpipe"
  local models = require "tests.support.models"
  local x, y = models.ids(8, 6), models.ids(8, 6)
  local CASES = {
    { { 7 }, "gpipe" }, { { 7 }, "gpipe", "bf16", tied = true, chunks = 1 },
    { { 3, 4 }, "1f1b", "bf16", checkpoint = "always" }, { { 3, 4 }, "1f1b", tied = true },
    { { 3, 4 }, "zb_h1", "f32", checkpoint = "except_last" }, { { 3, 4 }, "zb_h1", "bf16" },
    { { 2, 2, 2, 1 }, "interleaved_1f1b", "bf16", checkpoint = "except_last" },
    { { 2, 2, 2, 1 }, "zbv", "f32", checkpoint = "always" }, { { 3, 4 }, "chimera", "bf16" },
  }
  for _, case in ipairs(CASES) do
    local model = models.gpt()()
    if case.tied then model[7].weight = model[1].weight end
    local pipe <close> = gp.pipeline(model, { balance = case[1], schedule = case[2],
      precision = case[3], checkpoint = case.checkpoint, chunks = case.chunks or 4,
      devices = { "cuda:0", case[1][2] and "cuda:1" }, loss = gp.nn.CrossEntropyLoss() })
    local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
    local bits = { "bits" }
    for _ = 1, 4 do -- launched, captured, replayed
      if bits[2] then opt:step() end
      bits[#bits + 1] = ("%a"):format(pipe:step(x, y))
    end
    for _, p in ipairs(pipe:parameters()) do
      bits[#bits + 1] = p.grad and ("%a"):format((p.grad * p.grad):sum():item()) or "-"
    end
    print(table.concat(bits, " "))
    print("bytes", table.unpack(pipe.stats.peak_bytes))
    print("path", tostring(pipe:describe()):match "second stream" or "one stream")
  end
]]

-- Returns the lines of each kind.
local function run(environment)
  local out, err, code = child.run({ "-" }, { input = SCRIPT, environment = environment })
  assert.are.equal(0, code, out .. err)
  local lines = {}
  for kind, rest in out:gmatch "(%a+)%s([^\n]*)\n" do
    lines[kind] = lines[kind] or {}
    table.insert(lines[kind], rest)
  end
  return lines
end

on_gpu("two streams have the bits of one, on late streams too, and no more temporary memory",
  function()
  local one, two = run {}, run { GPIPE_SIDE_STREAM = "1" }
  local late = run { GPIPE_SIDE_STREAM = "1", GPIPE_TEST_LAZY = "1" }
  local grown = 0
  for i, bits in ipairs(one.bits) do
    assert.are.equal(bits, two.bits[i])
    assert.are.equal(bits, late.bits[i])
    assert.are.equal("one stream", one.path[i])
    assert.are.equal("second stream", two.path[i])
    local had = one.bytes[i]:gmatch "%d+"
    for bytes in two.bytes[i]:gmatch "%d+" do -- it has scratch of its own, here less than 256 bytes
      local more = math.tointeger(bytes) - math.tointeger(had())
      assert.is_true(more == 0 or more == 256, i .. ": " .. more)
      grown = grown + more
    end
  end
  assert.is_true(#one.bits == 9 and grown > 0)
end, 2)
