-- tests/spec/nn/drawn_layers_spec.lua - layers that draw random numbers: slopes of RReLU, channels
-- that are dropped.

local gp = require "gpipe"

local nn = gp.nn

describe("nn.RReLU", function()
  it("draws a slope for every element in training, between its bounds", function()
    local x = gp.full({ 1000 }, -1)
    local slopes = -nn.RReLU(0.2, 0.4)(x)
    assert.is_true(slopes:min():item() >= 0.2 and slopes:max():item() <= 0.4)
    assert.is_true(math.abs(slopes:mean():item() - 0.3) < 0.01)
    assert.is_true(gp.equal(gp.ones { 3 }, nn.RReLU()(gp.ones { 3 })))
  end)

  it("draws the same wherever the model is cut", function()
    local x, found = gp.randn({ 8, 3 }, { seed = 1 }), {}
    local first = nn.Linear(3, 3):state_dict()
    for i, balance in ipairs { { 3 }, { 1, 1, 1 } } do
      local model = nn.Sequential { nn.Linear(3, 3), nn.RReLU(), nn.Dropout3d(0.5) }
      model[1]:load_state_dict(first)
      local devices = {}
      for k = 1, #balance do devices[k] = "cpu:0" end
      local pipe <close> = gp.pipeline(model, { balance = balance, devices = devices, chunks = i,
        loss = nn.MSELoss(), seed = 3 })
      found[i] = pipe:forward(x)
    end
    assert.is_true(gp.equal(found[1], found[2]))
  end)

  it("refuses bounds in reverse order", function()
    assert.is_false(pcall(nn.RReLU, 0.4, 0.2))
  end)
end)

describe("dropped channels", function()
  local x = gp.randn({ 200, 50, 2, 2, 2 }, { seed = 2 })

  it("are whole channels in nn.Dropout3d", function()
    local kept = nn.Dropout3d(0.25)(x):ne(0):to("f32"):reshape(200 * 50, 8):sum(2)
    assert.is_true(kept:eq(0):logical_or(kept:eq(8)):all():item())
    assert.is_true(math.abs(kept:mean():item() / 8 - 0.75) < 0.02)
  end)

  it("leave mean and variance unchanged in nn.FeatureAlphaDropout", function()
    local y = nn.FeatureAlphaDropout(0.25)(x)
    assert.is_true(math.abs(y:mean():item()) < 0.05)
    assert.is_true(math.abs(y:std():item() - 1) < 0.05)
    assert.is_true(gp.equal(x, nn.FeatureAlphaDropout(0.25):eval()(x)))
  end)
end)
