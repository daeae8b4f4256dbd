-- tests/gpu/input_gradients_spec.lua - pipe:backward returns the same on GPUs wherever the model is
-- cut, and the CPU's gradient within rounding.
local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local placements = require "tests.support.placements"
local nn = gp.nn
local on_gpu = gpu.spec(it, pending)

local x, seed = gp.randn({ 10, 5 }, { seed = 1 }), gp.randn({ 10, 3 }, { seed = 2 })

local function backward(devices, options)
  gp.seed(4)
  local model = nn.Sequential { nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4), nn.Linear(4, 3) }
  local o = { devices = devices, chunks = 3, seed = 2 }
  for key, value in pairs(options) do o[key] = value end
  local pipe <close> = gp.pipeline(model, o)
  local grad
  for _ = 1, 3 do -- launched, captured, replayed
    pipe:forward(x)
    grad = pipe:backward(seed)
  end
  return grad
end

describe("pipe:backward", function()
  on_gpu("returns the gradient of the input", function()
    local want = backward({ "cpu:0" }, { balance = { 4 } })
    for _, names in ipairs(placements.sizes()) do
      local first
      for _, placement in ipairs(names) do
        for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1" } do
          local devices = placements.devices(placement, 2)
          local grad = backward(devices, { balance = { 1, 3 }, schedule = schedule })
          first = first or grad
          assert.is_true(gp.equal(first, grad), placement .. " " .. schedule)
          assert.is_true((grad - want):abs():max():item() < 1e-3)
        end
      end
    end
  end)
end)
