-- tests/spec/tensor/scope_spec.lua - gp.scope frees what its function made and does not return.
local gp = require "gpipe"

local BYTES = 1000 * 1000 * 4

local function live() return gp.memory().cpu.live end
local function big() return gp.ones { 1000, 1000 } end
local function is_freed(t) return not pcall(t.numel, t) end

describe("unreachable tensors", function()
  it("are collected in time, though Lua's collector sees 50 bytes of each", function()
    collectgarbage()
    collectgarbage()
    local before, most, collects = live(), 0, gp.memory().cpu.collects
    local size = 32 << 20
    for _ = 1, 40 do
      local t = gp.zeros({ size }, { dtype = "u8" })
      most = math.max(most, live() - before)
      assert.equal(size, t:numel())
    end
    assert.is_true(most <= (256 << 20) + 2 * size + before, tostring(most)) -- of 1,280 MiB
    assert.is_true(gp.memory().cpu.collects > collects)
  end)
end)

describe("gp.scope", function()
  before_each(function()
    collectgarbage()
    collectgarbage()
    collectgarbage "stop" -- only the scope frees memory
  end)
  after_each(function() collectgarbage "restart" end)

  it("frees the tensors that were made, intermediate ones too", function()
    local before, held = live(), nil
    gp.scope(function()
      held = big()
      local sum = (held + held) * 2
      assert.is_true(live() >= before + 2 * BYTES)
      sum:sqrt()
    end)
    assert.is_true(live() < before + 1000)
    assert.is_true(is_freed(held))
  end)

  it("passes arguments, returns all values, and keeps tensors within returned values", function()
    local function give(a, b)
      local inside = gp.ones { 2 } * b
      return a, nil, { deep = { b * 2 } }, function() return inside end, nil
    end
    local results = table.pack(gp.scope(give, 7, gp.ones { 2 }))
    assert.equal(5, results.n)
    assert.equal(7, results[1])
    assert.equal(2, results[3].deep[1][2])
    assert.equal(1, results[4]()[2])
  end)

  it("keeps the memory of a returned view, and older tensors", function()
    local old = big()
    local view = gp.scope(function()
      local _ = old + 1
      return big():narrow(1, 3, 2)
    end)
    assert.equal(1, view[2][1000])
    assert.equal(1, old[1][1])
  end)

  it("frees all after an error, and raises that error", function()
    local before, held = live(), nil
    local good, message = pcall(gp.scope, function()
      held = big()
      error { code = 5 }
    end)
    assert.is_false(good)
    assert.equal(5, message.code)
    assert.is_true(live() < before + 1000)
    assert.is_true(is_freed(held))
    assert.equal(1, gp.ones { 1 }[1]) -- no scope is open any more
  end)

  it("hands what an inner one returns to the outer one", function()
    local inner, outer
    gp.scope(function()
      inner = gp.scope(function() return big() end)
      assert.is_false(is_freed(inner))
      outer = big()
    end)
    assert.is_true(is_freed(inner) and is_freed(outer))
  end)

  it("keeps gradients of what it returns, and parameters", function()
    local w = gp.ones { 3 }
    w.requires_grad = true
    local loss = gp.scope(function() return ((w * 2) * w):sum() end)
    loss:backward()
    assert.same({ 4, 4, 4 }, w.grad:totable())
    local layer
    gp.scope(function() layer = gp.nn.Linear(2, 2) end)
    assert.equal(2, layer(gp.ones { 1, 2 }).shape[2])
  end)

  it("leaves a model, its optimizer and a pipeline as they are", function()
    local x, y = gp.ones { 4, 2 }, gp.zeros { 4, 1 }
    local function train(around)
      gp.seed(1)
      local model = gp.nn.Sequential { gp.nn.Linear(2, 3), gp.nn.BatchNorm1d(3), gp.nn.Linear(3, 1) }
      local pipe <close> = gp.pipeline(model, { loss = gp.nn.MSELoss() })
      local opt = gp.optim.AdamW(pipe:parameters(), { lr = 0.1 })
      local losses = {}
      for i = 1, 4 do
        losses[i] = around(function()
          local loss = pipe:step(x * i, y)
          opt:step()
          return loss
        end)
      end
      return losses
    end
    assert.same(train(function(f) return f() end), train(gp.scope))
  end)

  it("refuses values that are not functions, and yields", function()
    assert.has_error(function() gp.scope(3) end)
    local resumed = coroutine.wrap(function()
      return pcall(gp.scope, function() coroutine.yield(1) end)
    end)
    assert.is_false((resumed()))
    assert.equal(1, gp.ones { 1 }[1])
  end)
end)
