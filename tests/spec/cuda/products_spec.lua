-- tests/spec/cuda/products_spec.lua - odd operands are copied to padded rows, plans are kept in
-- a process.
--
-- It runs on the plugin compiled for the host, whose library refuses odd rows where a test asks for
-- it (tests/cuda/libraries). Each case is a process.

local child = dofile "tests/child.lua"

-- Sends 300 rows through layers of 33 and 11 columns; prints five losses in f32, then in bf16, then
-- the paths.
local SCRIPT = [[
  local gp = require "gpipe"
  local nn = gp.nn
  local ways = {}
  local function train(precision)
    local model = nn.Sequential { nn.Linear(24, 33), nn.ReLU(), nn.Linear(33, 11, { bias = false }) }
    gp.seed(3)
    local x, y = gp.randn({ 300, 24 }), gp.zeros({ 300 }, { dtype = "i64" })
    local pipe <close> = assert(gp.pipeline(model, {
      chunks = 1, loss = nn.CrossEntropyLoss(), seed = 2, precision = precision, devices = { "cuda:0" },
    }))
    local opt, text = gp.optim.SGD(pipe:parameters(), { lr = 0.5 }), ""
    for _ = 1, 5 do
      text = text .. (" %a"):format(assert(pipe:step(x, y)))
      assert(opt:step() ~= false)
    end
    for _, path in ipairs(pipe:describe().devices[1].paths) do ways[path.path] = true end
    return text
  end
  for _, precision in ipairs { "f32", "bf16" } do print(select(2, pcall(train, precision))) end
  local sorted = {}
  for way in pairs(ways) do sorted[#sorted + 1] = way end
  table.sort(sorted)
  for _, way in ipairs(sorted) do io.write(way, "; ") end
  print()
]]

local function run(environment)
  local out, err, code = child.run({ "-" }, { input = SCRIPT, environment = environment })
  assert.are.equal(0, code, err)
  local f32, bf16, ways = out:match "^( 0x.-)\n( 0x.-)\n(.-)\n$"
  assert(ways, out .. err)
  return f32, bf16, ways
end

local function on_host_form(f)
  return function()
    if not (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host" then
      pending("no library that refuses on demand") return
    end
    f()
  end
end

describe("Products of odd rows", function()
  it("have the same bits on padded copies where the library refuses them", on_host_form(function()
    local f32, bf16, ways = run {}
    local padded_f32, padded_bf16, padded_ways = run { GPIPE_TEST_GEMM_ALIGNED = "1" }
    assert.is_nil(ways:find "padded")
    assert.matches("padded copies", padded_ways)
    assert.is_nil(padded_ways:find "own kernel without")
    assert.are.equal(f32, padded_f32)
    assert.are.equal(bf16, padded_bf16)
  end))

  it("are computed in pieces of bounded size", on_host_form(function()
    local f32 = run {}
    local pieces = run { GPIPE_TEST_GEMM_ALIGNED = "1", GPIPE_GEMM_PAD = "1" }
    local expected = f32:gmatch "%S+"
    for loss in pieces:gmatch "%S+" do -- sums over rows are added piece by piece
      local want = tonumber(expected())
      assert(math.abs(tonumber(loss) - want) <= 1e-5 * math.abs(want), pieces .. f32)
    end
  end))
end)

-- The products of 517 classes: columns of the scores, sums of dx, rows of dw.
local TAILS = [[
  local gp = require "gpipe"
  local nn = gp.nn
  gp.seed(3)
  local model = nn.Sequential { nn.Linear(24, 64), nn.Tanh(), nn.Linear(64, 517, { bias = false }) }
  local x, y = gp.randn({ 300, 24 }), gp.randint(0, 517, { 300 })
  local pipe <close> = assert(gp.pipeline(model, {
    chunks = 1, loss = nn.CrossEntropyLoss(), seed = 2, precision = "bf16", devices = { "cuda:0" },
  }))
  local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.5 })
  for _ = 1, 5 do
    print(("%.17g"):format(assert(pipe:step(x, y))))
    assert(opt:step() ~= false)
  end
  for _, path in ipairs(pipe:describe().devices[1].paths) do
    if path.path:find "whole groups" then io.write(path.shape, "; ") end
  end
  print()
]]

describe("Products of odd sizes", function()
  local function tails(least)
    local out, err, code = child.run({ "-" },
      { input = TAILS, environment = { GPIPE_GEMM_TAILS = least } })
    assert.are.equal(0, code, err)
    local list = {}
    for line in out:gmatch "(.-)\n" do list[#list + 1] = line end
    return list
  end

  it("are split into whole groups and the rest where that is asked for", on_host_form(function()
    local whole, split = tails "0", tails "1"
    assert.are.equal("", whole[6])
    for _, shape in ipairs { "300x64 by 64x517", "300x517 by 517x64", "517x300 by 300x64" } do
      assert.matches(shape, split[6], 1, true)
    end
    assert.are.equal(whole[1], split[1]) -- columns of scores are sums of their own
    for step = 1, 5 do -- dx is rounded once more
      local a, b = tonumber(whole[step]), tonumber(split[step])
      assert(math.abs(a - b) <= 2e-3 * math.abs(a), ("step %d: %s and %s"):format(step, a, b))
    end
  end))

  it("stay whole where they are small", on_host_form(function()
    assert.are.equal("", tails(nil)[6])
  end))
end)

describe("Plans of products", function()
  -- Opens three pipelines of one shape; prints which of them got a refusal.
  local PIPELINES = [[
    local gp = require "gpipe"
    local nn = gp.nn
    local function train(device)
      local model = nn.Sequential { nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 24) }
      local pipe <close> = gp.pipeline(model, { chunks = 1, loss = nn.MSELoss(), devices = { device } })
      pipe:step(gp.ones { 8, 24 }, gp.ones { 8, 24 })
      for _, path in ipairs(pipe:describe().devices[1].paths) do
        if path.path:find "own kernel without" then return "refused" end
      end
      return "clean"
    end
    print(train "cuda:0", train "cuda:0", train "cuda:0")
  ]]

  local function pipelines(fail)
    local out, err, code = child.run({ "-" },
      { input = PIPELINES, environment = { GPIPE_TEST_CUDA_FAIL = fail } })
    assert.are.equal(0, code, err)
    return out
  end

  it("are requested only by the first pipeline of a process", on_host_form(function()
    local last
    for _, n in ipairs { 1, 3, 5, 8, 12, 20 } do
      last = pipelines(("cublasLtMatmulAlgoGetHeuristic:%d+"):format(n))
      local first, second, third = last:match "(%a+)%s+(%a+)%s+(%a+)"
      assert.are.same({ first, first }, { second, third })
    end
    assert.matches("clean", last)
    assert.matches("clean%s+clean%s+clean", pipelines "cublasLtCreate:2+")
  end))
end)
