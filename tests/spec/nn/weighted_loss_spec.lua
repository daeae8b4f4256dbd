-- tests/spec/nn/weighted_loss_spec.lua - weights of classes in pipelines, and wrong ones.
-- golden_spec.lua tests what the losses compute.
local gp = require "gpipe"
local nn = gp.nn

local x = gp.randn({ 13, 5 }, { seed = 1 })
local y = gp.tensor({ 0, 1, 2, 3, 1, -1, 0, 2, 2, 3, -1, -1, 1 }, { dtype = "i64" })
local weight = { 1, 2.7, 0.5, 1000 }

local LOSSES = {
  { "CrossEntropyLoss", { weight = weight, ignore_index = -1 } },
  { "CrossEntropyLoss", { weight = weight, ignore_index = -1, label_smoothing = 0.1 } },
  { "NLLLoss", { weight = gp.tensor(weight), ignore_index = -1 } },
}

local function step(loss, balance, chunks)
  gp.seed(1)
  local model = nn.Sequential { nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 4), nn.LogSoftmax() }
  local pipe <close> = gp.pipeline(model, { balance = balance, chunks = chunks, loss = loss })
  local value, grads = pipe:step(x, y), {}
  for i, p in ipairs(pipe:parameters()) do grads[i] = p.grad:clone() end
  return value, grads, pipe:evaluate(x, y)
end

describe("a loss with weights of classes", function()
  for _, case in ipairs(LOSSES) do
    local loss = nn[case[1]](case[2])
    it("divides by the weights of the whole mini-batch: " .. tostring(loss), function()
      local want, grads, evaluated = step(loss, { 4 }, 3)
      for _, way in ipairs { { { 2, 2 }, 3 }, { { 1, 1, 2 }, 3 } } do
        local value, others, again = step(loss, table.unpack(way))
        assert.equal(want, value)
        assert.equal(evaluated, again)
        for i, grad in ipairs(grads) do assert.is_true(gp.equal(grad, others[i])) end
      end
      for _, chunks in ipairs { 1, 7, 13 } do
        local value, others = step(loss, { 4 }, chunks)
        assert.near(want, value, 1e-6 * want)
        for i, grad in ipairs(grads) do
          assert.is_true(grad:allclose(others[i], { rtol = 1e-5, atol = 1e-6 }))
        end
      end
    end)
  end

  it("is 0 where all rows that count have weight 0", function()
    local loss = nn.CrossEntropyLoss { weight = { 0, 0 } }
    assert.equal(0, loss(gp.ones { 3, 2 }, gp.zeros({ 3 }, { dtype = "i64" })):item())
    loss = nn.NLLLoss { weight = { 0, 1 } }
    assert.equal(0, loss(gp.ones { 3, 2 }, gp.zeros({ 3 }, { dtype = "u8" })):item())
  end)

  it("counts in whole units, whose sum does not depend on the order", function()
    local sum, count = nn.NLLLoss { weight = { 0.3, 0.7 } }:terms(gp.ones { 2, 2 },
      gp.tensor({ 0, 1 }, { dtype = "i64" }))
    assert.equal("i64", count.dtype)
    assert.near(-1, sum:item() / count:item(), 1e-6)
  end)

  for _, case in ipairs {
    { { -1, 2 }, "negative" }, { { 1, 0 / 0 }, "not finite" }, { { 1, math.huge }, "not finite" },
    { { { 1, 2 } }, "2 dimensions" }, { {}, "" }, { "1", "a tensor or a table" },
  } do
    it("refuses invalid weights: " .. case[2], function()
      local good, text = pcall(nn.CrossEntropyLoss, { weight = case[1] })
      assert.is_false(good)
      assert.truthy(text:find(case[2], 1, true), text)
    end)
  end

  it("has as many weights as there are classes", function()
    local good, text = pcall(nn.NLLLoss { weight = { 1, 2, 3 } }, gp.ones { 1, 2 },
      gp.zeros({ 1 }, { dtype = "i64" }))
    assert.is_false(good)
    assert.truthy(text:find("3 classes, expected 2", 1, true), text)
    assert.is_false(pcall(nn.BCEWithLogitsLoss, { pos_weight = { -1 } }))
  end)
end)
