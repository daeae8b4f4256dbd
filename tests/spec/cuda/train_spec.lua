-- tests/spec/cuda/train_spec.lua - the parts of gp.train on GPUs: averages and gradients lie on the
-- GPUs, states on the host, and the bits do not depend on the cut.

local gp = require "gpipe"
local gpu = require "tests.support.gpu"
local nn, optim, train = gp.nn, gp.optim, gp.train

local on_gpu = gpu.spec(it)
local x, y = gp.randn({ 16, 6 }, { seed = 1 }), gp.randn({ 16, 3 }, { seed = 2 })

-- Returns the averages after three updates of two mini-batches each, with a saved state in the
-- middle of a round.
local function averages(devices, balance)
  gp.seed(5)
  local model = nn.Sequential { nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3) }
  local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss(), balance = balance,
    devices = devices, chunks = 2 })
  local opt = optim.Adam(pipe:parameters(), { lr = 0.02 })
  local ema, accumulate = train.ema(pipe, { decay = 0.9 }), train.accumulate(pipe, 2)
  for i = 1, 6 do
    if accumulate(x, y) then
      opt:step()
      ema:update()
    end
    local kept = { ema:state(), accumulate:state() }
    for _, average in pairs(kept[1].averages) do assert.equal("cpu", average.device) end
    if i == 3 then
      accumulate(x, y)
      accumulate:restore(kept[2])
      ema:restore(kept[1])
    end
  end
  local before = pipe:evaluate(x, y)
  assert.are_not.equal(before, ema:apply(function() return pipe:evaluate(x, y) end))
  assert.equal(before, pipe:evaluate(x, y))
  return ema:state_dict()
end

on_gpu("averages of accumulated steps have the same bits for every cut", function()
  local one = averages({ "cuda:0" }, { 3 })
  for name, value in pairs(averages({ "cuda:0", "cuda:0" }, { 1, 2 })) do
    assert.is_true(value:equal(one[name]), name)
  end
end)

on_gpu("histograms take values that lie on a GPU", function()
  local histogram = require "gpipe.train.histogram"
  local values = gp.randn({ 1000 }, { seed = 3 })
  assert.same(histogram(values), histogram(values:to "cuda:0"))
end)

on_gpu("a loss that lies on a GPU begins its gradients there", function()
  local a = gp.randn({ 4, 3 }, { seed = 1 })
  local here, there = a:clone(), a:to "cuda:0"
  here.requires_grad, there.requires_grad = true, true
  (here * here):sum():backward()
  local loss = (there * there):sum()
  loss:backward()
  assert.equal("cuda:0", there.grad.device)
  assert.is_true(there.grad:to "cpu":equal(here.grad))
end)
