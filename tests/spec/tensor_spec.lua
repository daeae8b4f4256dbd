-- tests/spec/tensor_spec.lua - the Lua tensor: fields, indexing, operators, methods, errors, memory.

local gp = require "gpipe"
local core = require "gpipe.core"

-- The error text of a call that must fail.
local function failure(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return text
end

local function fails_with(wanted, f, ...)
  local text = failure(f, ...)
  assert.truthy(text:find(wanted, 1, true), ("%q lacks %q"):format(text, wanted))
end

local function matrix() return gp.tensor { { 1, 2, 3 }, { 4, 5, 6 } } end

-- Run f on symbolic inputs of the given shapes; returns what f made as types.
local function traced(f, ...)
  local inputs = {}
  for i, shape in ipairs { ... } do inputs[i] = { shape = shape } end
  return core.trace_cost(f, inputs).outputs
end

describe("gp.tensor", function()
  it("makes f32 of numbers and nested tables", function()
    local t = matrix()
    assert.same({ 2, 3 }, t.shape)
    assert.equal("f32", t.dtype)
    assert.equal("cpu", t.device)
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, t:totable())
    assert.same({}, gp.tensor(3.5).shape)
    assert.equal(3.5, gp.tensor(3.5):item())
    assert.same({ 0 }, gp.tensor({}).shape)
  end)

  it("gives back integers for integer dtypes and booleans for bool", function()
    local i = gp.tensor({ 1, 2.0, 3 }, { dtype = "i64" })
    assert.equal("integer", math.type(i[2]))
    assert.equal("float", math.type(gp.tensor { 1, 2 }[1]))
    assert.same({ true, false }, gp.tensor({ true, false }):totable())
    assert.equal(math.maxinteger, gp.tensor({ math.maxinteger }, { dtype = "i64" })[1])
  end)

  it("takes every dtype, and converts a tensor", function()
    for _, dtype in ipairs { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" } do
      assert.equal(dtype, gp.tensor({ 1, 0 }, { dtype = dtype }).dtype)
    end
    assert.equal("f64", gp.tensor(matrix(), { dtype = "f64" }).dtype)
  end)

  local bad = {
    { { { 1, 2 }, { 3 } }, "gp.tensor: element [2] has 1 values, expected 2" },
    { { 1, { 2 } }, "gp.tensor: element [2] is a table, expected a number (the table is ragged)" },
    { { { 1 }, 2 }, "gp.tensor: element [2] is 2, expected a table of 1 values" },
    { { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, "x" } } },
      'gp.tensor: element [2][2][2] is "x" (string), expected a number' },
    { { 1, nil, 3 }, "gp.tensor: element [2] is nil" },
    { "abc", 'gp.tensor: the value is "abc" (string), expected a number' },
  }
  for _, case in ipairs(bad) do
    it("says: " .. case[2], function() fails_with(case[2], gp.tensor, case[1]) end)
  end

  it("names a value that the dtype cannot hold", function()
    local wanted = "element [2] is 1.5 (float), expected an integer that i64 can hold"
    fails_with(wanted, gp.tensor, { 1, 1.5 }, { dtype = "i64" })
    fails_with("element [1] is 256, expected an integer that u8 can hold", gp.tensor, { 256 },
      { dtype = "u8" })
  end)

  it("refuses a table that contains itself", function()
    local loop = {}
    loop[1] = loop
    fails_with("nested deeper than 8 levels", gp.tensor, loop)
  end)
end)

describe("constructors", function()
  it("fill", function()
    assert.same({ { 0, 0 }, { 0, 0 } }, gp.zeros({ 2, 2 }):totable())
    assert.same({ 1, 1, 1 }, gp.ones(3):totable())
    assert.same({ 7, 7 }, gp.full({ 2 }, 7, { dtype = "i32" }):totable())
    assert.equal(-1, gp.full({}, -1):item())
  end)

  it("arange includes its last", function()
    assert.same({ 1, 2, 3, 4 }, gp.arange(1, 4):totable())
    assert.same({ 0, 0.25, 0.5, 0.75, 1 }, gp.arange(0, 1, 0.25):totable())
    assert.equal(11, #gp.arange(0, 1, 0.1))
    assert.same({ 3, 2, 1 }, gp.arange(3, 1, -1, { dtype = "i64" }):totable())
    assert.same({ 0 }, gp.arange(2, 1).shape)
    fails_with("a step that is not 0", gp.arange, 1, 2, 0)
  end)

  it("draw from gp.seed's streams, or from a seed of their own", function()
    gp.seed(5)
    local a, b = gp.rand { 10 }, gp.rand { 10 }
    gp.seed(5)
    assert.is_true(gp.equal(a, gp.rand { 10 }))
    assert.is_false(gp.equal(a, b))
    assert.is_true(gp.equal(gp.randn({ 4 }, { seed = 3 }), gp.randn({ 4 }, { seed = 3 })))
    assert.equal("bf16", gp.rand({ 2 }, { dtype = "bf16" }).dtype)
    fails_with("dtype is i64, expected f32, f64, bf16 or f16", gp.rand, { 2 }, { dtype = "i64" })
  end)

  it("refuse bad shapes and options", function()
    fails_with("gp.zeros: shape is -1, expected an integer >= 0", gp.zeros, { 2, -1 })
    fails_with("gp.zeros: shape is 2.5 (float)", gp.zeros, { 2.5 })
    fails_with("gp.ones: shape is nil", gp.ones)
    fails_with("unknown option 'dtipe' (did you mean 'dtype'?)", gp.zeros, { 1 }, { dtipe = "f64" })
    fails_with("(did you mean 'f32'?)", gp.zeros, { 1 }, { dtype = "f3" })
    fails_with("has 9 dimensions, expected at most 8", gp.zeros, { 1, 1, 1, 1, 1, 1, 1, 1, 1 })
    failure(gp.zeros, { 1 << 40, 1 << 40 })
  end)
end)

describe("indexing", function()
  it("counts from 1, and from the end with negative positions", function()
    local t = matrix()
    assert.equal(2, #t)
    assert.equal(6, t[2][3])
    assert.equal(6, t[-1][-1])
    assert.same({ 3, 6 }, t:select(2, 3):totable())
    assert.same({ 3, 6 }, t:select(-1, -1):totable())
    fails_with("t[i]: i is 3, expected 1..2 or -2..-1", function() return t[3] end)
    fails_with("t[i]: i is 0, expected 1..2", function() return t[0] end)
    fails_with("t[i]: i is 1.5 (float)", function() return t[1.5] end)
    fails_with("the tensor is a scalar", function() return gp.tensor(1)[1] end)
  end)

  it("gives views: writing to one writes to the tensor", function()
    local t = matrix()
    t[1] = 0
    t[2][1] = 9
    t:select(2, 3):copy_(gp.tensor { 7, 8 })
    t:narrow(2, 2, 1):copy_(-1)
    assert.same({ { 0, -1, 7 }, { 9, -1, 8 } }, t:totable())
    t[1] = { 1, 2, 3 }
    t[2] = gp.ones { 3 }
    assert.same({ { 1, 2, 3 }, { 1, 1, 1 } }, t:totable())
    t:transpose(1, 2)[1] = { 5, 6 }
    assert.same({ { 5, 2, 3 }, { 6, 1, 1 } }, t:totable())
  end)

  it("copy_ converts, broadcasts and returns the tensor", function()
    local t = gp.zeros({ 2, 2 }, { dtype = "i64" })
    assert.equal(t, t:copy_(gp.tensor { 1.9, -1.9 }))
    assert.same({ { 1, -1 }, { 1, -1 } }, t:totable())
    failure(function() t:copy_(gp.ones { 3 }) end)
  end)

  it("suggests the method that was meant", function()
    local t = matrix()
    fails_with("there is no field or method 'summ' (did you mean 'sum'?)",
      function() return t:summ() end)
    fails_with("(did you mean 'shape'?)", function() return t.shap end)
    fails_with("fields cannot be assigned", function() t.shape = { 1 } end)
    assert.is_nil(t.__index)
  end)
end)

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

  it("never cast silently, and name to()", function()
    local i = gp.tensor({ 1, 2 }, { dtype = "i64" })
    fails_with("to(", function() return i + gp.ones { 2 } end)
    fails_with("to(", function() return gp.ones({ 2 }, { dtype = "f64" }) * gp.ones { 2 } end)
    fails_with('mul: the number is 0.5 (float), expected an integer as the tensor is i64 (convert it '
      .. 'with to("f32"))', function() return i * 0.5 end)
    assert.same({ false, true }, i:gt(1):totable())
  end)

  it("refuse what is neither tensor nor number", function()
    fails_with("add: the right operand is a table, expected a tensor or a number",
      function() return gp.ones { 2 } + {} end)
    fails_with('mul: the left operand is "2" (string)', function() return "2" * gp.ones { 2 } end)
    fails_with("2x3", function() return matrix() + gp.ones { 4 } end)
  end)

  it("raise at the line of the user", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local text = failure(function() return matrix() + gp.ones { 4 } end)
    assert.truthy(text:find("tensor_spec.lua:" .. line .. ": add", 1, true), text)
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

describe("printing", function()
  it("shows values and what the tensor is", function()
    assert.equal(" 1  2  3\n 4  5  6\n[f32 2x3]", tostring(matrix()))
    assert.equal("3.2500 [f32 scalar]", tostring(gp.tensor(3.25)))
    assert.equal("[f32 0x3]", tostring(gp.zeros { 0, 3 }))
    assert.equal("  true  false\n[bool 2]", tostring(gp.tensor { true, false }))
  end)

  it("prints nan as nan and infinities as inf", function()
    assert.equal(" nan\n[f32 1]", tostring(gp.tensor { 0 / 0 }))
    assert.equal("  inf  -inf\n[f32 2]", tostring(gp.tensor { 1 / 0, -1 / 0 }))
  end)

  it("is never longer than a screen", function()
    for _, shape in ipairs { { 100000 }, { 1000, 1000 }, { 3, 2, 4 }, { 40, 50, 60 }, { 100, 1, 1 },
      { 1, 1, 5000 }, { 2, 2, 2, 2, 2, 2 }, { 25, 3 } } do
      local text = tostring(gp.randn(shape, { seed = 1 }))
      local _, breaks = text:gsub("\n", "\n")
      assert.is_true(breaks < 24, table.concat(shape, "x"))
      for line in text:gmatch("[^\n]+") do assert.is_true(#line <= 80) end
    end
  end)
end)

describe("tracing", function()
  it("types every method without values", function()
    local types = traced(function(x, y)
      assert.equal("eval", core.tracing())
      assert.same({ 2, 3 }, x.shape)
      assert.equal(2, #x)
      return x + 1, 2 * x, x:matmul(y), x:sum(1), x:mean(), x:softmax(1), x:transpose():reshape(-1),
        x:select(2, 1), x[1], x:max(2), x:to("f64"), gp.concat { x, x }, gp.where(x:gt(0), x, 0),
        x:argmax()
    end, { 2, 3 }, { 3, 4 })
    local shapes = { {2, 3}, {2, 3}, {2, 4}, {3}, {}, {2, 3}, {6}, {2}, {3}, {2}, {2, 3}, {4, 3},
      {2, 3}, {} }
    for i, shape in ipairs(shapes) do assert.same(shape, types[i].shape) end
    assert.is_nil(core.tracing())
  end)

  it("refuses what needs a value", function()
    local wanted = "data-dependent control flow cannot be pipelined"
    for _, use in ipairs {
      function(x) return x:item() end,
      function(x) return x:totable() end,
      function(x) return x[1] end,
      function(x) return gp.equal(x, x) end,
    } do
      fails_with(wanted, traced, use, { 1 })
    end
    fails_with("only an nn.Buffer can be written", traced, function(x) x:copy_(1) end, { 1 })
    fails_with("expected copy_ on an nn.Buffer", traced, function(x) x[1] = 1 end, { 2 })
    assert.is_nil(core.tracing())
  end)

  it("prints a value as its type", function()
    traced(function(x)
      assert.equal("[f32 2x3, traced: the values are not known yet]", tostring(x))
      return x
    end, { 2, 3 })
  end)

  it("refuses values of a trace that has ended", function()
    local kept
    traced(function(x) kept = x return x end, { 2 })
    fails_with("a value of a trace that has ended was kept", function() return kept + 1 end)
    fails_with("a value of a trace", traced, function(x) return x + kept end, { 2 })
  end)

  it("names the open module, also after an error", function()
    local function call(x)
      local _outer <close> = core.enter("3", "Sequential")
      local _inner <close> = core.enter("gate", "Gate 4")
      assert.equal("3.gate (Gate 4)", core.label())
      return x:item()
    end
    fails_with("3.gate (Gate 4): item: the value is not known", traced, call, { 1 })
    assert.equal("", core.label())
    fails_with("3.gate (Gate 4): item: the tensor has 2 elements", call, gp.ones { 2 })
    assert.equal("", core.label())
  end)

  it("records parameters, and writes to buffers only", function()
    local spec = { shape = { 3 }, kind = "constant", a = 2, seed = 1, number = 0 }
    local weight = core.parameter(spec)
    spec.buffer = true
    local buffer = core.parameter(spec)
    traced(function(x)
      assert.truthy(tostring(weight + 1):find("traced", 1, true))
      assert.equal(buffer, buffer:copy_(x:sum(1)))
      assert.has_error(function() weight:copy_(x:sum(1)) end)
      return x * weight
    end, { 2, 3 })
    assert.same({ 2, 2, 2 }, buffer:totable())
  end)
end)

describe("parameters", function()
  local function parameter(extra)
    local spec = { shape = { 2, 2 }, kind = "normal", a = 0, b = 1, seed = 4, number = 2 }
    for k, v in pairs(extra or {}) do spec[k] = v end
    return core.parameter(spec)
  end

  it("are functions of seed and number", function()
    assert.is_true(gp.equal(parameter(), parameter()))
    assert.is_false(gp.equal(parameter(), parameter { number = 3 }))
  end)

  it("act as tensors and share memory with their value", function()
    local p = parameter { kind = "constant", a = 3 }
    assert.same({ { 6, 6 }, { 6, 6 } }, (p * 2):totable())
    p:value()[1] = 0
    p[2][1] = 1
    assert.same({ { 0, 0 }, { 1, 3 } }, p:totable())
    assert.is_nil(p:grad())
    assert.truthy(tostring(p):find("[f32 2x2 parameter]", 1, true))
  end)

  it("freeze", function()
    local p = parameter { frozen = true }
    assert.is_true(p:is_frozen())
    assert.equal(p, p:set_frozen(false))
    assert.is_false(p:is_frozen())
    fails_with("no parameter", gp.ones({ 1 }).is_frozen, gp.ones { 1 })
  end)
end)

describe("memory", function()
  it("is given back by free, close and the collector", function()
    collectgarbage()
    local before = gp.memory().cpu.live
    local t = gp.zeros { 1000 }
    assert.is_true(gp.memory().cpu.live >= before + 4000)
    t:free()
    t:free()
    do
      local _u <close> = gp.zeros { 1000 }
    end
    local _garbage = gp.zeros { 1000 }
    _garbage = nil
    collectgarbage()
    assert.equal(before, gp.memory().cpu.live)
    fails_with("the tensor was freed", function() return t.shape end)
    fails_with("the tensor was freed", t.sum, t)
    assert.equal("[freed tensor]", tostring(t))
  end)

  it("outlives its tensor through views", function()
    local view = matrix()[2]
    collectgarbage()
    assert.same({ 4, 5, 6 }, view:totable())
  end)

  it("is collected in time, in both modes of the collector", function()
    for _, mode in ipairs { "generational", "incremental" } do
      collectgarbage(mode)
      for _ = 1, 200 do gp.zeros { 4 << 20 } end -- 200 times 16 MB
      assert.is_true(gp.memory().cpu.live < 600 << 20, mode)
    end
  end)

  it("that cannot be had gives an error and loses nothing", function()
    local function work()
      local t = gp.tensor { { 1, 2 }, { 3, 4 } }
      local u = gp.concat { t:softmax(1), t:matmul(t) + 1 }
      return traced(function(x) return (x + u):sum() end, { 4, 2 })
    end
    work()
    collectgarbage()
    local before, n, done = gp.memory().cpu.live, 0, false
    while not done and n < 1000 do
      n = n + 1
      core.memory_fail_at(n)
      done = pcall(work) and n > 100
      core.memory_fail_at(0)
      assert.equal("", core.label())
    end
    collectgarbage()
    assert.equal(before, gp.memory().cpu.live)
  end)
end)

describe("the module", function()
  it("is the same table for every require", function()
    local loaded = package.loaded["gpipe.core"]
    package.loaded["gpipe.core"] = nil
    assert.equal(core, require "gpipe.core")
    package.loaded["gpipe.core"] = loaded
    assert.equal("0.1.0", gp.version)
    assert.equal("gpipe.Tensor", getmetatable(matrix()))
  end)

  it("lists devices, and what is absent with why = true", function()
    local devices = gp.devices()
    assert.is_true(#devices >= 1)
    assert.equal("cpu:0", devices[1].name)
    local last = gp.devices({ why = true })[#devices + 1]
    assert.is_false(last.available)
    assert.equal("this build has no CUDA part", last.why)
  end)

  it("suggests names of gp", function()
    fails_with("gp: there is no 'tenser' (did you mean 'tensor'?)", function() return gp.tenser end)
  end)
end)
