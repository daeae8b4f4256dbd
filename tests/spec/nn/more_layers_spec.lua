-- tests/spec/nn/more_layers_spec.lua - layers and losses that consist of several ops have the same
-- bits in pipelines whatever the cut. golden_spec.lua tests what they compute.
local gp = require "gpipe"
local nn = gp.nn

local function add(d) return nn.Lambda(function(x) return x, x:roll(1, d) end) end

local function target(shape, sign)
  local t = gp.randn(shape, { seed = 2 })
  return sign and t:sign() or t
end

-- {name, layers, input, target, loss}
local CASES = {
  { "images", function()
    return { nn.ConstantPad2d({ 1, 0, 2, 1 }, 0.5), nn.Conv2d(3, 8, 3, { padding = "valid" }), nn.PReLU(8),
      nn.PixelShuffle(2), nn.Upsample { scale = 1.5, mode = "bilinear", align_corners = true },
      nn.LocalResponseNorm(2), nn.Mish(), nn.ReplicationPad2d(1), nn.ChannelShuffle(2),
      nn.Flatten(), nn.GLU(), nn.Linear(238, 2) }
  end, { 7, 3, 4, 5 }, { 7, 2 }, nn.MSELoss() },
  { "sequences", function()
    return { nn.ConvTranspose1d(3, 4, 2, { stride = 2 }), nn.InstanceNorm1d(4, { affine = true }),
      nn.Dropout1d(0.3), nn.SELU(), nn.AlphaDropout(0.2), nn.ReflectionPad1d(1), nn.CELU(0.5),
      nn.Hardtanh(), nn.Softsign(), nn.Softshrink(0.1), nn.LogSigmoid() }
  end, { 7, 3, 5 }, { 7, 4, 12 }, nn.SmoothL1Loss() },
  { "two outputs", function()
    return { nn.Linear(5, 6), nn.Tanhshrink(), nn.Unflatten(2, { 2, 3 }), nn.Flatten(), add(2) }
  end, { 7, 5 }, { 7 }, nn.CosineEmbeddingLoss { margin = 0.2 }, true },
  { "a ranking", function() return { nn.Linear(5, 6), nn.Hardshrink(0.1), add(2) } end,
    { 7, 5 }, { 7, 6 }, nn.MarginRankingLoss { margin = 0.1 }, true },
  { "signs", function() return { nn.Linear(5, 6), nn.Threshold(0, -1), nn.Softmin() } end,
    { 7, 5 }, { 7, 6 }, nn.SoftMarginLoss(), true },
}

local function step(case, cut)
  gp.seed(3)
  local layers = case[2]()
  local balance = cut == 1 and { #layers } or cut == 2 and { 1, #layers - 1 } or
    { 1, #layers - 2, 1 }
  local pipe <close> = gp.pipeline(nn.Sequential(layers), { balance = balance, chunks = 3, loss = case[5] })
  local loss = pipe:step(gp.randn(case[3], { seed = 1 }), target(case[4], case[6]))
  local grads = {}
  for i, p in ipairs(pipe:parameters()) do grads[i] = p.grad:clone() end
  return loss, grads
end

describe("layers of several ops", function()
  for _, case in ipairs(CASES) do
    it("train with the bits of one stage: " .. case[1], function()
      local want, grads = step(case, 1)
      assert.is_true(want == want and #grads > 0)
      for cut = 2, 3 do
        local loss, others = step(case, cut)
        assert.equal(want, loss)
        for i, grad in ipairs(grads) do assert.is_true(gp.equal(grad, others[i])) end
      end
    end)
  end

  it("drop whole channels, and keep mean and variance", function()
    gp.seed(1)
    local y = nn.Dropout1d(0.5)(gp.ones { 40, 50, 3 })
    assert.near(1, y:mean():item(), 0.1)
    assert.is_true(gp.equal(y:select(3, 1), y:select(3, 3)))
    local z = nn.AlphaDropout(0.3)(gp.randn({ 200, 200 }, { seed = 1 }))
    assert.near(0, z:mean():item(), 0.03)
    assert.near(1, z:std():item(), 0.03)
    local x = gp.ones { 2 }
    assert.is_true(gp.equal(x, nn.AlphaDropout(0.3):eval()(x)))
  end)

  for _, case in ipairs {
    { "even", function() nn.GLU()(gp.ones { 2, 3 }) end },
    { "multiple of 4", function() nn.PixelShuffle(2)(gp.ones { 1, 6, 2, 2 }) end },
    { "nearest", function() nn.Upsample { scale = 2, align_corners = true } end },
    { "lower one first", function() nn.Hardtanh(2, 1)(gp.ones { 1 }) end },
    { "..x3", function() nn.Bilinear(3, 3, 1)(gp.ones { 1, 3 }, gp.ones { 1, 2 }) end },
    { "the third input", function() nn.TripletMarginLoss()(gp.ones { 1, 2 }, gp.ones { 1, 2 }) end },
  } do
    it("say what is wrong: " .. case[1], function()
      local good, text = pcall(case[2])
      assert.is_false(good)
      assert.truthy(text:find(case[1], 1, true), text)
    end)
  end
end)
