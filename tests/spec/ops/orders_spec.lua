-- tests/spec/ops/orders_spec.lua - elementwise ops whose operands lie in different orders give the
-- bits that they give on operands in one order, and so do copies from one order to another.
--
-- A stage that works channels-last reads what crossed the cut row-major in such a way. The walk
-- turns these operands tile by tile, so sizes around those of tiles and of squares are tried.

local gp = require "gpipe"
local core = require "gpipe.core"

-- N x H x W x C, with less and more than a tile of 64 x 64, and whole and broken squares of 4 and 8.
local SHAPES = {
  { 1, 1, 1, 1 }, { 2, 3, 5, 7 }, { 1, 8, 8, 64 }, { 3, 9, 7, 65 }, { 2, 14, 14, 100 },
  { 1, 17, 19, 131 }, { 2, 64, 1, 64 }, { 2, 1, 63, 3 }, { 1, 33, 31, 128 },
}
local TO_LAST, SWAPPED = { 1, 3, 4, 2 }, { 1, 3, 2, 4 } -- of N x C x H x W, and of two dimensions

gp.seed(7)

-- A value of N x H x W x C that lies as N x C x H x W, or with H and W in the other order.
local function crossed(shape, dtype, order)
  local n, h, w, c = table.unpack(shape)
  local lies = order == TO_LAST and { n, c, h, w } or { n, w, h, c }
  local drawn = gp.randn(lies) * 40
  return drawn:to(dtype):permute(table.unpack(order))
end

local function same(a, b, what)
  assert.is_true(gp.equal(a, b), what)
end

local UNARY = { f32 = { "relu", "gelu", "tanh", "neg" }, f64 = { "relu", "gelu", "exp" },
  bf16 = { "relu", "gelu" }, f16 = { "relu", "sigmoid" }, i32 = { "neg", "abs" },
  i64 = { "neg", "abs" } }

describe("an elementwise op", function()
  for dtype, unary in pairs(UNARY) do
    it("gives the same bits on operands in two orders: " .. dtype, function()
      for _, shape in ipairs(SHAPES) do
        for _, order in ipairs { TO_LAST, SWAPPED } do
          local what = ("%s, %s"):format(dtype, table.concat(shape, "x"))
          local a, b = crossed(shape, dtype, order), crossed(shape, dtype, TO_LAST)
          local plain_a, plain_b = a:contiguous(), b:contiguous()
          for _, name in ipairs(unary) do
            same(a[name](a), plain_a[name](plain_a), name .. ": " .. what)
          end
          for name, apply in pairs {
            add = function(x, y) return x + y end, mul = function(x, y) return x * y end,
            sub = function(x, y) return x - y end, less = function(x, y) return x:lt(y) end,
            where = function(x, y) return gp.where(x:lt(y), x, y) end,
          } do
            local wanted = apply(plain_a, plain_b)
            same(apply(a, plain_b), wanted, name .. ", the first one turned: " .. what)
            same(apply(plain_a, b), wanted, name .. ", the second one turned: " .. what)
            same(apply(a, b), wanted, name .. ", both turned: " .. what)
          end
        end
      end
    end)
  end

  it("reads a gradient and a value in two orders", function()
    for _, shape in ipairs(SHAPES) do
      local x, dy = crossed(shape, "f32", TO_LAST), crossed(shape, "f32", TO_LAST)
      for _, name in ipairs { "relu_dx", "tanh_dx", "gelu_dx" } do
        local wanted = core[name](dy:contiguous(), x:contiguous())
        same(core[name](dy, x:contiguous()), wanted, name)
        same(core[name](dy:contiguous(), x), wanted, name)
      end
    end
  end)

  it("draws by the element's index, however its operand lies", function()
    local x = crossed({ 2, 14, 14, 100 }, "f32", TO_LAST)
    local function dropped(value)
      gp.seed(3)
      return gp.nn.Dropout(0.5)(value)
    end
    local made = dropped(x)
    same(made, dropped(x:contiguous()), "dropout")
    assert.is_false(gp.equal(made, x))
  end)
end)

describe("a copy to another order", function()
  for _, dtype in ipairs { "f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool" } do
    it("moves every element: " .. dtype, function()
      for _, shape in ipairs(SHAPES) do
        local n, h, w, c = table.unpack(shape)
        local base = (gp.arange(n * c * h * w) % 251):to(dtype):reshape(n, c, h, w)
        local moved = base:permute(1, 3, 4, 2):contiguous()
        same(moved:permute(1, 4, 2, 3):contiguous(), base, dtype)
        assert.equal(base:select(1, n):select(1, c):select(1, h):select(1, w):item(),
          moved:select(1, n):select(1, h):select(1, w):select(1, c):item())
      end
    end)
  end
end)
