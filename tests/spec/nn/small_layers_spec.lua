-- tests/spec/nn/small_layers_spec.lua - layers without parameters: activations, shapes, functions.
--
-- The references are PyTorch's formulas, written out in plain Lua.

local gp = require "gpipe"
local expect = require "tests.support.expect"

local nn = gp.nn
local fails_with = expect.fails_with

local VALUES = { -30, -3, -2.5, -1, -0.25, 0, 0.5, 1, 2.75, 3, 6, 7.5, 30 }

local function relu6(v) return math.min(math.max(v, 0), 6) end
local function softplus(v, beta, threshold)
  return v * beta > threshold and v or math.log(1 + math.exp(v * beta)) / beta
end

-- { layer, formula, how it prints }
local activations = {
  { nn.LeakyReLU(), function(v) return v > 0 and v or 0.01 * v end, "nn.LeakyReLU(0.01)" },
  { nn.LeakyReLU(0.2), function(v) return v > 0 and v or 0.2 * v end, "nn.LeakyReLU(0.2)" },
  { nn.ELU(), function(v) return v > 0 and v or math.exp(v) - 1 end, "nn.ELU(1)" },
  { nn.ELU(2), function(v) return v > 0 and v or 2 * (math.exp(v) - 1) end, "nn.ELU(2)" },
  { nn.Softplus(), function(v) return softplus(v, 1, 20) end, "nn.Softplus(1, 20)" },
  { nn.Softplus(2, 5), function(v) return softplus(v, 2, 5) end, "nn.Softplus(2, 5)" },
  { nn.ReLU6(), relu6, "nn.ReLU6" },
  { nn.Hardsigmoid(), function(v) return relu6(v + 3) / 6 end, "nn.Hardsigmoid" },
  { nn.Hardswish(), function(v) return v * relu6(v + 3) / 6 end, "nn.Hardswish" },
}

describe("activations", function()
  for _, case in ipairs(activations) do
    it("compute PyTorch's formula and print their numbers: " .. case[3], function()
      for _, dtype in ipairs { "f32", "f64" } do
        local y = case[1](gp.tensor(VALUES, { dtype = dtype }))
        for i, v in ipairs(VALUES) do assert.near(case[2](v), y[i], 1e-5) end
      end
      assert.equal(case[3], tostring(case[1]))
    end)
  end

  it("check their numbers", function()
    fails_with('nn.ELU: alpha is "x" (string), expected a finite number',
      function() nn.ELU("x") end)
    fails_with("nn.LeakyReLU: slope is", function() nn.LeakyReLU(0 / 0) end)
    fails_with("nn.Softplus: threshold is", function() nn.Softplus(1, math.huge) end)
    fails_with("ReLU6: input is 3, expected a tensor", function() nn.ReLU6()(3) end)
  end)
end)

describe("nn.LogSoftmax", function()
  it("is the logarithm of nn.Softmax along its dimension", function()
    local x = gp.randn({ 3, 4 }, { seed = 1, dtype = "f64" })
    for _, dim in ipairs { 1, 2, -1 } do
      local difference = nn.LogSoftmax(dim)(x) - nn.Softmax(dim)(x):log()
      assert.is_true(difference:abs():max():item() < 1e-12)
    end
    assert.equal("nn.LogSoftmax(-1)", tostring(nn.LogSoftmax()))
    fails_with("nn.LogSoftmax: dim is 0", function() nn.LogSoftmax(0) end)
  end)
end)

describe("nn.Identity and nn.Lambda", function()
  it("return all their inputs", function()
    local a, b = gp.ones { 2 }, gp.zeros { 2 }
    assert.same({ a, b }, { nn.Identity()(a, b) })
    local swap = nn.Lambda(function(x, y) return y, x end)
    assert.same({ b, a }, { swap(a, b) })
    assert.matches("nn.Lambda%(small_layers_spec.lua:%d+%)", tostring(swap))
    fails_with("nn.Lambda: fn is 3, expected a function", function() nn.Lambda(3) end)
  end)

  it("are traced like other layers", function()
    local model = nn.Sequential {
      nn.Linear(4, 4), nn.Identity(), nn.Lambda(function(x) return x * 2 + 1 end), nn.ELU(0.5),
    }
    local x = gp.randn({ 6, 4 }, { seed = 2 })
    local want = model(x)
    local pipe <close> = gp.pipeline(model, { balance = { 2, 2 }, devices = { "cpu:0", "cpu:1" },
      chunks = 2 })
    assert.is_true((pipe:forward(x) - want):abs():max():item() < 1e-6)
  end)
end)

describe("nn.Reshape", function()
  it("keeps the batch and infers one size", function()
    local x = gp.arange(1, 24):reshape { 2, 12 }
    assert.same({ 2, 3, 4 }, nn.Reshape({ 3, -1 })(x).shape)
    assert.same({ 2, 2, 6 }, nn.Reshape(2, 6)(x).shape)
    assert.is_true(gp.equal(x:reshape { 2, 4, 3 }, nn.Reshape(4, 3)(x)))
    assert.equal("nn.Reshape(3, -1)", tostring(nn.Reshape { 3, -1 }))
  end)

  it("checks its sizes", function()
    fails_with("nn.Reshape: shape[1] is 0, expected a positive integer", function() nn.Reshape(0) end)
    fails_with("nn.Reshape: shape is nil, expected a list", function() nn.Reshape() end)
    fails_with("nn.Reshape: shape has -1 2 times", function() nn.Reshape { -1, -1 } end)
    fails_with("Reshape 5: reshape: the shape is 2x5", function() nn.Reshape(5)(gp.ones { 2, 4 }) end)
    fails_with("input is a scalar", function() nn.Reshape(5)(gp.tensor(1)) end)
  end)
end)

describe("nn.Permute", function()
  it("orders dimensions, the batch among them", function()
    local x = gp.arange(1, 24):reshape { 2, 3, 4 }
    assert.is_true(gp.equal(x:permute(1, 3, 2), nn.Permute({ 1, 3, 2 })(x)))
    assert.same({ 3, 2, 4 }, nn.Permute(2, 1, 3)(x).shape)
    assert.equal("nn.Permute(1, 3, 2)", tostring(nn.Permute { 1, 3, 2 }))
  end)

  it("checks its order", function()
    fails_with("nn.Permute: order is {1, 1}, expected each of 1 .. 2 once",
      function() nn.Permute(1, 1) end)
    fails_with("nn.Permute: order is nil", function() nn.Permute() end)
    fails_with('nn.Permute: order[2] is "a"', function() nn.Permute { 1, "a" } end)
    fails_with("1 (Permute 2, 1): input is 2x3x4, expected 2 dimensions",
      function() nn.Sequential { nn.Permute(2, 1) }(gp.ones { 2, 3, 4 }) end)
  end)
end)
