-- tests/spec/tensor/tensor_spec.lua - the Lua tensor: making, indexing, printing.

local gp = require "gpipe"
local core = require "gpipe.core"
local expect = require "tests.support.expect"
local fails_with, failure = expect.fails_with, expect.failure

local function matrix() return gp.tensor { { 1, 2, 3 }, { 4, 5, 6 } } end

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

  it("can be indexed only by positions and names", function()
    for _, key in ipairs { true, print, io.stdout } do
      fails_with("t[i]: i is ", function() return matrix()[key] end)
    end
    fails_with("t[i]: i is true, expected a position", function() return matrix()[true] end)
  end)

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
  it("fill tensors with values", function()
    assert.same({ { 0, 0 }, { 0, 0 } }, gp.zeros({ 2, 2 }):totable())
    assert.same({ 1, 1, 1 }, gp.ones(3):totable())
    assert.same({ 7, 7 }, gp.full({ 2 }, 7, { dtype = "i32" }):totable())
    assert.equal(-1, gp.full({}, -1):item())
  end)

  it("take sizes one by one, and options after them", function()
    for _, make in ipairs { gp.zeros, gp.ones, gp.rand, gp.randn } do
      assert.same({ 2, 3 }, make(2, 3).shape)
      assert.same({ 3 }, make(3, { dtype = "f64" }).shape)
      local t = make(2, 3, 4, { dtype = "f64" })
      assert.same({ 2, 3, 4 }, t.shape)
      assert.equal("f64", t.dtype)
    end
    assert.is_true(gp.rand({ 2, 3 }, { seed = 1 }):equal(gp.rand(2, 3, { seed = 1 })))
    fails_with('gp.zeros: shape is "x" (string)', gp.zeros, 2, 3, "x")
    fails_with("(did you mean 'dtype'?)", gp.ones, 2, 3, { dtpe = "f32" })
  end)

  it("arange of one number counts from 1", function()
    assert.same({ 1, 2, 3 }, gp.arange(3):totable())
    assert.equal("i64", gp.arange(3, { dtype = "i64" }).dtype)
    assert.same({ 0 }, gp.arange(0).shape)
    fails_with("gp.arange: first is nil", gp.arange)
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

  it("ends with ipairs, for views and for numbers", function()
    local rows, numbers = {}, {}
    for i, row in ipairs(matrix()) do rows[i] = row:totable() end
    for i, number in ipairs(gp.tensor { 7, 8 }) do numbers[i] = number end
    for _ in ipairs(gp.zeros { 0 }) do error("there is no element") end
    assert.same(matrix():totable(), rows)
    assert.same({ 7, 8 }, numbers)
    fails_with("3", function() return matrix()[3] end)
    fails_with("3", function() return (function(t) return t[3] end)(matrix()) end)
  end)

  it("reports an argument that was left out as nil", function()
    local t = matrix()
    for _, method in ipairs { t.permute, t.expand, t.reshape, t.view, t.to } do
      assert.is_false(pcall(method, t))
    end
    fails_with("is nil", t.size, t)
    fails_with("is nil", t.select, t)
    fails_with("is nil", t.narrow, t)
    fails_with("is nil", t.narrow, t, 1)
    fails_with("is nil", t.narrow, t, 1, 1)
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

  it("never takes more than a screen", function()
    for _, shape in ipairs { { 100000 }, { 1000, 1000 }, { 3, 2, 4 }, { 40, 50, 60 }, { 100, 1, 1 },
      { 1, 1, 5000 }, { 2, 2, 2, 2, 2, 2 }, { 25, 3 } } do
      local text = tostring(gp.randn(shape, { seed = 1 }))
      local _, breaks = text:gsub("\n", "\n")
      assert.is_true(breaks < 24, table.concat(shape, "x"))
      for line in text:gmatch("[^\n]+") do assert.is_true(#line <= 80) end
    end
  end)
end)

describe("rows without elements", function()
  local rows = 1 << 40
  local x = gp.zeros { rows, 0 }
  local calls = {
    relu = function() return x:relu() end,
    ["a sum with itself"] = function() return x + x end,
    comparison = function() return x:eq(0) end,
    softmax = function() return x:softmax() end,
    clone = function() return x:clone() end,
    conversion = function() return x:to "f64" end,
    concat = function() return gp.concat({ x, x }, 2) end,
    where = function() return gp.where(x:eq(0), x, x) end,
  }
  for name, call in pairs(calls) do
    it("take no time, however many: " .. name, function()
      assert.same({ rows, 0 }, { table.unpack(call().shape) })
    end)
  end
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

  it("lists devices, and with why = true the absent ones", function()
    local devices = gp.devices()
    assert.is_true(#devices >= 1)
    assert.equal("cpu:0", devices[1].name)
    local last = gp.devices({ why = true })[#devices + 1]
    if devices[#devices].kind == "cuda" then return pending "there are CUDA devices" end
    assert.is_false(last.available)
    assert.equal("string", type(last.why))
  end)

  it("suggests names of gp", function()
    fails_with("gp: there is no 'tenser' (did you mean 'tensor'?)", function() return gp.tenser end)
  end)
end)
