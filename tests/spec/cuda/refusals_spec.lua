-- tests/spec/cuda/refusals_spec.lua - where cuBLASLt refuses, the training takes another path and
-- goes on.
--
-- Only the plugin compiled for the host can let the library refuse (GPIPE_TEST_CUDA_FAIL,
-- tests/cuda/libraries). Each case is a process that trains in f32 and in bf16, long enough for
-- captured steps to be replayed.

local child = dofile "tests/child.lua"

local SCRIPT = [[
  local gp = require "gpipe"
  local nn = gp.nn
  local function train(precision)
    local model = nn.Sequential {
      nn.Linear(24, 32), nn.GELU "tanh", nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 10, { bias = false }),
    }
    gp.seed(3)
    local x, y = gp.randn({ 12, 24 }), gp.zeros({ 12 }, { dtype = "i64" })
    local pipe <close> = assert(gp.pipeline(model, {
      balance = { 2, 3 }, chunks = 2, loss = nn.CrossEntropyLoss(), seed = 2, precision = precision,
      devices = { "cuda:0", "cuda:1" },
    }))
    local opt, text = gp.optim.SGD(pipe:parameters(), { lr = 0.5 }), ""
    for _ = 1, 5 do
      text = text .. (" %a"):format(assert(pipe:step(x, y)))
      assert(opt:step() ~= false)
    end
    return text
  end
  for _, precision in ipairs { "f32", "bf16" } do print(select(2, pcall(train, precision))) end
]]

-- Returns the five losses in f32, then those in bf16.
local function losses(environment)
  local out, err, code = child.run({ "-" }, { input = SCRIPT, environment = environment })
  local f32, bf16 = out:match "^(.-)\n(.-)\n$"
  assert.are.equal(0, code, err)
  assert(bf16, out .. err)
  return f32, bf16
end

local healthy = {}
local function on_host_form(f)
  return function()
    if not (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host" then
      pending("no way to let the library refuse") return
    end
    if not healthy.f32 then
      healthy.f32, healthy.bf16 = losses {}
      assert.matches("^ 0x.*", healthy.f32)
      assert.matches("^ 0x.*", healthy.bf16)
    end
    f()
  end
end

-- In bf16 an epilogue that runs as an op of its own rounds once more.
local BF16 = 3e-2

local function check_close(text, to, what)
  local expected = to:gmatch "%S+"
  local count = 0
  for loss in text:gmatch "%S+" do
    local want = tonumber(expected())
    assert(want and tonumber(loss), what .. ": " .. text)
    assert(math.abs(tonumber(loss) - want) <= BF16 * math.abs(want), what .. ": " .. text .. to)
    count = count + 1
  end
  assert.are.equal(5, count)
end

-- In f32 the stand-in and our kernel add in one order, so the bits are the same whatever is
-- refused.
local function check_trains(environment)
  local what = environment.GPIPE_TEST_CUDA_FAIL
  local f32, bf16 = losses(environment)
  assert.are.equal(healthy.f32, f32, what)
  check_close(bf16, healthy.bf16, what)
  return bf16
end

-- The statuses of the library that concern a call and not the GPU.
local STATUS = { 1, 3, 7, 8, 11, 14, 15, 16 }

local CALLS = {
  "cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
  "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic",
  "cublasLtMatmul",
}

describe("A call of cuBLASLt that is refused", function()
  for i, call in ipairs(CALLS) do
    it(("once, at any time, is replaced by another path (%s)"):format(call), on_host_form(function()
      for j, at in ipairs { 1, 4, 14 } do
        check_trains { GPIPE_TEST_CUDA_FAIL = ("%s:%d:%d"):format(call, at, STATUS[(i + j) % #STATUS + 1]) }
      end
    end))

    it(("always gives the same bits every time (%s)"):format(call), on_host_form(function()
      local environment = { GPIPE_TEST_CUDA_FAIL = ("%s:1+:%d"):format(call, STATUS[i % #STATUS + 1]) }
      assert.are.equal(check_trains(environment), check_trains(environment))
    end))
  end

  it("with each status is replaced by another path", on_host_form(function()
    for _, status in ipairs(STATUS) do
      check_trains { GPIPE_TEST_CUDA_FAIL = ("cublasLtMatmulAlgoGetHeuristic:2:%d,cublasLtMatmul:3:%d,"
        .. "cublasLtMatmul:17:%d"):format(status, status, status) }
    end
  end))

  it("while a step is captured spoils neither the capture nor the work", on_host_form(function()
    for _, code in ipairs { 15, 900, 901 } do
      for _, at in ipairs { 20, 25, 31, 38, 45, 60 } do
        check_trains { GPIPE_TEST_CUDA_FAIL = ("cublasLtMatmul:%d:%d"):format(at, code) }
      end
    end
  end))

  it("ends the training where the GPU is lost", on_host_form(function()
    local f32, bf16 = losses { GPIPE_TEST_CUDA_FAIL = "cublasLtMatmul:9:700" }
    assert.matches("cuda:%d: .*cudaErrorIllegalAddress", f32)
    assert.matches("cudaErrorIllegalAddress", bf16)
  end))
end)
