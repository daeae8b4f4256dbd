-- tests/spec/nn/fill_spec.lua - nn.init's functions that write at once: their distributions, and
-- what they refuse.

local gp = require "gpipe"
local failure = dofile("tests/support/expect.lua").failure

local init = gp.nn.init

local function spread(t) return t:to("f64"):mean():item(), t:to("f64"):std():item() end

describe("nn.init writes into a parameter", function()
  local cases = {
    { "uniform_", { -3, 3, { seed = 1 } }, 6 / 12 ^ 0.5 },
    { "normal_", { 0, 0.5, { seed = 1 } }, 0.5 },
    { "xavier_uniform_", { 1, { seed = 1 } }, (2 / 300) ^ 0.5 },
    { "xavier_normal_", { 2, { seed = 1 } }, 2 * (2 / 300) ^ 0.5 },
    { "kaiming_uniform_", { { nonlinearity = "relu", seed = 1 } }, (2 / 100) ^ 0.5 },
    { "kaiming_normal_", { { mode = "fan_out", nonlinearity = "linear", seed = 1 } },
      (1 / 200) ^ 0.5 },
    -- Standard deviation of a normal within two deviations: sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)).
    { "trunc_normal_", { 0, 1, -2, 2, { seed = 1 } }, 0.87963 },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local layer = gp.nn.Linear(100, 200)
      local w = layer.weight
      assert.equal(w, init[case[1]](w, table.unpack(case[2])))
      local mean, std = spread(w:value())
      assert.near(0, mean, 0.03 * case[3])
      assert.near(case[3], std, 0.02 * case[3])
      local again = init[case[1]](gp.zeros { 200, 100 }, table.unpack(case[2]))
      assert.is_true(gp.equal(again, w:value()))
    end)
  end

  it("and a model then trains with those values", function()
    local layer = gp.nn.Linear(2, 1, { bias = false })
    init.constant_(layer.weight, 3)
    local pipe <close> = gp.pipeline(gp.nn.Sequential { layer }, { balance = { 1 } })
    assert.equal(6, pipe:forward(gp.ones { 1, 2 })[1][1])
  end)
end)

describe("trunc_normal_", function()
  it("keeps to its range, far out too", function()
    for _, range in ipairs { { -2, 2 }, { 3, 4 }, { -9, -8 }, { -1, 30 } } do
      local t = init.trunc_normal_(gp.zeros({ 5000 }, { dtype = "f64" }), 0, 1, range[1], range[2])
      assert.is_true(t:ge(range[1]):all():item() and t:le(range[2]):all():item())
      assert.is_true(t:std():item() > 0.05)
    end
    -- The mean of a tail beyond 3 (to 4) is (phi(3) - phi(4)) / (Phi(4) - Phi(3)).
    assert.near(3.2614, init.trunc_normal_(gp.zeros { 40000 }, 0, 1, 3, 4):mean():item(), 0.01)
  end)
end)

describe("orthogonal_", function()
  it("has orthogonal rows or columns of the length asked for", function()
    for _, shape in ipairs { { 4, 4 }, { 3, 8 }, { 8, 3 }, { 6, 2, 2, 2 } } do
      local w = init.orthogonal_(gp.zeros(shape), 2):reshape(shape[1], -1)
      local square = w.shape[1] <= w.shape[2] and w:matmul(w:t()) or w:t():matmul(w)
      assert.is_true(square:allclose(gp.eye(square.shape[1]) * 4, { atol = 1e-5 }))
    end
  end)
end)

describe("eye_, dirac_ and sparse_", function()
  it("put ones and zeros where PyTorch does", function()
    assert.are.same({ { 1, 0, 0 }, { 0, 1, 0 } }, init.eye_(gp.ones { 2, 3 }):totable())
    local x = gp.randn { 2, 4, 5, 6 }
    local conv = gp.nn.Conv2d(4, 4, 3, { padding = 1, groups = 2, bias = false })
    init.dirac_(conv.weight, 2)
    assert.is_true(gp.equal(x, conv(x)))
    local s = init.sparse_(gp.ones { 10, 4 }, 0.25, 2)
    assert.are.same({ 3, 3, 3, 3 }, s:eq(0):to("i64"):sum(1):totable())
  end)
end)

describe("nn.init refuses", function()
  for text, call in pairs {
    ["expected a tensor or a parameter"] = function() init.normal_(3) end,
    ["the tensor is i64"] = function() init.zeros_(gp.zeros({ 2 }, { dtype = "i64" })) end,
    ["two dimensions"] = function() init.xavier_uniform_(gp.zeros { 2 }) end,
    ["low < high"] = function() init.trunc_normal_(gp.zeros { 2 }, 0, 1, 2, 1) end,
    ["expected at least 2"] = function() init.orthogonal_(gp.zeros { 2 }) end,
    ["expected 3 to 5"] = function() init.dirac_(gp.zeros { 2, 2 }) end,
    ["a divisor of 3"] = function() init.dirac_(gp.zeros { 3, 2, 1 }, 2) end,
    ["from 0 to 1"] = function() init.sparse_(gp.zeros { 3, 2 }, 2) end,
    ["sed"] = function() init.normal_(gp.zeros { 2 }, 0, 1, { sed = 1 }) end,
  } do
    it(text, function() assert.matches(text, failure(call), 1, true) end)
  end
end)
