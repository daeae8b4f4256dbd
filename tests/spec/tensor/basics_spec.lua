-- tests/spec/tensor/basics_spec.lua - products of vectors, diagonals, rolls, grids, and methods
-- that find elements: values of PyTorch 2.9, gradients, traces, refusals.
local gp = require "gpipe"
local expect = require "tests.support.expect"

local nan, huge = 0 / 0, math.huge

local function i64(list) return gp.tensor(list, { dtype = "i64" }) end
local function matrix() return gp.tensor { { 1, 2, 3 }, { 4, 5, 6 } } end
local function vector() return gp.tensor { 1, 2, 3 } end

-- {what is called, what it gives}
local VALUES = {
  dot = { function() return vector():dot(vector()) end, 14.0 },
  ["dot of nothing"] = { function() return gp.zeros({ 0 }):dot(gp.zeros { 0 }) end, 0.0 },
  outer = { function() return gp.tensor({ 1, 2 }):outer(vector()) end,
    { { 1, 2, 3 }, { 2, 4, 6 } } },
  mv = { function() return matrix():mv(vector()) end, { 14, 32 } },
  ["mv transposed"] = { function() return matrix():t():mv(gp.tensor { 1, 2 }) end, { 9, 12, 15 } },
  trace = { function() return matrix():trace() end, 6.0 },
  ["trace of integers"] = { function() return i64({ { 1, 2 }, { 3, 4 } }):trace() end, 5 },
  diag = { function() return matrix():diag() end, { 1, 5 } },
  ["diag above"] = { function() return matrix():diag(2) end, { 3 } },
  ["diag below"] = { function() return matrix():diag(-1) end, { 4 } },
  ["diag outside"] = { function() return matrix():diag(3) end, {} },
  ["diag transposed"] = { function() return matrix():t():diag(-1) end, { 2, 6 } },
  ["diag of a vector"] = { function() return i64({ 7, 8 }):diag() end, { { 7, 0 }, { 0, 8 } } },
  ["diag of a vector above"] = { function() return i64({ 7, 8 }):diag(1) end,
    { { 0, 7, 0 }, { 0, 0, 8 }, { 0, 0, 0 } } },
  ["diag of a vector below"] = { function() return i64({ 7, 8 }):diag(-1) end,
    { { 0, 0, 0 }, { 7, 0, 0 }, { 0, 8, 0 } } },
  roll = { function() return matrix():roll(1) end, { { 6, 1, 2 }, { 3, 4, 5 } } },
  ["roll a dimension"] = { function() return matrix():roll(-1, 2) end,
    { { 2, 3, 1 }, { 5, 6, 4 } } },
  ["roll two"] = { function() return matrix():roll({ 1, 4 }, { 1, -1 }) end,
    { { 6, 4, 5 }, { 3, 1, 2 } } },
  ["roll nothing"] = { function() return gp.zeros({ 0 }):roll(3) end, {} },
  repeat_interleave = { function() return matrix():repeat_interleave(2, 2) end,
    { { 1, 1, 2, 2, 3, 3 }, { 4, 4, 5, 5, 6, 6 } } },
  ["repeat_interleave flat"] = { function() return matrix():repeat_interleave(1) end,
    { 1, 2, 3, 4, 5, 6 } },
  ["repeat_interleave by counts"] = {
    function() return matrix():repeat_interleave({ 2, 0, 1 }, -1) end,
    { { 1, 1, 3 }, { 4, 4, 6 } } },
  flatten = { function() return matrix():t():flatten() end, { 1, 4, 2, 5, 3, 6 } },
  ["flatten a scalar"] = { function() return gp.tensor(3):flatten() end, { 3 } },
  expand_as = { function() return gp.tensor({ { 1 }, { 2 } }):expand_as(gp.ones { 2, 2 }) end,
    { { 1, 1 }, { 2, 2 } } },
  nonzero = { function() return i64({ { 0, 5 }, { 6, 0 } }):nonzero() end, { { 1, 2 }, { 2, 1 } } },
  ["nonzero of NaN"] = { function() return gp.tensor({ 0, nan }):nonzero() end, { { 2 } } },
  ["nonzero of bool"] = { function() return gp.tensor({ true, false }):nonzero() end, { { 1 } } },
  masked_select = {
    function() return matrix():masked_select(gp.tensor { true, false, true }) end, { 1, 3, 4, 6 } },
  unique = { function() return matrix():repeat_interleave(2):unique() end, { 1, 2, 3, 4, 5, 6 } },
  ["unique of bool"] = { function() return gp.tensor({ true, false, true }):unique() end,
    { false, true } },
  ["unique of nothing"] = { function() return gp.zeros({ 0 }):unique() end, {} },
  bincount = { function() return i64({ 3, 1, 3, 0 }):bincount() end, { 1, 1, 0, 2 } },
  ["bincount of nothing"] = { function() return i64({ 0 }):narrow(1, 1, 0):bincount() end, {} },
  ["bincount to a length"] = { function() return i64({ 1 }):bincount { minlength = 4 } end,
    { 0, 1, 0, 0 } },
  ["bincount of weights"] = {
    function() return i64({ 1, 0, 1 }):bincount { weights = gp.tensor { 0.5, 2, 0.25 } } end,
    { 2, 0.75 } },
}

describe("methods of tensors:", function()
  for name, row in pairs(VALUES) do
    it(name .. " gives what PyTorch gives", function() assert.same(row[2], row[1]():totable()) end)
  end

  it("empty results have the right shapes", function()
    assert.same({ 0, 2 }, gp.zeros({ 3, 2 }):nonzero().shape)
    assert.same({ 1, 0 }, gp.tensor(3):nonzero().shape)
    assert.same({ 0, 0 }, gp.tensor(0):nonzero().shape)
    assert.same({ 2, 0 }, matrix():repeat_interleave(0, 2).shape)
    assert.same({ 2, 12, 5 }, gp.ones({ 2, 3, 4, 5 }):flatten(2, -2).shape)
  end)

  it("unique says where elements are and how often", function()
    local values, inverse, counts = gp.tensor({ { 3, nan }, { 1, 3 } }):unique {
      inverse = true, counts = true }
    assert.same({ 1, 3 }, values:narrow(1, 1, 2):totable())
    assert.is_true(values[3] ~= values[3])
    assert.same({ { 2, 3 }, { 1, 2 } }, inverse:totable())
    assert.same({ 1, 2, 1 }, counts:totable())
    assert.same({ 2, 1 }, select(2, i64({ 4, 9, 4 }):unique { counts = true }):totable())
  end)

  it("meshgrid makes the coordinates of a grid", function()
    local y, x = gp.meshgrid(gp.tensor { 1, 2 }, vector())
    assert.same({ { 1, 1, 1 }, { 2, 2, 2 } }, y:totable())
    assert.same({ { 1, 2, 3 }, { 1, 2, 3 } }, x:totable())
    local a, b, c = gp.meshgrid(vector(), gp.tensor { 1, 2 }, gp.ones { 4 }, { indexing = "xy" })
    for _, t in ipairs { a, b, c } do assert.same({ 2, 3, 4 }, t.shape) end
    assert.same({ 1, 2, 3 }, a[{ 2, {}, 4 }]:totable())
    assert.same({ 1, 2 }, b[{ {}, 1, 1 }]:totable())
  end)

  it("allclose compares within tolerances", function()
    local a = gp.tensor { 1, huge, -huge }
    assert.is_true(a:allclose(gp.tensor { 1 + 5e-6, huge, -huge }))
    assert.is_false(a:allclose(gp.tensor { 1.001, huge, -huge }))
    assert.is_true(a:allclose(gp.tensor { 1.001, huge, -huge }, { rtol = 0.01 }))
    assert.is_true(a:allclose(gp.tensor { 1.5, huge, -huge }, { atol = 0.5, rtol = 0 }))
    assert.is_false(a:allclose(gp.tensor { 1, -huge, huge }, { rtol = 1 }))
    assert.is_false(a:allclose(gp.tensor { 1, 1e38, -huge }))
    assert.is_false(gp.tensor({ nan }):allclose(gp.tensor { nan }))
    assert.is_true(gp.tensor({ nan }):allclose(gp.tensor { nan }, { equal_nan = true }))
    assert.is_true(i64({ 1, 2 }):allclose(i64 { 1, 2 }))
    assert.is_true(gp.zeros({ 0 }):allclose(gp.zeros { 0 }))
  end)
end)

describe("gradients of", function()
  local ONE = {
    trace = function(t) return t:trace() * t:sum() end,
    diag = function(t) return t:diag(1) * t:diag(-1) end,
    ["diag of a vector"] = function(t) return t:select(1, 2):diag(-1):matmul(t:diag():diag()[{ 1, {} }]
      :repeat_interleave(2):narrow(1, 1, 4)) end,
    roll = function(t) return t:roll({ 1, -1 }, { 1, 2 }) * t end,
    repeat_interleave = function(t) return t:repeat_interleave(3, 1) * t:repeat_interleave(3, 1) end,
    flatten = function(t) return t:t():flatten() * t:flatten() end,
    outer = function(t) return t[1]:outer(t[2]) end,
    dot = function(t) return t[1]:dot(t[2]) end,
    mv = function(t) return t:mv(t[3]) end,
    masked_select = function(t)
      return t:masked_select(gp.tensor { true, false, true }) * 2
    end,
  }
  for name, f in pairs(ONE) do
    it(name .. " agree with differences", function()
      assert.is_true(gp.gradcheck(f, { gp.randn({ 3, 3 }, { dtype = "f64", seed = 3 }) }))
    end)
  end
end)

it("shapes and products work inside of a model", function()
  local nn = gp.nn
  local Mix = nn.class "Mix"
  function Mix.forward(_, x)
    return x:roll(1, 2):flatten(2) * x:repeat_interleave(2, 2):narrow(2, 1, 7)
      + gp.ones({ 7 }):diag():mv(gp.arange(1, 7)):expand_as(x)
  end
  local pipe <close> = gp.pipeline(nn.Sequential { Mix() }, { chunks = 3 })
  local x = gp.randn { 6, 7 }
  assert.is_true(gp.equal(Mix()(x), pipe:eval():forward(x)))
end)

it("methods that promise a copy always make one, and pass gradients on", function()
  local same = {
    function(t) return t:roll(0) end, function(t) return t:roll(4) end,
    function(t) return t:roll(-4, 1) end, function(t) return t:tile(1) end,
    function(t) return t:flip {} end,
  }
  for i, method in ipairs(same) do
    local x = gp.arange(1, 4)
    method(x):add_(1)
    assert.is_true(gp.equal(gp.arange(1, 4), x), "method " .. i)
    x.requires_grad = true
    method(x):backward(gp.full({ 4 }, 3))
    assert.is_true(gp.equal(gp.full({ 4 }, 3), x.grad), "method " .. i)
  end
end)

describe("wrong arguments of", function()
  local WRONG = {
    { "dot: the operands have 2 and 1 dimensions", function() matrix():dot(vector()) end },
    { "dot: the operands have 3 and 2 elements", function() vector():dot(gp.ones { 2 }) end },
    { "outer: the right operand is 3", function() vector():outer(3) end },
    { "mv: the operands have 1 and 1 dimensions", function() vector():mv(vector()) end },
    { "trace: the tensor has 1 dimensions, expected 2", function() vector():trace() end },
    { "diag: the tensor has 3 dimensions", function() gp.ones({ 1, 1, 1 }):diag() end },
    { "diag: k is 0.5", function() matrix():diag(0.5) end },
    { "roll: there are 2 shifts and 1 dimensions", function() matrix():roll({ 1, 2 }, 1) end },
    { "roll: dim is 3, expected 1..2", function() matrix():roll(1, 3) end },
    { "repeat_interleave: there are 2 counts, expected 3",
      function() vector():repeat_interleave { 1, 2 } end },
    { "count 2 is -1", function() vector():repeat_interleave { 1, -1, 1 } end },
    { "flatten: last is dimension 1, expected at least 2", function() matrix():flatten(2, 1) end },
    { "expand_as: the argument is 3", function() matrix():expand_as(3) end },
    { "masked_select: the mask is f32", function() vector():masked_select(vector()) end },
    { "unique: ", function() vector():unique { count = true } end },
    { "bincount: an id is -2", function() i64({ 1, -2 }):bincount() end },
    { "bincount: there are 1 weights, expected 2",
      function() i64({ 1, 2 }):bincount { weights = gp.ones { 1 } } end },
    { "bincount: the tensor is f32", function() vector():bincount() end },
    { "gp.meshgrid: argument 2 is one of 2 dimensions",
      function() gp.meshgrid(vector(), matrix()) end },
    { "indexing", function() gp.meshgrid(vector(), { indexing = "yx" }) end },
    { "f32 and f64 differ", function() vector():allclose(vector():to "f64") end },
    { "rtol", function() vector():allclose(vector(), { rtol = "x" }) end },
  }
  for _, row in ipairs(WRONG) do
    it("methods are refused: " .. row[1], function() expect.fails_with(row[1], row[2]) end)
  end
end)
