-- tests/spec/nn/images_spec.lua - layers of images against references in plain Lua, and models of
-- them over cuts and threads.

local gp = require "gpipe"
local array = require "tests.support.array"
local convolution = require "tests.support.convolution"

local nn = gp.nn

local TOLERANCE = 1e-5 -- f32 against double, values of order 1, sums of up to 150 terms

local function near(want, have)
  local got = array.of(have)
  assert.are.same(want.shape, got.shape)
  for i = 1, #want do
    assert(math.abs(want[i] - got[i]) <= TOLERANCE * (1 + math.abs(want[i])),
      ("element %d is %.9g, expected %.9g"):format(i, got[i], want[i]))
  end
end

-- The value of a parameter of a layer.
local function value(layer, name)
  for _, p in ipairs(layer:parameters()) do
    if p.name == name then return array.of(p.value) end
  end
end

local function reference(f, layer, x, o)
  return f(o, array.of(x), value(layer, "weight"), value(layer, "bias"))
end

describe("nn.Conv2d", function()
  it("convolves with its stride, padding and dilation", function()
    local layer, x = nn.Conv2d(3, 4, { 3, 2 }, { stride = { 2, 1 }, padding = 1, dilation = { 1, 2 } }),
      gp.randn { 2, 3, 7, 6 }
    near(reference(convolution.conv2d, layer, x,
      { stride = { 2, 1 }, padding = { 1, 1, 1, 1 }, dilation = { 1, 2 } }), layer(x))
  end)

  it("keeps the size with padding \"same\", more of it behind", function()
    local layer, x = nn.Conv2d(2, 2, { 4, 3 }, { padding = "same" }), gp.randn { 1, 2, 5, 6 }
    near(reference(convolution.conv2d, layer, x, { padding = { 1, 2, 1, 1 } }), layer(x))
  end)

  it("convolves groups apart", function()
    local layer, x = nn.Conv2d(4, 6, 3, { groups = 2, bias = false }), gp.randn { 2, 4, 5, 5 }
    assert.are.same({ 6, 2, 3, 3 }, value(layer, "weight").shape)
    near(reference(convolution.conv2d, layer, x, { groups = 2 }), layer(x))
  end)

  it("starts uniform in +-1 / sqrt of what an output is made of", function()
    local w = value(nn.Conv2d(4, 100, 5), "weight")
    assert(math.max(table.unpack(w, 1, 5000)) <= 0.1 and math.max(table.unpack(w, 1, 5000)) > 0.099)
  end)

  it("prints what it is", function()
    assert.are.equal("Conv2d 4 -> 6, kernel 3x3, stride 2x2, 2 groups",
      nn.describe(nn.Conv2d(4, 6, 3, { stride = 2, groups = 2 })))
  end)
end)

describe("nn.Conv1d", function()
  it("is a convolution of images of height 1", function()
    local layer, x = nn.Conv1d(3, 4, 3, { stride = 2, padding = 1, dilation = 2 }), gp.randn { 2, 3, 11 }
    local w = value(layer, "weight")
    assert.are.same({ 4, 3, 3 }, w.shape)
    local want = convolution.conv2d({ stride = { 1, 2 }, padding = { 0, 0, 1, 1 },
      dilation = { 1, 2 } }, array.reshape(array.of(x), { 2, 3, 1, 11 }),
      array.reshape(w, { 4, 3, 1, 3 }), value(layer, "bias"))
    near(array.reshape(want, { 2, 4, want.shape[4] }), layer(x))
  end)

  it("names itself where its input is no sequence", function()
    assert.has_error(function() nn.Conv1d(3, 4, 3)(gp.ones { 3, 5 }) end,
      "Conv1d 3 -> 4, kernel 3: input is 3x5, expected ?x3x?")
  end)
end)

describe("nn.ConvTranspose2d", function()
  it("makes images of the size that a convolution came from", function()
    local layer = nn.ConvTranspose2d(4, 6, 3,
      { stride = 2, padding = 1, output_padding = { 1, 0 }, groups = 2 })
    local x = gp.randn { 2, 4, 3, 4 }
    assert.are.same({ 4, 3, 3, 3 }, value(layer, "weight").shape)
    near(reference(convolution.transposed, layer, x, {
      stride = { 2, 2 }, padding = { 1, 1, 1, 1 }, groups = 2, size = { 6, 7 },
    }), layer(x))
  end)
end)

-- ---- models ----------------------------------------------------------------------------------

local function model()
  return nn.Sequential {
    nn.Conv2d(3, 8, 3, { padding = 1 }), nn.ReLU(),
    nn.Conv2d(8, 8, 3, { stride = 2, padding = 1, groups = 2 }), nn.Tanh(),
    nn.Sequential { nn.ConvTranspose2d(8, 4, 2, { stride = 2 }), nn.ReLU() },
    nn.Flatten(), nn.Linear(4 * 8 * 8, 5),
  }
end

-- Losses and gradients of two steps.
local function train(opts)
  gp.seed(3)
  local results = {}
  opts.loss, opts.chunks = nn.CrossEntropyLoss(), 2
  local pipe <close> = gp.pipeline(model(), opts)
  local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
  local x, y = gp.randn({ 5, 3, 8, 8 }, { seed = 1 }), gp.tensor({ 0, 4, 2, 1, 3 }, { dtype = "i64" })
  for _ = 1, 2 do
    results[#results + 1] = pipe:step(x, y)
    for _, p in ipairs(pipe:parameters()) do results[#results + 1] = p.grad:clone() end
    opt:step()
  end
  return results
end

describe("a model of convolutions", function()
  local want = train { devices = { { "cpu:0", threads = 1 } } }
  for name, opts in pairs {
    ["two threads"] = { devices = { { "cpu:0", threads = 2 } } },
    ["two stages"] = { balance = { 2, 5 }, checkpoint = "always" },
    ["three stages, GPipe"] = { balance = { 1, 3, 3 }, schedule = "gpipe", checkpoint = "never" },
    ["a stage a layer"] = { balance = { 1, 1, 1, 1, 1, 1, 1 } },
  } do
    it("has the same bits with " .. name, function()
      for i, result in ipairs(train(opts)) do
        local same = type(result) == "number" and result == want[i] or gp.equal(result, want[i])
        assert(same, ("result %d differs"):format(i))
      end
    end)
  end
end)
