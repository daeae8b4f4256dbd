-- tests/spec/pipeline/gradients_spec.lua - the first micro-batch writes gradients instead of adding
-- to zeros: the bits are the same, whatever was there before.
local gp = require "gpipe"
local opened = require "tests.support.opened"
local synchronous = require "tests.support.synchronous"
local nn, optim = gp.nn, gp.optim

local MODELS = { odd = opened.odd, tied = synchronous.tied,
  ["tied within"] = synchronous.tied_within, skipping = synchronous.regression }

describe("a pass that writes gradients gives the bits of one that adds to zeros", function()
  for _, case in ipairs(synchronous.CASES) do
    it(synchronous.title(case), function()
      local count = 0
      for i, place in ipairs { { 1, 1 }, { 2, 3 }, { 2, 4 }, { 4, 6 } } do
        local stages, m = place[1], place[2]
        if synchronous.is_defined(case, stages, m) then
          for name, model in pairs(MODELS) do
            local good, what = pcall(opened.check, {
              made = model(), pass = opened.PASSES[i % 2 == 0 and "step" or "halves"],
              exact = true,
              options = { balance = synchronous.cut(8, stages), chunks = m,
                schedule = synchronous.schedule(case),
                checkpoint = ({ "always", "except_last", "never" })[i % 3 + 1] },
            })
            if not good then
              error(("%s, %d stages, %d micro-batches: %s"):format(name, stages, m, what))
            end
          end
          count = count + 1
        end
      end
      assert.is_true(count >= 1)
    end)
  end
end)

describe("gradients that no task writes", function()
  it("are zero after a step, whatever they were", function()
    local made = opened.odd()
    local pipe <close> = gp.pipeline(made.model(), { balance = { 3, 5 }, chunks = 3,
      loss = made.loss })
    for _, p in ipairs(pipe:parameters()) do
      if p.grad then p.grad:copy_(gp.full(p.grad.shape, 7)) end
    end
    pipe:step(made.x, made.y)
    local found = 0
    for _, p in ipairs(pipe:parameters "unused") do
      assert.same({ 0, 0, 0 }, p.grad:totable())
      found = found + 1
    end
    assert.equal(2, found)
  end)

  -- The loss does not depend on the second stage's parameters.
  it("are zero in a stage that has no gradients at all", function()
    local Ignore = nn.class "Ignore"
    function Ignore:init() self.w = nn.Parameter({ 2 }, nn.init.constant(1)) end
    function Ignore.forward(_, x) return x end
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 3), Ignore() },
      { balance = { 1, 1 }, chunks = 2, loss = nn.MSELoss() })
    local w = pipe:parameters "2.w"[1]
    w.grad:copy_(gp.full({ 2 }, 7))
    pipe:step(gp.ones { 4, 3 }, gp.ones { 4, 3 })
    assert.same({ 0, 0 }, w.grad:totable())
  end)
end)

describe("after a failure", function()
  it("gradients are zero, and the next step gives what it always gives", function()
    local model = nn.Sequential { nn.Embedding(5, 4), nn.Linear(4, 5) }
    local pipe <close> = gp.pipeline(model, { balance = { 1, 1 }, chunks = 2,
      loss = nn.CrossEntropyLoss() })
    local good = gp.tensor({ { 1, 2 }, { 3, 4 } }, { dtype = "i64" })
    local wrong = gp.tensor({ { 1, 2 }, { 3, 99 } }, { dtype = "i64" })
    pipe:step(good, good)
    local first = pipe:parameters()[1].grad:clone()
    assert.is_false(pcall(pipe.step, pipe, wrong, good))
    for _, p in ipairs(pipe:parameters()) do
      assert.is_true(gp.equal(p.grad, gp.zeros(p.grad.shape)))
    end
    pipe:step(good, good)
    assert.is_true(gp.equal(first, pipe:parameters()[1].grad))
  end)
end)

describe("an asynchronous stream", function()
  for _, schedule in ipairs { "pipedream", "pipedream_2bw" } do
    it("leaves zero gradients at its end: " .. schedule, function()
      local made = opened.odd()
      local pipe <close> = gp.pipeline(made.model(), { balance = { 8 }, chunks = 3,
        schedule = schedule, loss = made.loss })
      pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
      for _ = 1, 3 do pipe:step(made.x, made.y) end
      pipe:flush()
      for _, p in ipairs(pipe:parameters()) do
        assert.is_true(not p.grad or gp.equal(p.grad, gp.zeros(p.grad.shape)), p.name)
      end
    end)
  end
end)

describe("pipe:backward", function()
  it("leaves unclipped gradients in every precision, also where an optimizer clips", function()
    local x, y = gp.randn({ 8, 4 }, { seed = 1 }), gp.randn({ 8, 2 }, { seed = 2 })
    local norms = {}
    for _, precision in ipairs { "f32", "bf16", "f16" } do
      gp.seed(3)
      local pipe <close> = gp.pipeline(gp.nn.Sequential { gp.nn.Linear(4, 2) },
        { loss = gp.nn.MSELoss(), precision = precision,
          loss_scale = precision == "f16" and { initial = 1024 } or nil })
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0 }), { clip_norm = 0.01 })
      pipe:backward(pipe:forward(x) - y)
      norms[#norms + 1] = pipe:parameters()[1].param.grad:norm():item()
    end
    assert.is_true(norms[1] > 1)
    for i = 2, 3 do assert.near(norms[1], norms[i], 0.02 * norms[1]) end
  end)
end)
