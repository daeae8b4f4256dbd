-- tests/spec/nn/sequence/lengths_spec.lua - recurrent layers over rows of several lengths never
-- read the padding, eagerly and in pipelines. (tests/golden/sequences.py compares them with
-- PyTorch.)

local gp = require "gpipe"
local expect = require "tests.support.expect"

local nn = gp.nn

local LENGTHS = { 5, 1, 3, 4 }
local lengths = gp.tensor(LENGTHS, { dtype = "i64" })
local x = gp.randn({ 4, 6, 3 }, { seed = 1 })

local OPTS = { layers = 2, bidirectional = true, states = true }
local KINDS = { LSTM = nn.LSTM, GRU = nn.GRU, RNN = nn.RNN }

for name, kind in pairs(KINDS) do
  describe("nn." .. name .. " with lengths", function()
    local layer = kind(3, 2, OPTS)

    it("gives each row the outputs of the row alone, and zeros after them", function()
      local all = { layer(x, lengths) }
      for row, length in ipairs(LENGTHS) do
        local alone = { layer(x[{ { row, row }, { 1, length } }]:contiguous()) }
        local seen = all[1][{ { row, row }, { 1, length } }]
        assert.is_true((seen - alone[1]):abs():max():item() < 1e-6)
        for i = 2, #all do
          assert.is_true((all[i]:narrow(1, row, 1) - alone[i]):abs():max():item() < 1e-6)
        end
        local behind = all[1][{ { row, row }, { length + 1, 6 } }]
        assert.are.equal(0, behind:abs():sum():item())
      end
    end)

    it("does not read the padding, and sends no gradient there", function()
      local other = x:clone():detach()
      other[{ 2, { 2, 6 }, {} }] = 100
      other.requires_grad = true
      local y = layer(other, lengths)
      assert.is_true(gp.equal(y, (layer(x, lengths))))
      y:sum():backward()
      assert.are.equal(0, other.grad[{ 2, { 2, 6 }, {} }]:abs():sum():item())
    end)

    it("gives the same bits in a pipeline, over cuts", function()
      local model = nn.Sequential { kind(3, 2, { layers = 2 }), nn.Linear(2, 3) }
      local want = model(x, lengths)
      local function losses(balance)
        local devices = {}
        for i = 1, #balance do devices[i] = "cpu:0" end
        local pipe <close> = gp.pipeline(model, { balance = balance, devices = devices,
          chunks = 2, loss = nn.MSELoss() })
        assert.is_true(gp.equal(want, pipe:forward { x, lengths }))
        pipe:backward(want)
        return pipe:step({ x, lengths }, gp.zeros { 4, 6, 3 })
      end
      assert.are.equal(losses { 2 }, losses { 1, 1 })
    end)

    it("takes i32 lengths, and names what it got instead", function()
      assert.is_true(gp.equal((layer(x, lengths:to "i32")), (layer(x, lengths))))
      local function of(list) return gp.tensor(list, { dtype = "i64" }) end
      expect.fails_with("lengths are i64 3, expected i64 4", layer, x, of { 1, 2, 3 })
      expect.fails_with("lengths are 1 to 7, expected 1 to 6", layer, x, of { 1, 2, 3, 7 })
      expect.fails_with("lengths are 0 to 3, expected 1 to 6", layer, x, of { 1, 2, 3, 0 })
    end)
  end)
end

describe("cells", function()
  it("step as the layer does", function()
    local layer, cell = nn.LSTM(3, 2, { states = true }), nn.LSTMCell(3, 2)
    cell:load_state_dict {
      weight_ih = layer.weight_ih_l0:value(), weight_hh = layer.weight_hh_l0:value(),
      bias_ih = layer.bias_ih_l0:value(), bias_hh = layer.bias_hh_l0:value(),
    }
    local y, h, c = layer(x), nil, nil
    for t = 1, 6 do
      h, c = cell(x:select(2, t), h, c)
      assert.is_true((y:select(2, t) - h):abs():max():item() < 1e-6)
    end
  end)

  it("name wrong inputs", function()
    expect.fails_with("input is 4x6x3, expected ?x3", nn.GRUCell(3, 2), x)
    expect.fails_with("h is 1x2, expected 4x2", nn.RNNCell(3, 2), gp.ones { 4, 3 }, gp.ones { 1, 2 })
    expect.fails_with("only h is given", nn.LSTMCell(3, 2), gp.ones { 4, 3 }, gp.ones { 4, 2 })
  end)
end)
