-- tests/spec/optim/lbfgs_spec.lua - LBFGS against what PyTorch computed (tests/golden/lbfgs.py),
-- and over pipelines.
local assert = require "luassert"
local gp = require "gpipe"
local golden = require "tests.golden.lbfgs"
local nn, optim = gp.nn, gp.optim

local START = { -1.2, 1.0, 0.5, -0.3, 0.8, 1.7 }

-- Rosenbrock's function of six numbers.
local Valley = nn.class "Valley"
function Valley:init()
  local start = gp.tensor(START, { dtype = "f64" })
  self.x = nn.Parameter({ #START }, start, { dtype = "f64" })
end
function Valley:forward(one)
  local low, high = self.x:narrow(1, 1, #START - 1), self.x:narrow(1, 2, #START - 1)
  return ((high - low * low):square() * 100 + (1 - low):square()):sum() * one
end

for i, case in ipairs(golden) do
  it(("LBFGS (%d) makes the steps of PyTorch"):format(i), function()
    local valley, count = Valley(), 0
    local one = gp.ones({}, { dtype = "f64" })
    local opt = optim.LBFGS(valley:parameters(), case[1])
    for step, want in ipairs(case[2]) do
      local loss = opt:step(function()
        count = count + 1
        opt:zero_grad()
        local value = valley(one)
        value:backward()
        return value
      end)
      local bound = 1e-6 * (1 + math.abs(want[1]))
      assert.near(want[1], loss, bound)
      assert.are.equal(want[2], count, "step " .. step)
      for k, v in ipairs(want[3]) do assert.near(v, valley.x[k], 1e-6) end
    end
  end)
end

-- A layer that fits a plane, by one pipeline.
local function fit(devices, balance)
  gp.seed(1)
  local model = nn.Sequential { nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 1) }
  local pipe <close> = gp.pipeline(model, {
    devices = devices, balance = balance, chunks = 2, loss = nn.MSELoss(),
  })
  local x = gp.tensor { { 0, 0 }, { 1, 0 }, { 0, 1 }, { 1, 1 } }
  local y = gp.tensor { { 1 }, { 3 }, { 0 }, { 2 } }
  local opt = optim.LBFGS(pipe:parameters(), { line_search_fn = "strong_wolfe", max_iter = 30 })
  for _ = 1, 3 do opt:step(function() return pipe:step(x, y) end) end
  local list = {}
  for i, entry in ipairs(pipe:parameters()) do list[i] = entry.value:totable() end
  return pipe:evaluate(x, y), list
end

it("LBFGS trains a pipeline, with the same bits over one stage and two", function()
  local loss, weights = fit({ "cpu:0" }, { 3 })
  assert(loss < 1e-6, loss)
  local again, others = fit({ "cpu:0", "cpu:1" }, { 1, 2 })
  assert.are.equal(loss, again)
  assert.same(weights, others)
end)

it("LBFGS refuses groups, and a closure that returns no loss", function()
  local list = nn.Linear(2, 1):parameters()
  local groups = { { params = { list[1] } }, { params = { list[2] } } }
  assert.has_error(function() optim.LBFGS(groups) end)
  assert.has_error(function() optim.LBFGS(list):step(function() end) end)
  assert.has_error(function() optim.LBFGS(list):step(3) end)
end)
