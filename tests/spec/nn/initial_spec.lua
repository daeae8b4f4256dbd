-- tests/spec/nn/initial_spec.lua - initial values: distributions, fans, and how the seed decides
-- them.
local gp = require "gpipe"
local nn = gp.nn

local function flat(tensor) return tensor:reshape({ tensor:numel() }):totable() end

-- Returns mean, standard deviation, smallest and largest of the first values.
local function moments(parameter)
  local values = flat(parameter:value())
  local sum, squares, low, high = 0, 0, math.huge, -math.huge
  for _, v in ipairs(values) do
    sum, squares = sum + v, squares + v * v
    low, high = math.min(low, v), math.max(high, v)
  end
  local mean = sum / #values
  return mean, math.sqrt(squares / #values - mean * mean), low, high
end

local SHAPE = { 200, 100 } -- fan_out, fan_in
local RELATIVE = 0.02      -- 20,000 draws: the deviation of the deviation is about 0.5 %

-- initialiser, standard deviation, bound (uniform ones)
local cases = {
  { "normal", nn.init.normal(0, 0.5), 0.5 },
  { "uniform", nn.init.uniform(-3, 3), 3 / math.sqrt(3), 3 },
  { "xavier_uniform", nn.init.xavier_uniform(), math.sqrt(2 / 300), math.sqrt(6 / 300) },
  { "xavier_normal", nn.init.xavier_normal(2), 2 * math.sqrt(2 / 300) },
  { "kaiming_uniform", nn.init.kaiming_uniform(), math.sqrt(2 / 100), math.sqrt(6 / 100) },
  { "kaiming_normal", nn.init.kaiming_normal { mode = "fan_out", nonlinearity = "linear" },
    math.sqrt(1 / 200) },
}

describe("nn.init", function()
  for _, case in ipairs(cases) do
    local name, init, deviation, bound = table.unpack(case)
    it(name .. " has the mean and deviation of its formula", function()
      local mean, std, low, high = moments(nn.Parameter(SHAPE, init))
      assert.near(0, mean, deviation * 0.03)
      assert.near(deviation, std, deviation * RELATIVE)
      if bound then assert.is_true(low >= -bound and high <= bound and high > 0.99 * bound) end
    end)
  end

  it("counts the window of a convolution in the fans", function()
    local kind, a, b = nn.init.xavier_uniform().resolve({ 4, 2, 3, 3 })
    assert.are.same({ "uniform", -1 / 3, 1 / 3 }, { kind, a, b })
  end)

  it("has the gains of PyTorch", function()
    assert.near(5 / 3, nn.init.gain("tanh"), 1e-12)
    assert.near(math.sqrt(2 / (1 + 0.2 ^ 2)), nn.init.gain("leaky_relu", 0.2), 1e-12)
  end)

  it("fills with constants, numbers and tensors", function()
    assert.are.same({ 1, 1 }, nn.Parameter({ 2 }, nn.init.ones()):totable())
    assert.are.same({ 0.5, 0.5 }, nn.Parameter({ 2 }, 0.5):totable())
    assert.are.same({ 1, 2 }, nn.Parameter({ 2 }, gp.tensor { 1, 2 }):totable())
  end)
end)

describe("the first value of a parameter", function()
  local function draw() return flat(nn.Parameter({ 8 }, nn.init.normal()):value()) end

  it("repeats after gp.seed", function()
    gp.seed(3)
    local a, b = draw(), draw()
    assert.are_not.same(a, b)
    gp.seed(3)
    assert.are.same(a, draw())
    assert.are.same(b, draw())
    gp.seed(4)
    assert.are_not.same(a, draw())
  end)

  it("is decided at declaration, not when it is first read", function()
    gp.seed(3)
    local a = draw()
    gp.seed(3)
    local late = nn.Parameter({ 8 }, nn.init.normal())
    gp.seed(9)
    draw()
    assert.are.same(a, flat(late:value()))
  end)

  it("of a Linear is uniform within 1 / sqrt(in)", function()
    local layer = nn.Linear(100, 200)
    local mean, std, low, high = moments(layer.weight)
    assert.near(0, mean, 0.003)
    assert.near(0.1 / math.sqrt(3), std, 0.001)
    assert.is_true(low >= -0.1 and high <= 0.1)
    assert.is_true(select(4, moments(layer.bias)) <= 0.1)
  end)

  it("of a Linear or an Embedding can be chosen", function()
    local linear = nn.Linear(2, 1, { init = nn.init.ones() })
    assert.are.same({ { 1, 1 } }, linear.weight:totable())
    assert.are.same({ { 2 } }, nn.Embedding(1, 1, { init = 2 }).weight:totable())
  end)

  it("of an Embedding is normal(0, 1)", function()
    local mean, std = moments(nn.Embedding(200, 100).weight)
    assert.near(0, mean, 0.03)
    assert.near(1, std, 0.02)
  end)
end)
