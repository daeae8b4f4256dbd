-- tests/spec/tensor/methods_spec.lua - operators and methods of real tensors.

local gp = require "gpipe"
local expect = require "tests.support.expect"
local fails_with, failure = expect.fails_with, expect.failure

local function matrix() return gp.tensor { { 1, 2, 3 }, { 4, 5, 6 } } end

describe("operators", function()
  it("take numbers on either side and broadcast", function()
    local t = matrix()
    assert.same({ { 2, 4, 6 }, { 8, 10, 12 } }, (2 * t):totable())
    assert.same({ { 2, 4, 6 }, { 8, 10, 12 } }, (t * 2):totable())
    assert.same({ 0, -1, -2 }, (1 - t)[1]:totable())
    assert.same({ -1, -2, -3 }, (-t)[1]:totable())
    assert.same({ 1, 4, 9 }, (t ^ 2)[1]:totable())
    assert.same({ 2, 4, 8 }, (2 ^ t)[1]:totable())
    assert.same({ 1, 0.5 }, (1 / gp.tensor { 1, 2 }):totable())
    assert.same({ { 2, 3, 4 }, { 6, 7, 8 } }, (t + gp.tensor { { 1 }, { 2 } }):totable())
  end)

  it("compare to bool tensors", function()
    local t = gp.tensor { 1, 2, 3 }
    assert.same({ false, false, true }, t:gt(2):totable())
    assert.same({ false, true, true }, t:ge(2):totable())
    assert.same({ true, false, false }, t:lt(2):totable())
    assert.same({ true, true, false }, t:le(2):totable())
    assert.same({ false, true, false }, t:eq(gp.tensor { 3, 2, 1 }):totable())
    assert.same({ true, false, true }, t:ne(2):totable())
    assert.same({ 1, 0, 3 }, gp.where(t:ne(2), t, 0):totable())
    assert.equal(2, t:ge(2):sum():item())
  end)

  it("of Lua that give one boolean are refused, with the methods that give a tensor", function()
    local t = gp.tensor { 1, 2, 3 }
    for _, compare in ipairs { function() return t < t end, function() return 1 <= t end } do
      fails_with("t:lt(o), t:le(o), t:gt(o) or t:ge(o)", compare)
      assert.is_nil(failure(compare):find "traced")
    end
  end)

  it("never cast silently, and name to()", function()
    local i = gp.tensor({ 1, 2 }, { dtype = "i64" })
    fails_with("to(", function() return i + gp.ones { 2 } end)
    fails_with("to(", function() return gp.ones({ 2 }, { dtype = "f64" }) * gp.ones { 2 } end)
    fails_with("mul: the number is 0.5 (float), expected an integer as the tensor is i64 (convert",
      function() return i * 0.5 end)
    assert.same({ false, true }, i:gt(1):totable())
  end)

  it("refuse what is neither tensor nor number", function()
    fails_with("add: the right operand is a table, expected a tensor or a number",
      function() return gp.ones { 2 } + {} end)
    fails_with('mul: the left operand is "2" (string)', function() return "2" * gp.ones { 2 } end)
    fails_with("2x3", function() return matrix() + gp.ones { 4 } end)
  end)

  it("raise at the user's line", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local text = failure(function() return matrix() + gp.ones { 4 } end)
    assert.truthy(text:find("methods_spec.lua:" .. line .. ": add", 1, true), text)
  end)
end)

describe("shape methods", function()
  it("reshape infers one -1 and copies where it must", function()
    local t = matrix()
    assert.same({ 3, 2 }, t:reshape({ 3, -1 }).shape)
    assert.same({ 6 }, t:reshape(-1).shape)
    assert.same({ 1, 4, 2, 5, 3, 6 }, t:transpose(1, 2):reshape(6):totable())
    fails_with("reshape: the shape is 4x-1, expected one for the 6 elements of 2x3", t.reshape, t,
      { 4, -1 })
    fails_with("reshape: the shape is 5, expected one for the 6 elements of 2x3", t.reshape, t, 5)
    fails_with("-1 twice", t.reshape, t, { -1, -1 })
    fails_with("not contiguous", function() return t:transpose(1, 2):view(6) end)
    assert.same({ 6 }, t:view(6).shape)
  end)

  it("permute and transpose reorder dimensions", function()
    local t = gp.arange(1, 24):reshape { 2, 3, 4 }
    assert.same({ 4, 2, 3 }, t:permute({ 3, 1, 2 }).shape)
    assert.same({ 4, 2, 3 }, t:permute(-1, 1, 2).shape)
    assert.same({ 4, 3, 2 }, t:transpose(1, -1).shape)
    assert.same({ 2, 4, 3 }, t:transpose().shape)
    assert.equal(t[2][3][4], t:permute(3, 1, 2)[4][2][3])
    fails_with("a dimension is given twice", t.permute, t, { 1, 1, 2 })
    fails_with("the order has 2 dimensions, expected 3", t.permute, t, { 1, 2 })
    fails_with("permute: dim is 4, expected 1..3 or -3..-1", t.permute, t, { 1, 2, 4 })
  end)

  it("narrow takes a range", function()
    assert.same({ { 2, 3 }, { 5, 6 } }, matrix():narrow(2, 2, 2):totable())
    assert.same({ { 3 }, { 6 } }, matrix():narrow(-1, -1, 1):totable())
    fails_with("narrow: length is 3, expected an integer in 0..2",
      function() matrix():narrow(2, 2, 3) end)
  end)

  it("contiguous returns the tensor itself where it is", function()
    local t = matrix()
    assert.equal(t, t:contiguous())
    assert.is_true(t:transpose(1, 2):contiguous():is_contiguous())
  end)

  it("clone has memory of its own", function()
    local t = matrix()
    local c = t:clone()
    c[1] = 0
    assert.equal(1, t[1][1])
  end)

  it("to converts dtypes and knows the device", function()
    local t = gp.tensor { 1.9, -1.9 }
    assert.same({ 1, -1 }, t:to("i64"):totable())
    assert.equal(t, t:to("f32"))
    assert.equal(t, t:to("cpu"))
    fails_with('to: dtype or device is "f31" (string)', t.to, t, "f31")
  end)

  it("concat joins many", function()
    local rows = {}
    for i = 1, 70 do rows[i] = gp.full({ 1, 2 }, i) end
    local all = gp.concat(rows)
    assert.same({ 70, 2 }, all.shape)
    for i = 1, 70 do assert.equal(i, all[i][2]) end
    assert.same({ 1, 4 }, gp.concat({ rows[1], rows[2] }, -1).shape)
    fails_with("the list is empty", gp.concat, {})
    fails_with("concat: element 2 is 5, expected a tensor", gp.concat, { rows[1], 5 })
  end)
end)

describe("reductions", function()
  it("go over one dim, a list, or all", function()
    local t = matrix()
    assert.equal(21, t:sum():item())
    assert.same({ 5, 7, 9 }, t:sum(1):totable())
    assert.same({ { 6 }, { 15 } }, t:sum(-1, true):totable())
    assert.equal(21, t:sum({ 1, 2 }):item())
    assert.equal(3.5, t:mean():item())
    assert.same({ 2, 5 }, t:mean(2):totable())
    fails_with("sum: dim is 3, expected 1..2 or -2..-1", t.sum, t, 3)
    fails_with("a dimension is given twice", t.sum, t, { 1, -2 })
  end)

  it("sum integers exactly", function()
    local big = (1 << 53) + 1
    local t = gp.tensor({ big, 1 }, { dtype = "i64" })
    assert.equal(big + 1, t:sum():item())
    assert.equal("i64", gp.full({ 1000 }, 200, { dtype = "u8" }):sum().dtype)
    assert.equal(200000, gp.full({ 1000 }, 200, { dtype = "u8" }):sum():item())
    fails_with('to("f32")', t.mean, t)
  end)

  it("max and argmax give positions from 1, the first of equals", function()
    local t = gp.tensor { { 1, 5, 5 }, { 9, 2, 3 } }
    local values, positions = t:max(2)
    assert.same({ 5, 9 }, values:totable())
    assert.same({ 2, 1 }, positions:totable())
    assert.equal(9, t:max():item())
    assert.equal(4, t:argmax():item())
    assert.same({ 2, 1, 1 }, t:argmax(1):totable())
    assert.equal(1, select("#", t:max()))
  end)

  it("max over several dims gives only the greatest values", function()
    local t = gp.randn({ 3, 4, 5 }, { seed = 1 })
    for _, dims in ipairs { { 2, 3 }, { 1, 3 }, { -1, 1 }, { 1, 2, 3 }, { 2 } } do
      local expected = t
      for _, d in ipairs(dims) do expected = expected:max(d, true) end
      assert.is_true(gp.equal(expected, t:max(dims, true)))
      assert.equal(expected:numel(), t:max(dims):numel())
      assert.equal(3 - #dims, t:max(dims):dim())
      assert.equal(1, select("#", t:max(dims)))
    end
    fails_with("empty", t.max, t, {})
    fails_with("twice", t.max, t, { 2, 2 })
    fails_with("4", t.max, t, { 2, 4 })
  end)

  it("softmax runs along any dim", function()
    local t = gp.randn({ 3, 4, 5 }, { seed = 1 })
    for d = 1, 3 do
      local s = t:softmax(d)
      assert.same(t.shape, s.shape)
      assert.is_true((s:sum(d) - 1):max():item() < 1e-6)
      assert.is_true((s:log() - t:log_softmax(d)):max():item() < 1e-5)
    end
    assert.is_true(gp.equal(t:softmax(), t:softmax(3)))
  end)
end)

describe("matmul", function()
  local a = gp.randn({ 4, 3 }, { seed = 1, dtype = "f64" })
  local b = gp.randn({ 3, 5 }, { seed = 2, dtype = "f64" })

  local function reference(x, y)
    local out = gp.zeros({ #x, y.shape[2] }, { dtype = "f64" })
    for i = 1, #x do
      for j = 1, y.shape[2] do
        local sum = 0
        for k = 1, #y do sum = sum + x[i][k] * y[k][j] end
        out[i][j] = sum
      end
    end
    return out
  end

  local function near(x, y)
    assert.same(x.shape, y.shape)
    assert.is_true(((x - y) ^ 2):sum():item() < 1e-20)
  end

  it("multiplies matrices, also transposed views", function()
    near(reference(a, b), a:matmul(b))
    near(reference(a, b), a:transpose():contiguous():transpose():matmul(b))
    near(reference(a, b), a:matmul(b:transpose():contiguous():transpose()))
    near(reference(a, b):transpose(), b:transpose():matmul(a:transpose()))
  end)

  it("takes vectors on either side", function()
    local v = gp.tensor({ 1, 2, 3 }, { dtype = "f64" })
    near((a * v):sum(2), a:matmul(v))
    near((b * v:reshape(3, 1)):sum(1), v:matmul(b))
    assert.equal(14, v:matmul(v):item())
    assert.same({}, v:matmul(v).shape)
  end)

  it("broadcasts leading dimensions", function()
    local x = gp.randn({ 2, 4, 3 }, { seed = 3, dtype = "f64" })
    local y = x:matmul(b)
    assert.same({ 2, 4, 5 }, y.shape)
    near(x[2]:matmul(b), y[2])
    assert.same({ 2, 4 }, x:matmul(gp.ones({ 3 }, { dtype = "f64" })).shape)
  end)

  it("names both shapes", function()
    local text = failure(a.matmul, a, a)
    assert.truthy(text:find("4x3", 1, true))
    fails_with("the right operand is a scalar", a.matmul, a, gp.tensor(1, { dtype = "f64" }))
  end)
end)
