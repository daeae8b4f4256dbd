-- tests/spec/pipeline/input_gradients_spec.lua - pipe:backward returns the gradients of the inputs,
-- so that backward can go on in what made them.

local gp = require "gpipe"
local expect = require "tests.support.expect"

local nn, optim = gp.nn, gp.optim

local function devices(n)
  local list = {}
  for i = 1, n do list[i] = "cpu:0" end
  return list
end

local function layers()
  return { nn.Linear(5, 7), nn.Tanh(), nn.LayerNorm(7), nn.Linear(7, 4), nn.Tanh(), nn.Linear(4, 3) }
end

-- Returns the gradient of the input, and those of all parameters in order.
local function backward(opts, x, seed)
  gp.seed(4)
  opts.devices, opts.seed = devices(#opts.balance), 2
  local pipe <close> = gp.pipeline(nn.Sequential(layers()), opts)
  pipe:forward(x)
  local grad, grads = pipe:backward(seed), {}
  for i, p in ipairs(pipe:parameters()) do grads[i] = p.grad:clone() end
  return grad, grads
end

local x, seed = gp.randn({ 10, 5 }, { seed = 1 }), gp.randn({ 10, 3 }, { seed = 2 })

local function eager()
  gp.seed(4)
  local model, leaf = nn.Sequential(layers()), x:clone()
  leaf.requires_grad = true
  model(leaf):backward(seed)
  return leaf.grad
end

describe("pipe:backward", function()
  local whole, all = backward({ balance = { 6 }, chunks = 3 }, x, seed)

  it("returns the gradient of the input", function()
    assert.is_true(whole:allclose(eager(), { rtol = 1e-5, atol = 1e-6 }))
    assert.are.equal(x.shape, whole.shape)
  end)

  for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1", "zb_h2" } do
    for _, mode in ipairs { "never", "always", "except_last" } do
      it("gives the same bits for every cut: " .. schedule .. ", " .. mode, function()
        for _, balance in ipairs { { 6 }, { 2, 4 }, { 1, 2, 3 } } do
          local grad, grads = backward({ balance = balance, chunks = 3, schedule = schedule,
            checkpoint = mode }, x, seed)
          assert.is_true(gp.equal(whole, grad))
          for i, g in ipairs(all) do assert.is_true(gp.equal(g, grads[i])) end
        end
      end)
    end
  end

  it("returns it under schedules with two copies, and with interleaved stages", function()
    for _, opts in ipairs { { schedule = "chimera", chunks = 4, balance = { 3, 3 } },
      { schedule = "interleaved_1f1b", chunks = 4,
        balance = { 1, 2, 1, 2 } },
    } do
      local one = backward({ balance = { 6 }, chunks = 4 }, x[{ { 1, 8 } }], seed[{ { 1, 8 } }])
      gp.seed(4)
      local pipe <close> = gp.pipeline(nn.Sequential(layers()), { schedule = opts.schedule, seed = 2,
        chunks = 4, balance = opts.balance, devices = devices(2) })
      pipe:forward(x[{ { 1, 8 } }])
      assert.is_true(gp.equal(one, (pipe:backward(seed[{ { 1, 8 } }]))))
    end
  end)

  it("divides by the loss scale of f16, and rounds as halves do", function()
    for _, half in ipairs { "bf16", "f16" } do
      gp.seed(4)
      local pipe <close> = gp.pipeline(nn.Sequential(layers()), { balance = { 2, 4 }, chunks = 2,
        devices = devices(2), precision = half })
      if half == "f16" then pipe:loss_scale { scale = 1024 } end
      pipe:forward(x)
      local grad = pipe:backward(seed)
      assert.are.equal("f32", grad.dtype)
      assert.is_true((grad - whole):abs():max():item() < 0.01)
    end
  end)

  it("returns one for each float input, also where a late stage reads it", function()
    local Table = nn.class "Table"
    function Table:init() self.table = nn.Embedding(9, 5) end
    function Table:forward(ids, a, b) return self.table(ids) * a, a, b end
    local Late = nn.class "Late"
    function Late:init() self.fc = nn.Linear(5, 5) end
    function Late:forward(h, a, _) return self.fc(h) * a + a end
    local ids = gp.tensor({ 1, 8, 3, 0, 2, 2 }, { dtype = "i64" })
    local a, b, g = gp.randn { 6, 5 }, gp.randn { 6, 5 }, gp.randn { 6, 5 }
    local first
    for _, balance in ipairs { { 2 }, { 1, 1 } } do
      gp.seed(7)
      local pipe <close> = gp.pipeline(nn.Sequential { Table(), Late() }, { balance = balance,
        chunks = 4, devices = devices(#balance) })
      pipe:forward { ids, a, b }
      local grads = table.pack(pipe:backward(g))
      assert.are.equal(3, grads.n)
      assert.is_nil(grads[1])
      assert.is_nil(grads[3])
      first = first or grads[2]
      assert.is_true(gp.equal(first, grads[2]))
    end
  end)

  it("passes through frozen parts", function()
    local model = nn.Sequential { nn.Linear(5, 3), nn.Tanh() }
    model:freeze()
    local pipe <close> = gp.pipeline(model, { balance = { 1, 1 }, devices = devices(2) })
    pipe:forward(x)
    local leaf = x:clone()
    leaf.requires_grad = true
    model(leaf):backward(seed)
    assert.is_true((pipe:backward(seed)):allclose(leaf.grad, { rtol = 1e-5, atol = 1e-6 }))
  end)

  it("lets a generator train through a discriminator, each in stages of its own", function()
    gp.seed(1)
    local maker = nn.Sequential { nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 5) }
    local judge = nn.Sequential { nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1) }
    local g <close> = gp.pipeline(maker, { balance = { 1, 2 }, devices = devices(2), chunks = 2 })
    local d <close> = gp.pipeline(judge, { balance = { 2, 1 }, devices = devices(2), chunks = 2 })
    local z, loss, losses = gp.randn({ 8, 2 }, { seed = 3 }), nn.BCEWithLogitsLoss(), {}
    local opt = optim.Adam(g:parameters(), { lr = 0.05 })
    for step = 1, 30 do
      local scores = d:forward(g:forward(z))
      scores.requires_grad = true
      local value = loss(scores, gp.ones(scores.shape))
      value:backward()
      g:backward(d:backward(scores.grad))
      opt:step()
      losses[step] = value:item()
    end
    assert.is_true(losses[30] < 0.6 * losses[1])
  end)

  it("does not return gradients of a step, and refuses a second backward", function()
    local pipe <close> = gp.pipeline(nn.Sequential(layers()), { balance = { 6 } })
    pipe:forward(x)
    pipe:backward(seed)
    expect.fails_with("there is no forward to go back through", pipe.backward, pipe, seed)
  end)
end)

describe("pipe:step", function()
  it("refuses an input that requires a gradient, which it would not get", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(5, 3) }, { loss = nn.MSELoss() })
    local waiting = x:clone()
    waiting.requires_grad = true
    expect.fails_with("input 1 requires a gradient", pipe.step, pipe, waiting, seed)
    expect.fails_with("input 1 requires a gradient", pipe.step, pipe, waiting * 2, seed)
    assert.is_true(pipe:step(waiting:detach(), seed) > 0)
    assert.is_true(pipe:evaluate(waiting, seed) > 0)
  end)
end)
