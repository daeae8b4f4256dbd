-- tests/spec/nn/norms_spec.lua - batch, instance, group and rms norm as layers.

local gp = require "gpipe"
local nn = gp.nn

local function near(a, b, bound)
  local off = (a - b):abs():max():item()
  assert.is_true(off <= bound, ("off by %g, allowed %g"):format(off, bound))
end

describe("nn.BatchNorm", function()
  it("gives features of mean 0 and variance 1, however far their mean is", function()
    local x = gp.randn { 40, 3, 5, 5 } + 10000
    local y = nn.BatchNorm2d(3)(x):permute(2, 1, 3, 4):reshape(3, 1000)
    near(y:mean(2), gp.zeros { 3 }, 2 ^ -10) -- a mean of 10000 is rounded by 2^-11
    near(y:square():mean(2), gp.ones { 3 }, 1e-4)
  end)

  it("has the variances of f64 in f32, however far the mean is", function()
    for _, mean in ipairs { 0, 1e3, 1e5 } do
      local x, var = gp.randn({ 8, 4, 9, 9 }, { seed = 3 }) + mean, {}
      for k, dtype in ipairs { "f32", "f64" } do
        local layer = nn.BatchNorm2d(4, { momentum = 1, dtype = dtype })
        layer(x:to(dtype))
        var[k] = layer.running_var:value():to "f64"
      end
      near(var[1], var[2], 1e-6)
    end
  end)

  it("moves running statistics by its momentum, with the unbiased variance", function()
    local layer, x = nn.BatchNorm1d(2, { momentum = 0.25 }), gp.tensor { { 1.0, 2 }, { 3, 6 } }
    layer(x)
    near(layer.running_mean:value(), gp.tensor { 0.5, 1 }, 1e-6)
    near(layer.running_var:value(), gp.tensor { 0.75 + 0.5, 0.75 + 2 }, 1e-6)
    assert.are.equal(1, layer.num_batches_tracked:value():item())
  end)

  it("keeps the mean of all batches where momentum is false", function()
    local layer = nn.BatchNorm1d(1, { momentum = false })
    for _, to in ipairs { 1.0, 2, 6 } do layer(gp.tensor { { to }, { to } }) end
    near(layer.running_mean:value(), gp.tensor { 3.0 }, 1e-6)
    assert.are.equal(3, layer.num_batches_tracked:value():item())
  end)

  it("uses running statistics in evaluation and leaves them alone", function()
    local layer = nn.BatchNorm1d(2)
    layer(gp.randn { 8, 2 })
    local before = layer:state_dict()
    local x, w = gp.randn { 3, 2 }, layer:eval()
    near(layer(x), (x - before.running_mean) / (before.running_var + 1e-5):sqrt(), 1e-6)
    for name, value in pairs(before) do assert(gp.equal(value, w:state_dict()[name]), name) end
  end)

  it("uses the batch's own statistics in evaluation if it tracks none", function()
    local layer, x = nn.BatchNorm1d(2, { track = false, affine = false }), gp.randn { 8, 2 }
    assert(gp.equal(layer(x), layer:eval()(x)))
    assert.are.equal(nil, next(layer:state_dict()))
  end)

  it("takes features, sequences and images", function()
    local x = gp.randn { 4, 3, 5 }
    local a, b = nn.BatchNorm1d(3), nn.BatchNorm2d(3)
    assert(gp.equal(a(x), b(x:reshape(4, 3, 1, 5)):reshape(4, 3, 5)))
    assert(gp.equal(a(x[{ {}, {}, 1 }]), b(x[{ {}, {}, 1 }]:reshape(4, 3, 1, 1)):reshape(4, 3)))
  end)

  it("restores its buffers from a state", function()
    local a, b = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    a(gp.randn { 4, 3 })
    b:load_state_dict(a:state_dict())
    assert(gp.equal(a.running_var:value(), b.running_var:value()))
    assert.are.equal(1, b.num_batches_tracked:value():item())
  end)
end)

describe("nn.InstanceNorm2d", function()
  it("normalises each sample separately, and tracks the mean over samples", function()
    local layer, x = nn.InstanceNorm2d(3, { track = true, affine = true }), gp.randn { 2, 3, 4, 4 }
    local one = nn.InstanceNorm2d(3)
    assert(gp.equal(layer(x)[2], one(x:narrow(1, 2, 1))[1]))
    local mean = x:reshape(2, 3, 16):mean(3):mean(1)
    near(layer.running_mean:value(), mean * 0.1, 1e-6)
  end)
end)

describe("nn.GroupNorm", function()
  it("is layer norm with one group, and instance norm with one channel each", function()
    local x = gp.randn { 2, 6, 3, 3 }
    near(nn.GroupNorm(1, 6)(x):reshape(2, 54), nn.LayerNorm(54)(x:reshape(2, 54)), 1e-5)
    assert(gp.equal(nn.GroupNorm(6, 6)(x), nn.InstanceNorm2d(6)(x)))
  end)
end)

describe("nn.RMSNorm", function()
  it("divides by the root of the mean square", function()
    local x = gp.randn { 3, 5 }
    near(nn.RMSNorm(5)(x), x / (x:square():mean(2, true) + 1e-6):sqrt(), 1e-6)
  end)
end)

describe("norms", function()
  it("have gradients that agree with differences", function()
    local f64 = { dtype = "f64" }
    for _, layer in ipairs {
      nn.BatchNorm1d(4, f64), nn.GroupNorm(2, 4, f64), nn.RMSNorm(3, f64),
      nn.BatchNorm1d(4, { dtype = "f64", track = false }):eval(), nn.BatchNorm1d(4, f64):eval(),
    } do
      local x = gp.randn({ 3, 4, 3 }, { dtype = "f64" })
      assert(gp.gradcheck(function(a) return (layer(a) ^ 3):sum() end, { x }))
    end
  end)

  local function refuses(f, text)
    local ok, err = pcall(f)
    assert(not ok and tostring(err):find(text, 1, true), tostring(err))
  end

  it("refuse what they cannot normalise", function()
    local x = gp.randn { 2, 3 }
    for _, case in ipairs {
      { function() nn.BatchNorm1d(0) end, "nn.BatchNorm1d: n is 0, expected a positive integer" },
      { function() nn.BatchNorm2d(3, { momentun = 0.2 }) end, "did you mean 'momentum'" },
      { function() nn.BatchNorm2d(3, { momentum = true }) end, "expected a number from 0 to 1" },
      { function() nn.BatchNorm2d(3, { momentum = 2 }) end, "'momentum' is 2" },
      { function() nn.BatchNorm1d(4)(x) end, "input is 2x3, expected ?x4 or ?x4x?" },
      { function() nn.BatchNorm2d(3)(x) end, "input is 2x3, expected ?x3x?x?" },
      { function() nn.BatchNorm1d(3)(x:narrow(1, 1, 1)) end, "input is 1x3, one value per channel" },
      { function() nn.InstanceNorm2d(3)(gp.ones { 2, 3, 1, 1 }) end, "one value per channel" },
      { function() nn.GroupNorm(4, 6) end, "nn.GroupNorm: n is 6, expected a multiple of the 4" },
      { function() nn.RMSNorm(4, { eps = 0 }) end, "nn.RMSNorm: option 'eps' is 0" },
      { function() nn.RMSNorm(4)(x) end, "rms_norm: weight is 4, expected 3" },
    } do refuses(case[1], case[2]) end
  end)
end)
