-- tests/spec/tensor/index_spec.lua - t[{..}], masks and positions; methods made of several ops;
-- eye, einsum and their kin: values compared with plain Lua, gradients, traces.
local gp = require "gpipe"
local expect = require "tests.support.expect"
local fails_with = expect.fails_with

local function cube() return gp.arange(1, 24):reshape { 2, 3, 4 } end
local function i64(list) return gp.tensor(list, { dtype = "i64" }) end

describe("t[{..}]", function()
  it("chooses positions and ranges", function()
    local t = cube()
    assert.equal(24, t[{ 2, 3, 4 }])
    assert.same({ 13, 14, 15, 16 }, t[{ 2, 1 }]:totable())
    assert.same({ { 5, 6, 7, 8 }, { 9, 10, 11, 12 } }, t[{ 1, { 2, 3 } }]:totable())
    assert.same({ 4, 8, 12 }, t[{ 1, {}, -1 }]:totable())
    assert.same({ 2, 3, 2 }, t[{ {}, {}, { 1, 4, 2 } }].shape)
    assert.same({ 1, 3 }, t[{ 1, 1, { 1, 4, 2 } }]:totable())
    assert.same({ 2, 4 }, t[{ 1, 1, { 2, -1, 2 } }]:totable())
    assert.same({ 0, 3, 4 }, t[{ { 2, 1 } }].shape)
    assert.same(t:totable(), t[{}]:totable())
  end)

  it("gives views that can be written to", function()
    local t = gp.zeros { 3, 4 }
    t[{ {}, { 1, 4, 3 } }] = 1
    t[{ 2 }] = { 5, 6, 7, 8 }
    t[{ { 3, 3 }, { 2, 3 } }] = gp.tensor { 9, 9 }
    t[{ 1, 2 }] = 4
    assert.same({ { 1, 4, 0, 1 }, { 5, 6, 7, 8 }, { 1, 9, 9, 1 } }, t:totable())
  end)

  it("works while a layer is traced", function()
    local nn = gp.nn
    local Cut = nn.class "Cut"
    function Cut.forward(_, x) return x[{ {}, { 1, 6, 2 } }] * 2 + x[{ {}, { 4, 6 } }] end
    local model = nn.Sequential { Cut() }
    local pipe <close> = gp.pipeline(model, { chunks = 2 })
    local x = gp.randn { 4, 6 }
    assert.is_true(gp.equal(model(x), pipe:eval():forward(x)))
  end)

  it("has gradients", function()
    local x = gp.randn({ 3, 7 }, { dtype = "f64", seed = 1 })
    for _, index in ipairs { { 2 }, { {}, { 2, 7, 2 } }, { { 1, 2 }, -1 }, { {}, { 1, 7, 3 } } } do
      assert.is_true(gp.gradcheck(function(t) return t[index] * t[index] end, { x }))
    end
  end)

  it("says what is wrong", function()
    local t = cube()
    fails_with("t[{..}] has 4 entries, the tensor 3 dimensions", function() return t[{ 1, 1, 1, 1 }] end)
    fails_with("entry 2 is 4, expected a position in 1..3 or -3..-1", function() return t[{ 1, 4 }] end)
    fails_with("entry 1: the last is 3, expected a position in 1..2", function() return t[{ { 1, 3 } }] end)
    fails_with("entry 1: the step is 0, expected an integer >= 1",
      function() return t[{ { 1, 2, 0 } }] end)
    fails_with('entry 1 is "a" (string), expected a position', function() return t[{ "a" }] end)
    fails_with('has a key "x"', function() return t[{ x = 1 }] end)
    fails_with("expected {first, last, step}", function() return t[{ { 1, 2, 1, 1 } }] end)
  end)
end)

describe("masks and positions", function()
  it("choose elements and rows", function()
    local t = gp.tensor { { 1, -2 }, { -3, 4 } }
    assert.same({ 1, 4 }, t[t:gt(0)]:totable())
    assert.same({ 0 }, t[t:gt(9)].shape)
    assert.same({ { -3, 4 }, { 1, -2 }, { -3, 4 } }, t[i64 { 2, 1, 2 }]:totable())
    assert.same({ 2, 1, 2 }, t[i64 { { 2 }, { 1 } }].shape)
    assert.same({ 3, 1 }, i64({ 1, 2, 3 })[i64 { 3, 1 }]:totable())
  end)

  it("write elements and rows", function()
    local t = gp.tensor { { 1, -2 }, { -3, 4 } }
    t[t:lt(0)] = 0
    assert.same({ { 1, 0 }, { 0, 4 } }, t:totable())
    t[t:gt(0)] = gp.tensor { 7, 8 }
    assert.same({ { 7, 0 }, { 0, 8 } }, t:totable())
    t[i64 { 2 }] = gp.tensor { { 5, 6 } }
    assert.same({ { 7, 0 }, { 5, 6 } }, t:totable())
    t[i64 { 1, 2 }] = 1
    assert.same({ { 1, 1 }, { 1, 1 } }, t:totable())
  end)

  it("say what is wrong", function()
    local t = gp.tensor { { 1, -2 }, { -3, 4 } }
    fails_with("the mask is 2, expected 2x2", function() return t[gp.tensor { true, false }] end)
    fails_with("i is a tensor of f32, expected bool", function() return t[gp.ones { 2 }] end)
    fails_with("v has 3 elements, expected 2", function() t[t:gt(0)] = gp.ones { 3 } end)
    fails_with("outside", function() return t[i64 { 3 }] end)
  end)
end)

describe("methods of shape", function()
  it("are squeeze, unsqueeze, t, tile", function()
    assert.same({ 3 }, gp.ones({ 1, 3, 1 }):squeeze().shape)
    assert.same({ 1, 3 }, gp.ones({ 1, 3, 1 }):squeeze(-1).shape)
    assert.same({ 2, 1 }, gp.ones({ 2 }):unsqueeze(-1).shape)
    assert.same({ 1, 2 }, gp.ones({ 2 }):unsqueeze(1).shape)
    assert.same({ { 1, 3 }, { 2, 4 } }, gp.tensor({ { 1, 2 }, { 3, 4 } }):t():totable())
    assert.same({ { 1, 2, 1, 2 }, { 1, 2, 1, 2 } }, gp.tensor({ 1, 2 }):tile(2, 2):totable())
    fails_with("squeeze: dimension 1 has size 2, expected 1", gp.ones({ 2 }).squeeze, gp.ones { 2 }, 1)
    assert.same({ 2 }, gp.ones({ 2 }):t().shape)
    fails_with("t: the tensor has 3 dimensions, expected at most 2", gp.ones({ 2 }).t,
      gp.ones { 1, 1, 2 })
  end)

  it("are split, chunk, unfold, flip", function()
    local sizes = {}
    for i, part in ipairs(gp.arange(1, 7):split(3)) do sizes[i] = part:numel() end
    assert.same({ 3, 3, 1 }, sizes)
    assert.same({ 4, 7 }, { gp.arange(1, 7):split({ 3, 4 })[2][1], gp.arange(1, 7):chunk(2)[2][3] })
    assert.same({ { 1, 2 }, { 3, 4 } }, gp.arange(1, 5):unfold(1, 2, 2):totable())
    assert.same({ 2, 2, 4, 2 }, cube():unfold(2, 2).shape)
    assert.same({ { 3, 2, 1 }, { 6, 5, 4 } }, gp.arange(1, 6):reshape(2, 3):flip(2):totable())
    fails_with("the sizes add up to 3, expected 7", gp.arange(1, 7).split, gp.arange(1, 7), { 3 })
  end)
end)

describe("methods that reduce", function()
  local t = gp.tensor { { 3, 1, 2 }, { -1, 5, 0 } }

  it("are min, argmin, any, all, count_nonzero", function()
    local values, positions = t:min(2)
    assert.same({ 1, -1 }, values:totable())
    assert.same({ 2, 1 }, positions:totable())
    assert.equal(-1, t:min():item())
    assert.same({ 2, 1, 2 }, t:argmin(1):totable())
    assert.same({ true, false }, t:all(2):totable())
    assert.is_true(t:any():item())
    assert.same({ 3, 2 }, t:count_nonzero(2):totable())
    assert.equal(-2, i64({ 1, -2 }):min():item())
  end)

  it("are var, std, norm, logsumexp", function()
    local x = gp.randn({ 4, 5 }, { dtype = "f64", seed = 3 })
    for r = 1, 4 do
      local row, mean, square, sum = x[r]:totable(), 0, 0, 0
      for _, v in ipairs(row) do mean = mean + v / 5 end
      for _, v in ipairs(row) do square, sum = square + (v - mean) ^ 2, sum + math.exp(v) end
      assert.near(square / 4, x:var(2)[r], 1e-12)
      assert.near((square / 5) ^ 0.5, x:std(2, { correction = 0 })[r], 1e-12)
      assert.near(math.log(sum), x:logsumexp(2)[r], 1e-12)
    end
    local y = gp.tensor { 3, -4 }
    assert.same({ 5, 7, 4 }, { y:norm():item(), y:norm(1):item(), y:norm(math.huge):item() })
    assert.near(91 ^ (1 / 3), y:norm(3):item(), 1e-5)
    assert.same({ 1, 5 }, x:norm(2, 1, true).shape)
    local huge = gp.tensor { 1000, 1000 }
    assert.near(1000 + math.log(2), huge:logsumexp():item(), 1e-3)
    assert.equal(-math.huge, gp.full({ 3 }, -math.huge):logsumexp():item())
    assert.equal(math.huge, gp.tensor({ 1, math.huge }):logsumexp():item())
  end)

  it("have gradients", function()
    local x = gp.randn({ 3, 4 }, { dtype = "f64", seed = 5 })
    assert.is_true(gp.gradcheck(function(v)
      return v:var(1), v:std(2), v:norm(3), v:norm(), v:logsumexp(2), (v:min(2)), v:flip(1) * v,
        v:index_select(2, { 4, 1, 4 }) * 2, v:tril() * v, v:triu(1) * v
    end, { x }))
  end)
end)

describe("gp", function()
  it("makes eye, linspace, stack, one_hot, tril and triu", function()
    assert.same({ { 1, 0 }, { 0, 1 } }, gp.eye(2):totable())
    assert.equal("f64", gp.eye(2, { dtype = "f64" }).dtype)
    assert.same({ 1, 1.5, 2 }, gp.linspace(1, 2, 3):totable())
    assert.same({ { 1, 0 }, { 1, 0 } }, gp.stack({ gp.ones { 2 }, gp.zeros { 2 } }, 2):totable())
    assert.same({ { 0, 1 }, { 1, 0 } }, gp.one_hot(i64 { 1, 0 }, 2):totable())
    local t = gp.ones { 3, 3 }
    assert.same({ { 1, 0, 0 }, { 1, 1, 0 }, { 1, 1, 1 } }, t:tril():totable())
    assert.same({ { 1, 1, 1 }, { 1, 1, 1 }, { 0, 1, 1 } }, t:triu(-1):totable())
    fails_with("gp.stack: element 2 is 3, expected 2 as the first", gp.stack,
      { gp.ones { 2 }, gp.ones { 3 } })
  end)

  it("draws whole numbers, orders and bits", function()
    local drawn = gp.randint(-2, 3, { 1000 }, { seed = 1 })
    assert.same({ -2, 2 }, { drawn:to("f32"):min():item(), drawn:max():item() })
    local seen = {}
    for _, v in ipairs(gp.randperm(50, { seed = 2 }):totable()) do seen[v] = true end
    assert.equal(50, #seen)
    assert.near(300, gp.bernoulli(0.3, { 1000 }, { seed = 1 }):sum():item(), 50)
    fails_with("gp.bernoulli: p is 2, expected", gp.bernoulli, 2, { 1 })
  end)

  it("multiplies by letters with einsum", function()
    local a, b = gp.randn({ 2, 3, 4 }, { seed = 1 }), gp.randn({ 2, 4, 5 }, { seed = 2 })
    assert.is_true(gp.equal(a:matmul(b), gp.einsum("bij,bjk->bik", a, b)))
    local m = gp.tensor { { 1, 2 }, { 3, 4 } }
    assert.same({ { 1, 3 }, { 2, 4 } }, gp.einsum("ij->ji", m):totable())
    assert.equal(10, gp.einsum("ij->", m):item())
    assert.same({ { 3, 4 }, { 6, 8 } }, gp.einsum("i,j->ij", gp.tensor { 1, 2 },
      gp.tensor { 3, 4 }):totable())
    assert.same({ 5, 25 }, gp.einsum("ij, ij -> i", m, m):totable())
    local v = gp.tensor { 1, 1 }
    assert.equal(m:matmul(m):sum():item(), gp.einsum("i,ij,jk,k->", v, m, m, v):item())
    fails_with("j is 4 in operand 2 and 2 before", gp.einsum, "ij,jk->ik", m, gp.ones { 4, 4 })
    fails_with("has 1 operands, there are 2", gp.einsum, "ij->ij", m, m)
    fails_with("operand 2 is nil", function() gp.einsum("ij,jk->ik", m, nil) end)
  end)
end)
