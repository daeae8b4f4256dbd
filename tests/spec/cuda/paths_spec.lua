-- tests/spec/cuda/paths_spec.lua - which path each kind of work takes on a GPU, and what is printed
-- about the libraries.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local nn = gp.nn

local function have_gpu() return #require("gpipe.machine").gpus() > 0 end

local function on_gpu(test)
  return function()
    if not have_gpu() then return pending "no CUDA device" end
    test()
  end
end

-- A block of attention over sequences of 8 tokens.
local function pipeline(devices)
  local model = nn.Sequential { nn.CausalSelfAttention(16, 2), nn.Linear(16, 16) }
  return gp.pipeline(model, {
    balance = #devices == 2 and { 1, 1 } or { 2 }, devices = devices, chunks = 2,
    loss = nn.MSELoss(),
  })
end

local function paths_of(device, kind)
  local found = {}
  for _, path in ipairs(device.paths) do
    if path.kind == kind then found[#found + 1] = path end
  end
  return found
end

describe("pipe:describe()", function()
  it("names the path of attention on the device that computes it, with the reason", on_gpu(function()
    local pipe <close> = pipeline { "cuda:0", "cuda:0" }
    local x = gp.ones { 4, 8, 16 }
    assert.are.equal(0, #pipe:describe().devices[1].paths)
    pipe:step(x, x)
    local described = pipe:describe()
    local found = paths_of(described.devices[1], "attention")
    assert.are.equal(2, #found)
    for i, direction in ipairs { "forward", "backward" } do
      assert.are.equal(direction .. " f32 B=2 H=2/2 Tq=8 Tk=8 D=8 causal", found[i].shape)
      assert.are.equal("own kernels", found[i].path)
      assert.matches("%S", found[i].why)
    end
    assert.are.equal(0, #paths_of(described.devices[2], "attention"))
    assert.matches("forward f32 B=2 H=2/2 Tq=8 Tk=8 D=8 causal: own kernels", tostring(described), 1,
      true)
  end))

  it("lists a path once, however many steps run", on_gpu(function()
    local pipe <close> = pipeline { "cuda:0" }
    local x = gp.ones { 4, 8, 16 }
    pipe:step(x, x)
    local before = tostring(pipe:describe())
    for _ = 1, 4 do pipe:step(x, x) end
    assert.are.equal(before, tostring(pipe:describe()))
  end))

  it("names the libraries where there is a GPU, found or missing", on_gpu(function()
    local pipe <close> = pipeline { "cuda:0" }
    local names = {}
    for i, library in ipairs(pipe:describe().libraries) do
      names[i] = library.name
      assert.is_true(library.version ~= nil or library.why ~= nil)
    end
    assert.are.same({ "CUDA driver", "CUDA runtime", "cuBLASLt", "cuDNN", "NCCL" }, names)
  end))

  it("names the library that makes a CPU's products", function()
    local pipe <close> = pipeline { "cpu:0" }
    local described = pipe:describe()
    assert.are.equal("product", described.devices[1].paths[1].kind)
    assert.are.same({}, described.libraries)
  end)
end)

describe("--list-devices", function()
  it("ends with the libraries of GPUs", on_gpu(function()
    local out = child.run { "--list-devices" }
    for _, name in ipairs { "CUDA driver", "CUDA runtime", "cuBLASLt", "cuDNN" } do
      assert.matches("\n +" .. name .. "[ :]", out)
    end
  end))
end)
