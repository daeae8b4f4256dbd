-- tests/spec/cuda/eager_memory_spec.lua - results of single ops on a GPU share memory that earlier
-- ones have given back.
--
-- Only the plugin compiled for the host can let allocations fail (GPIPE_TEST_CUDA_FAIL).

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local gpu = require "tests.support.gpu"

local on_gpu = gpu.spec(it)

local function is_host_form() return (os.getenv "GPIPE_CUDA_PLUGIN" or ""):find "cuda_host" end

-- Runs a script in which allocations fail from the N-th on.
local function run(script, allocations)
  return child.run({ "-" }, {
    input = "local gp = require 'gpipe'\n" .. script,
    environment = { GPIPE_TEST_CUDA_FAIL = ("cudaMalloc:%d+"):format(allocations) },
  })
end

describe("Results of ops on a GPU", function()
  it("take memory that earlier results have given back", function()
    if not is_host_form() then return pending "no way to count allocations" end
    local out, err, code = run([[
      local x = gp.zeros({ 1000 }):to "cuda:0"
      for i = 1, 300 do
        x = x + 1
        if i % 5 == 0 then collectgarbage() end
      end
      print(x:sum():item())
    ]], 40)
    assert.are.equal(0, code, err)
    assert.are.equal("300000.0", out:match "%S+")
  end)

  it("give all of it back where the GPU has no other left", function()
    if not is_host_form() then return pending "no way to let allocations fail" end
    local out, err, code = child.run({ "-" }, {
      environment = { GPIPE_TEST_GPU_MEMORY = tostring(64 << 20) },
      input = [[
        local gp = require "gpipe"
        for mib = 1, 20 do
          local x = gp.ones({ mib << 18 }):to "cuda:0" * 2
          x = nil collectgarbage() collectgarbage()
        end
        local big = gp.ones({ 40 << 18 }):to "cuda:0"
        print(big:sum():item() == 40 << 18)
      ]],
    })
    assert.are.equal(0, code, err)
    assert.are.equal("true", out:match "%S+")
  end)

  on_gpu("are counted while they live, and no longer", function()
    local x = gp.ones({ 1 << 18 }):to "cuda:0"
    assert.are.equal(2.0, (x * 2)[1]) -- ops have scratch memory from now on
    collectgarbage() collectgarbage()
    local before = gp.memory()["cuda:0"].live
    local y = x * 2
    assert.are.equal(before + (1 << 20), gp.memory()["cuda:0"].live)
    assert.are.equal(2.0, y[1])
    y = nil -- luacheck: ignore
    collectgarbage() collectgarbage()
    assert.are.equal(before, gp.memory()["cuda:0"].live)
  end)

  on_gpu("have the elements that the op makes, whatever was there before", function()
    for i = 1, 50 do
      local x = gp.full({ 777 }, i):to "cuda:0"
      assert.are.equal(777 * i * 2.0, (x + i):sum():item())
      assert.are.equal(0.0, (x - x):sum():item())
    end
  end)
end)
