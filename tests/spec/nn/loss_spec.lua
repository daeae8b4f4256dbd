-- tests/spec/nn/loss_spec.lua - losses agree with references in plain Lua; they return sum and
-- count separately.
local gp = require "gpipe"
local nn = gp.nn

local TOLERANCE = 1e-5 -- f32 against double, sums of a few terms of order 1

local function ids(t) return gp.tensor(t, { dtype = "i64" }) end

-- Computes the loss of one row of scores; smoothing spreads a share over all classes.
local function row_loss(scores, id, smoothing)
  local top, sum, mean = math.max(table.unpack(scores)), 0, 0
  for _, v in ipairs(scores) do sum, mean = sum + math.exp(v - top), mean + v / #scores end
  local lse = top + math.log(sum)
  return (1 - smoothing) * (lse - scores[id + 1]) + smoothing * (lse - mean)
end

-- Computes sum and count over rows.
local function reference(scores, labels, ignored, smoothing)
  local sum, count = 0, 0
  for i, id in ipairs(labels) do
    if id ~= ignored then sum, count = sum + row_loss(scores[i], id, smoothing), count + 1 end
  end
  return sum, count
end

describe("nn.CrossEntropyLoss", function()
  local scores, labels = gp.randn { 6, 5 }, { 0, 4, 2, 2, 1, 3 }
  local cases = {
    { "plain" }, { "ignore_index", 2 }, { "label_smoothing", nil, 0.2 }, { "both", 4, 0.1 },
  }
  for _, case in ipairs(cases) do
    local name, ignored, smoothing = case[1], case[2], case[3] or 0
    it("is the mean over the rows that count: " .. name, function()
      local opts = { ignore_index = ignored, label_smoothing = smoothing }
      local sum, count = reference(scores:totable(), labels, ignored, smoothing)
      assert.near(sum / count, nn.CrossEntropyLoss(opts)(scores, ids(labels)):item(), TOLERANCE)
      local have_sum, have_count = nn.CrossEntropyLoss(opts):terms(scores, ids(labels))
      assert.near(sum, have_sum:item(), 6 * TOLERANCE)
      assert.are.equal("i64", have_count.dtype)
      assert.are.equal(count, have_count:item())
    end)
  end

  it("sums if the option says so, and then counts nothing", function()
    local loss = nn.CrossEntropyLoss { reduction = "sum" }
    local sum = reference(scores:totable(), labels, nil, 0)
    assert.near(sum, loss(scores, ids(labels)):item(), 6 * TOLERANCE)
    assert.is_nil((select(2, loss:terms(scores, ids(labels)))))
  end)

  it("takes [B, T, V] with ids [B, T]", function()
    local loss = nn.CrossEntropyLoss()
    local a = loss(scores:reshape { 2, 3, 5 }, ids { { 0, 4, 2 }, { 2, 1, 3 } })
    assert.is_true(gp.equal(loss(scores, ids(labels)), a))
  end)

  it("is 0 when every id is ignored", function()
    local loss = nn.CrossEntropyLoss { ignore_index = -100 }
    assert.are.equal(0, loss(gp.randn { 2, 3 }, ids { -100, -100 }):item())
  end)

  it("survives large scores", function()
    local loss = nn.CrossEntropyLoss()
    assert.near(2000, loss(gp.tensor { { 1000, -1000 } }, ids { 1 }):item(), 1e-3)
  end)
end)

describe("nn.MSELoss", function()
  local a, b = gp.tensor { { 1, 2 }, { 3, 4 } }, gp.tensor { { 0, 0 }, { 0, 2 } }

  it("is the mean of the squared differences", function()
    assert.near((1 + 4 + 9 + 4) / 4, nn.MSELoss {}(a, b):item(), TOLERANCE)
  end)

  it("gives sum and count separately", function()
    local sum, count = nn.MSELoss():terms(a, b)
    assert.near(18, sum:item(), TOLERANCE)
    assert.are.equal(4, count)
  end)

  it("sums if the option says so", function()
    assert.near(18, nn.MSELoss { reduction = "sum" }(a, b):item(), TOLERANCE)
  end)
end)

describe("a user's loss", function()
  local Absolute = nn.class("Absolute", nn.Loss)
  function Absolute.terms(_, output, target)
    return (output - target):pow(2):sqrt():sum(), output.shape[1]
  end

  it("needs only the method terms", function()
    assert.near(1.5, Absolute()(gp.tensor { 1, 2 }, gp.tensor { 0, 4 }):item(), TOLERANCE)
  end)
end)
