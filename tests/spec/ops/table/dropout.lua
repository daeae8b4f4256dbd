-- tests/spec/ops/table/dropout.lua - random ops are tested by the mask that a pass has shown.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"

local nn = gp.nn
local x = inputs.float

-- ---- training a layer of random elements -----------------------------------------------------

local Scaled = nn.class("Scaled")
function Scaled:init(shape, dtype, p)
  self.weight, self.p = nn.Parameter(shape, 3, { dtype = dtype }), p
end
function Scaled:forward(_)
  return core.dropout(self.weight, self.p):reshape { 1, self.weight:numel() }
end

-- Returns output and gradient of a training pass of dropout(w), where w is all 3 and the output
-- gradient 1, 2, 3, ...
local function pass(shape, dtype, p, opts)
  local pipe <close> = gp.pipeline(nn.Sequential { Scaled(shape, dtype, p) }, opts)
  local out = pipe:forward(gp.zeros { 1 })
  local grad = gp.arange(1, array.count(shape), 1, { dtype = dtype }):reshape { 1, -1 }
  pipe:backward(grad)
  return array.of(out), array.of(pipe:parameters()[1].grad)
end

local function mask_is_shared(dtype)
  local kept = 0
  local scale = 1 / (1 - 0.25)
  local out, grad = pass({ 40, 50 }, dtype, 0.25, { seed = 5 })
  for i = 1, #out do
    local keeps = out[i] ~= 0
    kept = kept + (keeps and 1 or 0)
    assert.near(keeps and 3 * scale or 0, out[i], 1e-6)
    assert.near(keeps and i * scale or 0, grad[i], 1e-6 * i)
  end
  assert.near(1500, kept, 78) -- four deviations of a binomial of 2000 draws
end

local function differs(a, b)
  for i = 1, #a do if a[i] ~= b[i] then return true end end
  return false
end

local also = {
  { "applies the mask of the forward pass to the gradient", function()
    mask_is_shared("f64")
    mask_is_shared("f32")
  end },
  { "draws the same mask in f32 and f64", function()
    local wide, narrow = pass({ 9, 9 }, "f64", 0.5, { seed = 3 }),
      pass({ 9, 9 }, "f32", 0.5, { seed = 3 })
    assert.is_false(differs(wide, narrow))
  end },
  { "draws another mask for another seed, and the same for the same", function()
    local first = pass({ 64 }, "f32", 0.5, { seed = 1 })
    assert.is_true(differs(first, (pass({ 64 }, "f32", 0.5, { seed = 2 }))))
    assert.is_false(differs(first, (pass({ 64 }, "f32", 0.5, { seed = 1 }))))
  end },
  { "draws another mask in every eager pass, and repeats after gp.seed", function()
    local ones = gp.ones { 64 }
    gp.seed(4)
    local first, second = core.dropout(ones, 0.5), core.dropout(ones, 0.5)
    assert.is_false(gp.equal(first, second))
    gp.seed(4)
    assert.is_true(gp.equal(first, core.dropout(ones, 0.5)))
  end },
  { "draws by element, whatever the layout", function()
    local t = gp.ones { 8, 6 }
    gp.seed(9)
    local plain = core.dropout(t, 0.5)
    gp.seed(9)
    assert.is_true(gp.equal(plain, core.dropout(gp.ones({ 6, 8 }):transpose(), 0.5)))
  end },
}

return {
  {
    op = "dropout", tolerance = "exact", gradient = true, also = also,
    call = function(o, a) return core.dropout(a, o.p) end,
    reference = function(o, a) return array.map(function(v) return o.p == 1 and 0.0 or v end,
      a) end,
    cases = {
      { x { 2, 3 }, o = { p = 0 } }, { x { 2, 3 }, o = { p = 1 } }, { x {}, o = { p = 0 } },
      { x { 0, 3 }, o = { p = 0.5 } }, { x { 70, 5, layout = "transposed" }, o = { p = 0 } },
      { x { 6, 3, layout = "expanded" }, o = { p = 1 } },
    },
    refuses = {
      { x { 2 }, o = { p = -0.1 }, error = "dropout: p is -0.1, expected 0 to 1" },
      { x { 2 }, o = { p = 1.5 }, error = "dropout: p is 1.5, expected 0 to 1" },
      { x { 2 }, o = { p = 0 / 0 }, error = "expected 0 to 1" },
      { x { 2 }, o = { p = "half" }, error = 'dropout: p is "half" (string), expected a number' },
      { x { 2, dtype = "i64" }, o = { p = 0.5 },
        error = "dropout: input is i64, expected f32 or f64" },
    },
  },
}
