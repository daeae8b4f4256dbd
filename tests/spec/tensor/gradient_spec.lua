-- tests/spec/tensor/gradient_spec.lua - gradients outside of pipelines: leaves, backward, no_grad,
-- gp.grad, gradcheck, optimizers; values that were written to in between.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local fails = require("tests.support.expect").failure
local nn, optim = gp.nn, gp.optim

local function leaf(values, dtype)
  local t = gp.tensor(values, { dtype = dtype })
  t.requires_grad = true
  return t
end

describe("backward", function()
  it("gives the gradients of leaves", function()
    local a, b = leaf { 1, 2, 3 }, leaf { 4, 5, 6 }
    local loss = (a * b + a):sum()
    assert.is_true(loss.requires_grad)
    loss:backward()
    assert.same({ 5, 6, 7 }, a.grad:totable())
    assert.same({ 1, 2, 3 }, b.grad:totable())
    assert.is_nil(loss.grad)
  end)

  it("adds to the gradients that are there", function()
    local a = leaf { 2 }
    local y = a * a
    y:backward()
    y:backward()
    assert.equal(8, a.grad[1])
    a.grad = nil
    assert.is_nil(a.grad)
    y:backward()
    assert.equal(4, a.grad[1])
  end)

  it("makes leaves by an option and by requires_grad_", function()
    local a, b = gp.full({ 2 }, 3, { requires_grad = true }), gp.ones({ 2 }):requires_grad_()
    local c = gp.randn({ 2 }, { seed = 1, requires_grad = true })
    local d = gp.zeros_like(c, { requires_grad = true })
    local sum = (a * b + c + d):sum()
    sum:backward()
    assert.same({ 1, 1 }, a.grad:totable())
    assert.same({ 3, 3 }, b.grad:totable())
    assert.same({ { 1, 1 }, { 1, 1 } }, { c.grad:totable(), d.grad:totable() })
    assert.is_false(b:requires_grad_(false).requires_grad)
    assert.is_false(gp.ones({ 2 }, { requires_grad = false }).requires_grad)
    assert.matches("expected true or false", fails(function() b:requires_grad_ "yes" end))
    assert.matches("expected floats", fails(gp.ones, { 2 }, { dtype = "i64", requires_grad = true }))
  end)

  it("starts from a given seed", function()
    local a = leaf { { 1, 2 }, { 3, 4 } }
    a:transpose():backward(gp.tensor { { 1, 2 }, { 3, 4 } })
    assert.same({ { 1, 3 }, { 2, 4 } }, a.grad:totable())
  end)

  it("goes through views, positions, broadcasts and joins", function()
    local a = leaf { { 1, 2 }, { 3, 4 } }
    local y = a[2] * 10 + a:select(2, 1) + gp.concat({ a:narrow(1, 1, 1):reshape(2) }, 1)
    y:sum():backward()
    assert.same({ { 2, 1 }, { 11, 10 } }, a.grad:totable())
  end)

  it("goes through casts, to the dtype of the leaf", function()
    local a = leaf({ 1, 2 }, "f64")
    local y = a:to "f32" * 3
    y:sum():backward()
    assert.equal("f64", a.grad.dtype)
    assert.same({ 3, 3 }, a.grad:totable())
  end)

  it("ends at what is detached", function()
    local a = leaf { 3 }
    local y = a * a:detach()
    y:backward()
    assert.equal(3, a.grad[1])
    assert.is_false(a:detach().requires_grad)
  end)

  it("draws dropout's mask again", function()
    gp.seed(4)
    local a = leaf(gp.ones { 100 }:totable())
    local y = nn.Dropout(0.5)(a)
    gp.rand { 3 }
    nn.Dropout(0.5)(a)
    y:sum():backward()
    assert.same(y:totable(), a.grad:totable())
    assert.truthy(y:sum():item() > 40)
  end)

  it("does not recurse deeply where a script is long", function()
    local a = leaf { 1 }
    local y = a
    for _ = 1, 20000 do y = y + a end
    y:backward()
    assert.equal(20001, a.grad[1])
    y = nil -- luacheck: ignore 311
    collectgarbage()
  end)

  it("keeps nothing alive once the results are gone", function()
    local a = leaf { 1, 2 }
    collectgarbage()
    local before = gp.memory().live
    for _ = 1, 10 do (a * gp.ones { 2 }):sum():backward() end
    a.grad = nil
    collectgarbage()
    assert.equal(before, gp.memory().live)
  end)
end)

describe("a failed allocation", function()
  it("leaves gradients whole or untouched, and leaks nothing", function()
    local core = require "gpipe.core"
    local a, b = leaf { { 1, 2 }, { 3, 4 } }, leaf { 5, 6 }
    local y = (a:matmul(a) * b):softmax(2):sum()
    collectgarbage()
    local before, failed = gp.memory().live, 0
    for n = 1, 1000 do
      core.memory_fail_at(n)
      local good = pcall(y.backward, y)
      core.memory_fail_at(0)
      if good then break end
      failed = failed + 1
      a.grad, b.grad = nil, nil
      collectgarbage()
      assert.equal(before, gp.memory().live)
    end
    assert.is_true(failed > 10)
    assert.truthy(a.grad)
  end)
end)

describe("a model outside of pipelines", function()
  local function model()
    gp.seed(3)
    return nn.Sequential { nn.Linear(4, 8), nn.GELU(), nn.Residual(nn.Linear(8, 8)),
      nn.LayerNorm(8), nn.Linear(8, 3) }
  end
  local x, y = gp.randn({ 6, 4 }, { seed = 1 }), gp.tensor({ 0, 1, 2, 0, 1, 2 }, { dtype = "i64" })

  it("trains to the bits of a pipeline of one stage", function()
    local eager, piped = model(), model()
    local pipe <close> = gp.pipeline(piped, { loss = nn.CrossEntropyLoss(), balance = { 5 } })
    local loss = nn.CrossEntropyLoss()
    local mine = optim.AdamW(eager:parameters(), { lr = 0.01 })
    local theirs = optim.AdamW(pipe:parameters(), { lr = 0.01 })
    for _ = 1, 3 do
      mine:zero_grad()
      local value = loss(eager(x), y)
      value:backward()
      assert.is_true(math.abs(pipe:step(x, y) - value:item()) < 1e-6) -- a mean in f64 and in f32
      local a = optim.clip_grad_norm(eager:parameters(), 0.1)
      assert.equal(optim.clip_grad_norm(pipe:parameters(), 0.1), a)
      mine:step()
      theirs:step()
    end
    for i, p in ipairs(eager:parameters()) do
      assert.is_true(gp.equal(p.value, pipe:parameters()[i].value), p.name)
    end
  end)

  it("leaves frozen parameters and buffers alone", function()
    local m = model():freeze "^1%."
    nn.CrossEntropyLoss()(m(x), y):backward()
    assert.is_nil(m[1].weight.grad)
    assert.truthy(m[5].weight.grad)
    assert.is_false(m[1].weight.requires_grad)
    m[1].weight.requires_grad = true
    nn.CrossEntropyLoss()(m(x), y):backward()
    assert.truthy(m[1].weight.grad)
  end)

  it("records nothing while a pipeline owns it", function()
    local m = model()
    local pipe <close> = gp.pipeline(m, { loss = nn.CrossEntropyLoss() })
    assert.is_false(m(x).requires_grad)
    pipe:step(x, y)
    assert.truthy(m[1].weight.grad)
  end)

  it("raises where a pipeline took it in between", function()
    local m = model()
    local value = nn.CrossEntropyLoss()(m(x), y)
    local pipe <close> = gp.pipeline(m, { loss = nn.CrossEntropyLoss() })
    assert.truthy(fails(value.backward, value):find("belongs to a live pipeline", 1, true))
    pipe:step(x, y)
  end)

  it("skips an update whose gradients are not finite", function()
    local layer = nn.Linear(2, 2)
    local opt = optim.SGD(layer:parameters(), { lr = 1 })
    local before = layer.weight:value():clone();
    (layer(gp.ones { 1, 2 }) * math.huge):sum():backward()
    opt:step()
    assert.is_true(gp.equal(before, layer.weight:value()))
  end)
end)

describe("values that were written to", function()
  it("raise where a gradient needs them", function()
    local a, b = leaf { 1, 2 }, gp.tensor { 3, 4 }
    local y = (a * b):sum()
    b:copy_(0)
    assert.truthy(fails(y.backward, y):find("the gradient of mul needs a value that was written to",
      1, true))
  end)

  it("do not matter where no gradient needs them", function()
    local a, b = leaf { 1, 2 }, gp.tensor { 3, 4 }
    local y = (a + b):sum()
    b:copy_(0)
    y:backward()
    assert.same({ 1, 1 }, a.grad:totable())
  end)

  it("raise also for parameters that an optimizer changed", function()
    local layer = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2) }
    local y = layer(gp.ones { 1, 2 }):sum()
    y:backward()
    optim.SGD(layer:parameters(), { lr = 1 }):step()
    assert.truthy(fails(y.backward, y):find("written to since", 1, true))
  end)

  it("are refused where they require a gradient", function()
    local a = leaf { 1, 2 }
    assert.truthy(fails(a.copy_, a, 0):find("requires a gradient, expected gp.no_grad", 1, true))
    gp.no_grad(a.copy_, a, 5)
    assert.same({ 5, 5 }, a:totable())
  end)

  it("may be parameters and views of them", function()
    local layer = nn.Linear(3, 2)
    local before = layer(gp.ones { 1, 3 }):sum()
    layer.weight:copy_(1)
    layer.weight[2][3] = 7
    layer.weight:transpose()[1] = gp.tensor { 4, 5 }
    assert.same({ { 4, 1, 1 }, { 5, 1, 7 } }, layer.weight:totable())
    local a = leaf { { 1, 2 }, { 3, 4 } }
    assert.truthy(fails(function() a[1][2] = 3 end):find("expected gp.no_grad", 1, true))
    before:backward() -- it needs only the shape of linear's weight, as x requires no gradient
    assert.same({ { 1, 1, 1 }, { 1, 1, 1 } }, layer.weight.grad:totable())
  end)
end)

describe("gp.no_grad", function()
  it("records nothing, also after an error, and returns results", function()
    local a = leaf { 1 }
    local x, n = gp.no_grad(function(v) return v * 2, 7 end, a)
    assert.is_false(x.requires_grad)
    assert.equal(7, n)
    pcall(gp.no_grad, error, "x")
    assert.is_true((a * 2).requires_grad)
    assert.truthy(fails(x.backward, x):find("nothing that requires a gradient", 1, true))
  end)
end)

describe("gp.grad", function()
  it("refuses second derivatives, which would miss a term", function()
    local function cube(u) return (u * u * u):sum() end
    local function slope(v) return (select(2, gp.grad(cube)(v))):sum() end
    assert.matches("second derivatives are not computed", fails(gp.grad(slope), gp.tensor { 2 }))
    local constant = gp.grad(function(v) return (v * gp.no_grad(slope, v)):sum() end)
    local _, dv = constant(gp.tensor { 2 })
    assert.equal(12, dv[1])
    assert.equal(12, (select(2, gp.grad(cube)(gp.tensor { 2 })))[1]) -- works after an error
  end)

  it("returns the value and gradients, and stores none", function()
    local w = leaf { 2 }
    local f = gp.grad(function(a, b, n) return (a * a * b):sum() * n + w:sum() end)
    local value, da, db = f(gp.tensor { 1, 2 }, gp.tensor { 3, 4 }, 10)
    assert.equal(192, value:item())
    assert.same({ 60, 160 }, da:totable())
    assert.same({ 10, 40 }, db:totable())
    assert.is_nil(w.grad)
  end)

  it("gives zero for inputs that do not matter, and works within no_grad", function()
    local _, da, db = gp.no_grad(gp.grad(function(a) return a end), gp.tensor { 1 }, gp.tensor { 2 })
    assert.same({ 1 }, da:totable())
    assert.same({ 0 }, db:totable())
  end)
end)

describe("gp.gradcheck", function()
  local x = gp.randn({ 3, 2 }, { seed = 1, dtype = "f64" })

  it("accepts right gradients", function()
    assert.is_true(gp.gradcheck(function(a, b) return a:matmul(b):tanh(), a:exp():sum() end,
      { x, x:transpose():clone() }))
  end)

  it("reports wrong gradients", function()
    local good, report = gp.gradcheck(function(a) return a * a:detach() end, { x })
    assert.is_nil(good)
    assert.truthy(report:find("6 elements differ", 1, true), report)
    assert.truthy(report:find("input 1, element 1: gradient", 1, true), report)
  end)
end)

describe("a wrong call", function()
  local a = leaf { 1, 2 }
  local cases = {
    { function() a:backward() end, "backward: the tensor was computed from nothing" },
    { function() (a * 2):backward() end, "backward: the tensor has 2 elements, expected one" },
    { function() (a * 2):backward(gp.ones { 3 }) end, "the seed is f32 3, expected f32 2" },
    { function() gp.ones({ 1 }):backward() end, "computed from nothing that requires a gradient" },
    { function() (a * 2).requires_grad = true end, "requires_grad: the tensor was computed" },
    { function() gp.zeros({ 1 }, { dtype = "i64" }).requires_grad = true end,
      "requires_grad: the tensor is i64, expected floats" },
    { function() a.requires_grad = 1 end, "t.requires_grad = v: v is 1, expected true or false" },
    { function() a.grad = 1 end, "t.grad = v: v is 1, expected nil" },
    { function() a.shape = {} end, "fields cannot be assigned, but for requires_grad and grad" },
    { function() gp.no_grad(3) end, "gp.no_grad: the first argument is 3, expected a function" },
    { function() gp.grad() end, "gp.grad: the first argument is nil, expected a function" },
    { function() gp.grad(print)(3) end, "gp.grad: none of the 1 arguments is a tensor of floats" },
    { function() gp.grad(function() return 1 end)(a) end, "gp.grad: the function returned 1" },
    { function() gp.gradcheck(function(x) return x end, { gp.ones { 1 } }) end,
      "gp.gradcheck: input 1 is f32, expected f64" },
    { function() gp.gradcheck(function(x) return x end, {}, { esp = 1 }) end,
      "gp.gradcheck: unknown option 'esp' (did you mean 'eps'?)" },
  }
  for i, case in ipairs(cases) do
    it(("%d says: %s"):format(i, case[2]), function()
      local text = fails(case[1])
      assert(text:find(case[2], 1, true), text)
    end)
  end
end)

describe("gp.no_grad in a coroutine", function()
  local function noted()
    local x = gp.ones { 2 }
    x.requires_grad = true
    return (x * 2).requires_grad
  end

  it("that yields and is abandoned leaves gradients on outside", function()
    local generator = coroutine.wrap(function()
      gp.no_grad(function(...)
        assert.are.same({ 1, 2 }, { ... })
        assert.is_false(noted())
        assert.are.equal("back", coroutine.yield "out")
        assert.is_false(noted())
        return 3, nil, 4
      end, 1, 2)
      coroutine.yield "second"
    end)
    assert.are.equal("out", generator())
    assert.is_true(noted())
    assert.are.equal("second", generator "back")
    assert.is_true(noted())
  end)

  it("returns and raises what its function does", function()
    local thread = coroutine.wrap(function()
      local results = table.pack(gp.no_grad(function() return 3, nil, 4, nil end))
      assert.are.equal(4, results.n)
      assert.are.equal(4, results[3])
      local good, text = pcall(gp.no_grad, function() error({ code = 7 }) end)
      assert.is_false(good)
      return text.code
    end)
    assert.are.equal(7, thread())
    assert.is_true(noted())
  end)
end)
