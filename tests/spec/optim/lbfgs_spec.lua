-- tests/spec/optim/lbfgs_spec.lua - LBFGS agrees with what PyTorch computed
-- (tests/golden/lbfgs.py), also in pipelines.
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

-- Fits a plane with a layer in one pipeline.
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

-- ---- losses that are not finite, and resuming --------------------------------------------------

local function line() return nn.Linear(2, 1) end
local x, y = gp.randn({ 8, 2 }, { seed = 1 }), gp.randn({ 8, 1 }, { seed = 2 })

-- Makes a closure over a line; `broken(call)` says when its loss is multiplied by NaN.
local function closure_of(layer, opt, broken)
  local calls = 0
  return function()
    calls = calls + 1
    opt:zero_grad()
    local loss = (layer(x) - y):square():mean()
    if broken and broken(calls) then loss = loss * (0 / 0) end
    loss:backward()
    return loss
  end
end

for _, search in ipairs { "none", "strong_wolfe" } do
  local settings = { lr = 0.1, line_search_fn = search ~= "none" and search or nil }

  it("LBFGS keeps parameters finite where a loss is not, and counts it: search " .. search, function()
    local layer = line()
    local opt = optim.LBFGS(layer:parameters(), settings)
    local before = layer.weight:clone()
    opt:step(closure_of(layer, opt, function() return true end))
    assert.is_true(gp.equal(before, layer.weight))
    assert.equal(1, opt.skipped)
    opt:step(closure_of(layer, opt, function(call) return call > 2 end))
    assert.is_true(layer.weight:isfinite():all():item())
    local first = opt:step(closure_of(layer, opt))
    for _ = 1, 3 do opt:step(closure_of(layer, opt)) end
    assert.is_true(opt:step(closure_of(layer, opt)) < first)
  end)

  it("LBFGS goes on from a state with the same bits: search " .. search, function()
    local whole, cut, rest = line(), line(), line()
    cut:load_state_dict(whole:state_dict())
    local a, b = optim.LBFGS(whole:parameters(), settings), optim.LBFGS(cut:parameters(), settings)
    for _ = 1, 4 do a:step(closure_of(whole, a)) end
    for _ = 1, 2 do b:step(closure_of(cut, b)) end
    rest:load_state_dict(cut:state_dict())
    local c = optim.LBFGS(rest:parameters(), settings)
    c:restore(b:state())
    for _ = 1, 2 do c:step(closure_of(rest, c)) end
    for name, value in pairs(whole:state_dict()) do
      assert.is_true(gp.equal(value, rest:state_dict()[name]), name)
    end
  end)
end

it("LBFGS refuses the state of other parameters", function()
  local layer, other = line(), nn.Linear(3, 1)
  local opt, wide = optim.LBFGS(layer:parameters()), optim.LBFGS(other:parameters())
  opt:step(closure_of(layer, opt))
  local good, message = pcall(wide.load_state_dict, wide, opt:state_dict())
  assert.is_false(good)
  assert.matches("direction is f64 3, expected f64 lines of 4 values", message)
end)
