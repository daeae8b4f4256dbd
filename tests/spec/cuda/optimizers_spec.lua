-- tests/spec/cuda/optimizers_spec.lua - compares weights after updates on a GPU with those that
-- PyTorch computed on CPUs (tests/golden/optim.py).
--
-- A layer multiplies its weights by the rows of a batch, so that a row is the gradient.

local gp = require "gpipe"
local golden = require "tests.golden.optim"
local gpu = require "tests.support.gpu"

local on_gpu = gpu.spec(it)
local COUNT, STEPS, SHOWN = 11, 20, { 1, 2, 20 }

-- The bounds of CPUs are half of these: CUDA's roots are correctly rounded, its powers are not.
local BOUNDS = { f32 = 4e-7, f64 = 1e-15 }

-- numbers() of tests/golden/layers.py: rounded to f32 there.
local function numbers(k, scale, dtype)
  local list = {}
  for i = 0, COUNT - 1 do
    local raw = ((31 * i * i + 7919 * i + 104729 * k) % 1009) / 1009
    list[i + 1] = (scale or 1) * (2 * raw - 1)
  end
  return gp.tensor(list, { dtype = "f64" }):to("f32"):to(dtype)
end

local Line = gp.nn.class "Line"
function Line:init(dtype)
  self.w = gp.nn.Parameter({ COUNT }, numbers(1, 1, dtype), { dtype = dtype })
end
function Line:forward(x) return self.w * x end

local function pipeline(device, dtype)
  return gp.pipeline(gp.nn.Sequential { Line(dtype) }, {
    devices = { device }, loss = function(output) return output:sum(), 1 end,
  })
end

-- Makes numbers(1 + step) the gradient of a step.
local function step(pipe, number, dtype)
  pipe:step(numbers(1 + number, 0.3, dtype):reshape { 1, COUNT }, gp.zeros { 1 })
end

local function follow(case, dtype, want)
  local pipe <close> = pipeline("cuda:0", dtype)
  local params, shown = pipe:parameters(), 1
  local opt = gp.optim[case[1]](params, case[2])
  for number = 1, STEPS do
    step(pipe, number, dtype)
    opt:step()
    if number == SHOWN[shown] then
      local list = gp.tensor(want[shown], { dtype = "f64" })
      local off = (params[1].value:to("cpu"):to "f64" - list):abs():max():item()
      assert(off <= BOUNDS[dtype], ("step %d in %s is off by %g"):format(number, dtype, off))
      shown = shown + 1
    end
  end
end

describe("updates on a GPU", function()
  for i, case in ipairs(golden.optimizers) do
    on_gpu(("make the steps of PyTorch: %s (%d)"):format(case[1], i), function()
      follow(case, "f32", case[3])
      follow(case, "f64", case[4])
    end)
  end

  for _, dtype in ipairs { "f32", "f64" } do
    on_gpu("clip values of gradients in " .. dtype .. " as CPUs do, to the bit", function()
      local clipped = {}
      for _, device in ipairs { "cpu:0", "cuda:0" } do
        local pipe <close> = pipeline(device, dtype)
        step(pipe, 1, dtype)
        gp.optim.clip_grad_value(pipe:parameters(), 0.125)
        clipped[#clipped + 1] = pipe:parameters()[1].grad:to "cpu"
      end
      assert(gp.equal(clipped[1], clipped[2]))
      assert.are.equal(0.125, clipped[2]:abs():max():item())
    end)
  end
end)
