-- tests/spec/nn/images_spec.lua - layers of images agree with references in plain Lua, and their
-- models keep the bits over cuts and threads.

local gp = require "gpipe"
local array = require "tests.support.array"
local convolution = require "tests.support.convolution"
local resampling = require "tests.support.resampling"

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

-- Returns the value of a parameter of a layer.
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

  it("keeps the size with padding \"same\", with the odd row and column at the end", function()
    local layer, x = nn.Conv2d(2, 2, { 4, 3 }, { padding = "same" }), gp.randn { 1, 2, 5, 6 }
    near(reference(convolution.conv2d, layer, x, { padding = { 1, 2, 1, 1 } }), layer(x))
  end)

  it("convolves each group by itself", function()
    local layer, x = nn.Conv2d(4, 6, 3, { groups = 2, bias = false }), gp.randn { 2, 4, 5, 5 }
    assert.are.same({ 6, 2, 3, 3 }, value(layer, "weight").shape)
    near(reference(convolution.conv2d, layer, x, { groups = 2 }), layer(x))
  end)

  it("starts uniform in +-1 / sqrt of the fan-in", function()
    local w = value(nn.Conv2d(4, 100, 5), "weight")
    assert(math.max(table.unpack(w, 1, 5000)) <= 0.1 and math.max(table.unpack(w, 1, 5000)) > 0.099)
  end)

  it("prints its settings", function()
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

-- ---- pools, samples, padding -----------------------------------------------------------------

-- {layer, input's shape, reference, its options}
local function resized(mode, o)
  o.mode = mode
  return resampling.resample, o
end

local LAYERS = {
  { "nn.MaxPool2d", function() return nn.MaxPool2d(3, { stride = 2, padding = 1 }) end, { 2, 3, 7, 6 },
    resampling.largest, { kernel = { 3, 3 }, stride = { 2, 2 }, padding = { 1, 1, 1, 1 } } },
  { "nn.MaxPool2d that ends late", function() return nn.MaxPool2d({ 2, 3 }, { ceil_mode = true }) end,
    { 1, 2, 7, 7 }, resampling.largest, { kernel = { 2, 3 }, ceil = true } },
  { "nn.AvgPool2d", function() return nn.AvgPool2d(3, { stride = 2, padding = 1 }) end, { 2, 3, 7, 6 },
    resized("window", { kernel = { 3, 3 }, stride = { 2, 2 }, padding = { 1, 1, 1, 1 } }) },
  { "nn.AvgPool2d without padding",
    function() return nn.AvgPool2d(3, { padding = 1, count_include_pad = false }) end, { 2, 3, 7, 6 },
    resized("window", { kernel = { 3, 3 }, padding = { 1, 1, 1, 1 }, inside = true }) },
  { "nn.AdaptiveAvgPool2d", function() return nn.AdaptiveAvgPool2d { 3, 2 } end, { 2, 3, 7, 7 },
    resized("adaptive", { size = { 3, 2 } }) },
  { "nn.AdaptiveMaxPool2d", function() return nn.AdaptiveMaxPool2d(3) end, { 2, 3, 7, 8 },
    resampling.largest, { mode = "adaptive", size = { 3, 3 } } },
  { "nn.Upsample", function() return nn.Upsample { scale = { 2, 1.5 } } end, { 2, 3, 3, 4 },
    resized("nearest", { size = { 6, 6 } }) },
  { "nn.Upsample between elements",
    function() return nn.Upsample { size = { 5, 8 }, mode = "bilinear" } end, { 2, 3, 3, 4 },
    resized("bilinear", { size = { 5, 8 } }) },
  { "nn.ZeroPad2d", function() return nn.ZeroPad2d { 1, 2, 3, 0 } end, { 2, 3, 3, 4 },
    resized("zero", { padding = { 3, 0, 1, 2 } }) },
  { "nn.ReflectionPad2d", function() return nn.ReflectionPad2d(2) end, { 2, 3, 3, 4 },
    resized("reflect", { padding = { 2, 2, 2, 2 } }) },
}

describe("a layer that makes images of another size", function()
  for _, row in ipairs(LAYERS) do
    it("does what its reference does: " .. row[1], function()
      local x = gp.randn(row[3], { seed = 4 })
      near(row[4](row[5], array.of(x)), row[2]()(x))
    end)
  end

  for name, make in pairs {
    MaxPool1d = function(of2d) return of2d and nn.MaxPool2d({ 1, 3 }, { padding = { 0, 1 } })
      or nn.MaxPool1d(3, { padding = 1 }) end,
    AvgPool1d = function(of2d) return of2d and nn.AvgPool2d({ 1, 2 }) or nn.AvgPool1d(2) end,
    AdaptiveAvgPool1d = function(of2d)
      return of2d and nn.AdaptiveAvgPool2d { 1, 4 } or nn.AdaptiveAvgPool1d(4)
    end,
    AdaptiveMaxPool1d = function(of2d)
      return of2d and nn.AdaptiveMaxPool2d { 1, 4 } or nn.AdaptiveMaxPool1d(4)
    end,
  } do
    it(("takes sequences as images of height 1: nn.%s"):format(name), function()
      local x = gp.randn { 2, 3, 9 }
      local want = make(true)(x:reshape(2, 3, 1, 9))
      assert(gp.equal(want:reshape(2, 3, want.shape[4]), make(false)(x)))
    end)
  end

  it("names itself where its input is no image", function()
    assert.has_error(function() nn.MaxPool2d(2)(gp.ones { 3, 5, 5 }) end,
      "MaxPool2d kernel 2x2, stride 2x2: input is 3x5x5, expected ?x?x?x?")
  end)
end)

-- ---- models ----------------------------------------------------------------------------------

local function model()
  return nn.Sequential {
    nn.Sequential { nn.ReflectionPad2d(1), nn.Conv2d(3, 8, 3), nn.ReLU() }, nn.MaxPool2d(3, { stride = 1 }),
    nn.Conv2d(8, 8, 3, { stride = 2, padding = 1, groups = 2 }), nn.Tanh(),
    nn.Sequential {
      nn.ConvTranspose2d(8, 4, 2, { stride = 2 }), nn.Upsample { size = 9, mode = "bilinear" },
      nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(3),
    },
    nn.Flatten(), nn.Linear(4 * 9, 5),
  }
end

-- Returns losses and gradients of two steps.
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
