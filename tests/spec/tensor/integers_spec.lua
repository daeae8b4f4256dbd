-- tests/spec/tensor/integers_spec.lua - arithmetic of positions and ids: + - * and unary minus on
-- integers.
local gp = require "gpipe"
local nn = gp.nn

local function ints(values, dtype) return gp.tensor(values, { dtype = dtype or "i64" }) end

describe("integer tensors", function()
  for _, dtype in ipairs { "i64", "i32" } do
    it("add, subtract, multiply and negate in " .. dtype, function()
      local a, b = ints({ { 1, -2, 3 }, { 40, 50, -60 } }, dtype), ints({ 7, 8, -9 }, dtype)
      assert.same({ { 8, 6, -6 }, { 47, 58, -69 } }, (a + b):totable())
      assert.same({ { -6, -10, 12 }, { 33, 42, -51 } }, (a - b):totable())
      assert.same({ { 7, -16, -27 }, { 280, 400, 540 } }, (a * b):totable())
      assert.same({ { -1, 2, -3 }, { -40, -50, 60 } }, (-a):totable())
      assert.equal(dtype, (a + b).dtype)
    end)

    it("take whole numbers on either side in " .. dtype, function()
      local a = ints({ 1, 2, 3 }, dtype)
      assert.same({ 0, 1, 2 }, (a - 1):totable())
      assert.same({ 9, 8, 7 }, (10 - a):totable())
      assert.same({ 2, 4, 6 }, (2 * a):totable())
      assert.equal("integer", math.type((a * 2)[1]))
    end)
  end

  it("keep 64 bits, and wrap around beyond them", function()
    local large = ints { math.maxinteger - 1 }
    assert.equal(math.maxinteger, (large + 1)[1])
    assert.equal(math.mininteger, (large + 2)[1])
    assert.equal(math.mininteger, (-ints { math.mininteger })[1])
  end)

  it("turn the positions of argmax into class ids", function()
    local scores = gp.tensor { { 0, 5, 1 }, { 9, 0, 0 } }
    assert.same({ 1, 0 }, (scores:argmax(2) - 1):totable())
  end)

  it("refuse fractions, division and other dtypes", function()
    local a = ints { 1, 2 }
    assert.error_matches(function() return a + 0.5 end, "0%.5")
    assert.error_matches(function() return a / a end, "div: input is i64, expected f32 or f64")
    assert.error_matches(function() return a + gp.ones { 2 } end, "i64 and f32 differ")
    assert.error_matches(function() return a + ints({ 1, 2 }, "u8") end, "i64 and u8 differ")
  end)

  it("compute in forward too", function()
    local Next = nn.class "Next"
    function Next.forward(_, ids) return ids * 2 - 1 end
    local model = nn.Sequential { Next(), nn.Embedding(12, 3) }
    local ids = ints { { 1, 2, 3 }, { 4, 5, 6 } }
    local eager = model(ids)
    local pipe <close> = gp.pipeline(model, { balance = { 1, 1 }, chunks = 2 })
    assert.is_true(gp.equal(eager, pipe:eval():forward(ids)))
  end)
end)
