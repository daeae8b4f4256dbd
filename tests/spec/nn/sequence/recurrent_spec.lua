-- tests/spec/nn/sequence/recurrent_spec.lua - nn.LSTM, nn.GRU, nn.RNN: gradients, states, cuts,
-- errors. golden_spec.lua compares what they compute with PyTorch.

local gp = require "gpipe"
local check_gradients = require "tests.support.layer_gradients"
local fails_with = require("tests.support.expect").fails_with
local training = require "tests.support.training"

local nn = gp.nn

local function randn(shape) return gp.randn(shape, { dtype = "f64", seed = #shape }) end

describe("recurrent layers", function()
  for _, name in ipairs { "LSTM", "GRU", "RNN" } do
    it("have the gradients of what they compute: " .. name, function()
      local options = { layers = 2, bidirectional = true, states = true, dtype = "f64" }
      local state = randn { 2, 4, 2 }
      check_gradients(nn[name](3, 2, options),
        { randn { 2, 3, 3 }, state, name == "LSTM" and state:tanh() or nil })
      check_gradients(nn[name](2, 3, { bias = false, dtype = "f64" }), { randn { 1, 1, 2 } })
    end)

    it("continue from the states that they returned: " .. name, function()
      local layer, x = nn[name](3, 5, { layers = 2, states = true }), gp.randn { 2, 7, 3 }
      local whole = { layer(x) }
      local first = { layer(x:narrow(2, 1, 4)) }
      local rest = { layer(x:narrow(2, 5, 3), table.unpack(first, 2)) }
      assert.is_true(gp.equal(whole[1], gp.concat({ first[1], rest[1] }, 2)))
      for i = 2, #whole do assert.is_true(gp.equal(whole[i], rest[i])) end
    end)
  end

  it("drop between layers, only while training", function()
    local layer, x = nn.LSTM(3, 5, { layers = 2, dropout = 0.5 }), gp.randn { 2, 7, 3 }
    assert.is_false(gp.equal(layer(x), layer(x)))
    layer:eval()
    assert.is_true(gp.equal(layer(x), layer(x)))
    local single = nn.LSTM(3, 5, { dropout = 0.5 })
    assert.is_true(gp.equal(single(x), single(x)))
  end)

  it("print their settings", function()
    local model = nn.Sequential { nn.LSTM(3, 5, { layers = 2, bidirectional = true }),
      nn.Sequential { nn.GRU(10, 4), nn.RNN(4, 2, { dropout = 0.1 }) } }
    local text = tostring(model)
    for _, line in ipairs { "(1): nn.LSTM(3 -> 5, 2 layers, bidirectional)",
      "(1): nn.GRU(10 -> 4)", "(2): nn.RNN(4 -> 2, dropout 0.1)" } do
      assert.truthy(text:find(line, 1, true), text)
    end
    assert.equal(3, #model:flatten())
    assert.equal("2.2.weight_ih_l0", model:flatten():parameters()[21].name)
  end)

  it("refuse inputs that are not sequences", function()
    local x = gp.ones { 2, 4, 3 }
    for _, case in ipairs {
      { function() nn.LSTM(0, 5) end, "nn.LSTM: input_size is 0, expected a positive integer" },
      { function() nn.GRU(3, 2.5) end, "nn.GRU: hidden_size is 2.5" },
      { function() nn.RNN(3, 5, { nonlinearity = "elu" }) end, "nn.RNN: option 'nonlinearity' is" },
      { function() nn.LSTM(3, 5, { layres = 2 }) end, "did you mean 'layers'" },
      { function() nn.LSTM(3, 5, { num_layers = 2 }) end, "did you mean 'layers'" },
      { function() nn.LSTM(3, 5, { dropout = 2 }) end, "nn.LSTM: option 'dropout' is 2" },
      { function() nn.LSTM(3, 5, { layers = 0 }) end, "nn.LSTM: option 'layers' is 0" },
      { function() nn.Sequential { nn.LSTM(4, 5) } (x) end,
        "1 (LSTM 4 -> 5): input is 2x4x3, expected ?x?x4 (batch, time, features)" },
      { function() nn.GRU(3, 5)(x, gp.ones { 2, 5 }) end,
        "GRU 3 -> 5: the first h is 2x5, expected 2x1x5" },
      { function() nn.LSTM(3, 5)(x, gp.ones { 2, 1, 5 }) end, "only the first h is given" },
      { function() nn.LSTM(3, 5)(4) end, "LSTM 3 -> 5: input is 4, expected a tensor" },
    } do fails_with(case[2], case[1]) end
  end)
end)

-- ---- in pipelines ----------------------------------------------------------------------------

local Last = nn.class("Last")
function Last:forward(y, h) return y:select(2, y.shape[2]) + h:select(2, 1) end -- luacheck: ignore 212

local function model()
  gp.seed(3)
  return nn.Sequential {
    nn.LSTM(3, 6, { layers = 2, bidirectional = true, dropout = 0.2 }),
    nn.GRU(12, 5), nn.RNN(5, 4, { states = true }), Last(), nn.Linear(4, 2),
  }
end

describe("a model of recurrent layers", function()
  it("gives the same bits for 1 to 3 stages, every checkpoint mode and number of threads", function()
    local setup = { model = model, x = gp.randn({ 7, 5, 3 }, { seed = 1 }),
      y = gp.randn({ 7, 2 }, { seed = 2 }), loss = nn.MSELoss(), steps = 5 }
    local run = training.check_same(setup, training.combinations {
      balance = { { 5 }, { 1, 4 }, { 2, 1, 2 } }, schedule = { "1f1b" }, threads = { 1, 2 },
    })
    assert.is_true(run.losses[5] < run.losses[1])
  end)
end)
