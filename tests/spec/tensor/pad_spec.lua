-- tests/spec/tensor/pad_spec.lua - t:pad, compared with positions worked out by hand.
local gp = require "gpipe"
local fails_with = require "tests.support.expect".fails_with

local line = gp.tensor { 1, 2, 3 }

describe("pad", function()
  local CASES = {
    { "zeros, unless said", { 2, 1 }, nil, nil, { 0, 0, 1, 2, 3, 0 } },
    { "a value", { 1, 2 }, "constant", -7.5, { -7.5, 1, 2, 3, -7.5, -7.5 } },
    { "the elements beside the border", { 2, 2 }, "reflect", nil, { 3, 2, 1, 2, 3, 2, 1 } },
    { "the border", { 2, 3 }, "replicate", nil, { 1, 1, 1, 2, 3, 3, 3, 3 } },
    { "the other side", { 3, 1 }, "circular", nil, { 1, 2, 3, 1, 2, 3, 1 } },
    { "less", { -1, 0 }, nil, nil, { 2, 3 } },
    { "less and more", { -2, 2 }, "replicate", nil, { 3, 3, 3 } },
    { "nothing", { 0, 0 }, "reflect", nil, { 1, 2, 3 } },
  }
  for _, case in ipairs(CASES) do
    it("adds " .. case[1], function()
      assert.same(case[5], line:pad(case[2], case[3], case[4]):totable())
    end)
  end

  it("takes the last dimension first", function()
    local y = gp.ones({ 2, 3, 4 }):pad { 1, 0, 2, 3 }
    assert.same({ 2, 8, 5 }, y.shape)
    assert.equal(24, y:sum():item())
    assert.same({ 0, 1 }, { y[1][2][3], y[1][3][2] })
  end)

  it("keeps dtypes, and works with gradients and in layers", function()
    for _, dtype in ipairs { "f64", "i64", "i32", "u8" } do
      assert.equal(dtype, line:to(dtype):pad({ 1, 1 }, "constant", 2).dtype)
    end
    for _, mode in ipairs { "constant", "reflect", "replicate", "circular" } do
      local function padded(x) return x:pad({ 1, 2, -1, 2 }, mode, 3) * 2 end
      local x = gp.randn({ 4, 3 }, { dtype = "f64", seed = 1 })
      assert.is_true(gp.gradcheck(padded, { x }))
      local compiled <close> = gp.compile(padded, x)
      assert.is_true(gp.equal(padded(x), compiled(x)))
    end
  end)

  it("refuses wrong arguments", function()
    local wanted = "expected pairs of integers {before, behind}, the last dimension first"
    for _, pads in ipairs { 3, {}, { 1 }, { 1, 2, 3, 4 }, { 1.5, 1 }, { "a", 1 } } do
      fails_with(wanted, line.pad, line, pads)
    end
    fails_with("pad: mode is \"mirror\" (string), expected", line.pad, line, { 1, 1 }, "mirror")
    fails_with("pad: value is \"x\" (string), expected a number", line.pad, line, { 1, 1 },
      "constant", "x")
    fails_with("pad: 3 in mode reflect, expected at most 2: dimension 1 has size 3", line.pad, line,
      { 0, 3 }, "reflect")
    fails_with("pad: 4 in mode circular, expected at most 3", line.pad, line, { 4, 0 }, "circular")
    fails_with("pad: dimension 1 has size 3, 2 and 2 cannot be taken away", line.pad, line,
      { -2, -2 })
  end)
end)
