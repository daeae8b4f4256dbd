-- tests/spec/tensor/op_spec.lua - an op called by its row: core.<op>, which any script can require.
--
-- Methods are friendlier and check more before they call. This spec reads attributes of each kind;
-- any other argument is an error that names the op, the attribute and the value.

local gp = require "gpipe"
local core = require "gpipe.core"
local fails_with = require("tests.support.expect").fails_with

local x = gp.arange(1, 24):reshape { 2, 3, 4 }

describe("an op called by its row", function()
  it("reads attributes of every kind, by position and by name", function()
    assert.equal("f64", core.cast(x, "f64").dtype)
    assert.same({ 4, 2, 3 }, core.permute(x, { order = { 2, 0, 1 } }).shape)
    assert.same({ 6, 4 }, core.reshape(x, { to = { 6, 4 } }).shape)
    assert.same({ 2, 3 }, core.argmax(x, -1).shape)
    assert.same({ 2, 3, 1 }, core.sum(x, { dims = 3, keep = true }).shape)
    assert.same({ 2, 3 }, core.sum(x, { dims = { 3 } }).shape)
    assert.same({ 2, 2, 4 }, core.narrow(x, { dim = 2, start = 1, length = 2 }).shape)
    assert.same({ 2, 2 }, core.rand({ dtype = "f64", shape = { 2, 2 } }).shape)
    assert.is_true(gp.equal(x:gelu "tanh", core.gelu(x, { mode = "tanh" })))
  end)

  local wrong = {
    { "permute: order is \"a\" (string), expected a list of integers",
      function() core.permute(x, "a") end },
    { "permute: order is \"b\" (string)", function() core.permute(x, { order = { 0, "b", 2 } }) end },
    { "permute: order has 9 numbers, expected at most 8",
      function() core.permute(x, { order = { 0, 1, 2, 3, 4, 5, 6, 7, 8 } }) end },
    { "cast: dtype is \"f65\" (string), expected f32", function() core.cast(x, "f65") end },
    { "cast: dtype is 7", function() core.cast(x, 7) end },
    { "argmax: dim is 4, expected 1..3", function() core.argmax(x, 4) end },
    { "narrow: start is \"one\" (string)", function() core.narrow(x, { start = "one" }) end },
    { "narrow: start is 1.5", function() core.narrow(x, { start = 1.5 }) end },
    { "softplus: beta is a table, expected a number", function() core.softplus(x, { beta = {} }) end },
    { "softplus: there is no option bta", function() core.softplus(x, { bta = 2 }) end },
    { "linear: there is no option bais, expected one of: bias",
      function() core.linear(x, gp.ones { 5, 4 }, { bais = gp.ones { 5 } }) end },
    { "softplus: there is no option 1", function() core.softplus(x, { 2 }) end },
    { "gelu: mode is \"sin\" (string), expected \"erf\" or \"tanh\"",
      function() core.gelu(x, "sin") end },
    { "gelu: input 1 is \"x\" (string), expected a tensor", function() core.gelu "x" end },
    { "linear: weight is nil, expected a tensor", function() core.linear(x) end },
    { "linear: weight is 3, expected a tensor", function() core.linear(x, 3) end },
    { "rand: dtype is i32, expected f32 or f64",
      function() core.rand { dtype = "i32", shape = { 2 } } end },
  }
  for _, case in ipairs(wrong) do
    it("says: " .. case[1], function() fails_with(case[1], case[2]) end)
  end
end)

describe("any op with any attributes", function()
  -- Numbers at the limits of attributes, beside a few that fit.
  local INTEGERS = { 0, 1, 2, 3, -1, -7, 2 ^ 20 // 1, math.maxinteger, math.mininteger }
  local REALS = { 0.0, 1.0, -0.5, 1e300, -1e300, 1e-300, 0 / 0, 1 / 0, -1 / 0 }
  local DTYPES = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }

  local state = 1
  local function below(n) -- a generator of our own gives the same cases on every machine
    state = (state * 6364136223846793005 + 1442695040888963407)
    return (state >> 33) % n
  end
  local function one_of(list) return list[below(#list) + 1] end

  local function some(make, most)
    local list = {}
    for i = 1, below(most + 1) do list[i] = make() end
    return list
  end
  local function size() return below(4) end

  local VALUES = {
    int = function() return one_of(INTEGERS) end,
    flag = function() return below(2) == 1 end,
    real = function() return one_of(REALS) end,
    dtype = function() return one_of(DTYPES) end,
    dims = function() return some(function() return one_of(INTEGERS) end, 4) end,
    list = function() return some(function() return below(5) - 1 end, 9) end,
    shape = function() return some(size, 9) end,
    choice = function(attribute)
      local words = {}
      for word in (attribute.names or ""):gmatch "%S+" do words[#words + 1] = word end
      return one_of(words)
    end,
  }
  VALUES.maybe, VALUES.dim = VALUES.int, VALUES.int
  local DTYPE_OF = { bool = "bool", ids = "i64", mask = "bool", count = "i64" }

  local function call(row)
    local arguments, options, shape = { n = 0 }, {}, some(size, 4)
    for i, operand in ipairs(row.operands) do
      arguments.n = i
      if operand.presence == "required" or below(2) == 0 then
        local dtype = below(6) == 0 and one_of(DTYPES) or DTYPE_OF[operand.kind] or "f32"
        arguments[i] = gp.zeros(below(3) > 0 and shape or some(size, 4), { dtype = dtype })
      end
    end
    for _, attribute in ipairs(row.attributes) do
      if below(4) > 0 then options[attribute.name] = VALUES[attribute.kind](attribute) end
    end
    -- A tensor may be large, but not so large that the test takes too long.
    if row.name == "pad" then options.full = 5 end
    arguments[arguments.n + 1] = options
    return pcall(core[row.name], table.unpack(arguments, 1, arguments.n + 1))
  end

  it("gives a result or an error with the op's name", function()
    local good, bad = 0, 0
    for _, row in ipairs(core.contracts()) do
      for _ = 1, 12 do
        local ok, text = call(row)
        good, bad = good + (ok and 1 or 0), bad + (ok and 0 or 1)
        -- An error about values names their place.
        local said = ok or text:find(row.name .. ":", 1, true) or text:find(" is outside ", 1, true)
        assert(said, row.name .. ": " .. tostring(text))
      end
    end
    assert(good > 100 and bad > 100, good .. " calls worked, " .. bad .. " did not")
  end)
end)
