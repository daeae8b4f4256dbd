-- tests/spec/ops/table/attention.lua - attention on separate and on packed operands.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local definition = require "tests.support.attention"
local dropped = require "tests.support.dropped"
local expect = require "tests.support.expect"
local inputs = require "tests.support.inputs"

local x, ids, bools = inputs.float, inputs.ids, inputs.bools

-- Gradients do not reach masks.
local function bias(fields)
  fields.fixed = true
  return x(fields)
end

local INF = math.huge
-- for halves too: f16 has no -3e38
local NUMBERS = { 0, -1, -INF, 0.5, -3e38, 2, 0, 0.25, -INF, -INF, -INF, -INF }

local attention
attention = {
  op = "attention", covers = { "attention_dx" }, tolerance = "attention", gradient = true,
  call = function(o, q, k, v, mask)
    if not (next(o) or mask) then return core.attention(q, k, v) end
    return core.attention(q, k, v,
      { causal = o.causal, dropout = o.dropout, scale = o.scale, mask = mask })
  end,
  reference = definition.attend,
  cases = {
    { x { 1, 1, 3, 4 }, x { 1, 1, 3, 4 }, x { 1, 1, 3, 4 } },
    { x { 2, 3, 4, 5 }, x { 2, 3, 4, 5 }, x { 2, 3, 4, 5 }, o = { causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 } },
    { x { 2, 2, 5, 4 }, x { 2, 2, 3, 4 }, x { 2, 2, 3, 4 }, o = { causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, o = { causal = true } },
    { x { 1, 1, 1, 1 }, x { 1, 1, 1, 1 }, x { 1, 1, 1, 1 }, o = { causal = true } },
    { x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 }, o = { scale = 0.25 } },
    { x { 1, 1, 70, 2 }, x { 1, 1, 70, 2 }, x { 1, 1, 70, 2 }, o = { causal = true },
      dtypes = "f32" },
    { x { 1, 1, 3, 2 }, x { 1, 1, 130, 2 }, x { 1, 1, 130, 2 }, dtypes = "f32" },
    { x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 } },
    { x { 1, 2, 0, 4 }, x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 } },
    { x { 2, 2, 3, 4, layout = "transposed" }, x { 2, 2, 3, 4, layout = "swapped" },
      x { 2, 2, 3, 4, layout = "narrowed" } },
    { x { 2, 2, 3, 4, layout = "spaced" }, x { 2, 2, 3, 4, layout = "expanded" },
      x { 2, 2, 3, 4, layout = "transposed" }, o = { causal = true } },
    { x { 1, 2, 3, 2, fixed = true }, x { 1, 2, 3, 2 }, x { 1, 2, 3, 2, fixed = true } },
    { x { 1, 2, 3, 4, low = 20, high = 40 }, x { 1, 2, 3, 4, low = -40, high = -20 },
      x { 1, 2, 3, 4 },
      o = { scale = 1 } },
    -- grouped heads
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 } },
    { x { 1, 6, 7, 3 }, x { 1, 2, 7, 3 }, x { 1, 2, 7, 3 }, o = { causal = true } },
    { x { 2, 3, 4, 4 }, x { 2, 1, 4, 4 }, x { 2, 1, 4, 4 }, o = { causal = true } },
    { x { 1, 4, 70, 3 }, x { 1, 2, 70, 3 }, x { 1, 2, 70, 3 }, o = { causal = true },
      dtypes = "f32" },
    { x { 2, 4, 3, 4, layout = "transposed" }, x { 2, 2, 3, 4, layout = "swapped" },
      x { 2, 2, 3, 4, layout = "spaced" } },
    { x { 1, 4, 3, 8, fixed = true }, x { 1, 2, 3, 8 }, x { 1, 2, 3, 8, fixed = true } },
    -- widths, and one query or key
    { x { 1, 4, 1, 8 }, x { 1, 1, 33, 8 }, x { 1, 1, 33, 8 } },
    { x { 1, 2, 7, 24 }, x { 1, 1, 33, 24 }, x { 1, 1, 33, 24 } },
    { x { 1, 1, 7, 64 }, x { 1, 1, 1, 64 }, x { 1, 1, 1, 64 } },
    { x { 1, 2, 3, 128 }, x { 1, 1, 5, 128 }, x { 1, 1, 5, 128 }, dtypes = "f32" },
    { x { 1, 1, 3, 130 }, x { 1, 1, 5, 130 }, x { 1, 1, 5, 130 }, dtypes = "f32" },
    { x { 1, 1, 3, 70 }, x { 1, 1, 4, 70 }, x { 1, 1, 4, 70 }, dtypes = "f64" },
    -- masks
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 2, 2, 3, 5 },
      o = { bools = true } },
    { x { 2, 2, 3, 4 }, x { 2, 1, 5, 4 }, x { 2, 1, 5, 4 }, bools { 2, 1, 1, 5 },
      o = { bools = true } },
    { x { 1, 2, 5, 4 }, x { 1, 2, 5, 4 }, x { 1, 2, 5, 4 }, bools { 1, 2, 5, 5 },
      o = { bools = true, causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 },
      bools { 1, 1, 1, 5, values = { 0, 0, 0, 0, 0 } }, o = { bools = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bias { 2, 2, 3, 5 } },
    { x { 1, 2, 3, 4 }, x { 1, 2, 4, 4 }, x { 1, 2, 4, 4 }, bias { 1, 1, 3, 4, values = NUMBERS } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bias { 1, 2, 1, 5 },
      o = { scale = 0.25 } },
    { x { 2, 4, 3, 4 }, x { 2, 2, 3, 4 }, x { 2, 2, 3, 4 },
      bias { 2, 4, 3, 3, layout = "transposed" },
      o = { causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 },
      bools { 2, 2, 3, 5, layout = "expanded" },
      o = { bools = true } },
    { x { 1, 2, 70, 3 }, x { 1, 2, 70, 3 }, x { 1, 2, 70, 3 }, bools { 1, 1, 70, 70 },
      o = { bools = true, causal = true }, dtypes = "f32" },
    { x { 1, 2, 3, 8 }, x { 1, 1, 130, 8 }, x { 1, 1, 130, 8 },
      bias { 1, 2, 3, 130, layout = "swapped" },
      dtypes = "f32" },
    { x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 }, bools { 1, 1, 1, 3 },
      o = { bools = true } },
  },
  refuses = {
    { x { 2, 3, 4 }, x { 2, 3, 4 }, x { 2, 3, 4 },
      error = "attention: query is 2x3x4, expected ?x?x?x?" },
    { x { 1, 2, 3, 4 }, x { 1, 2, 3, 5 }, x { 1, 2, 3, 5 },
      error = "attention: key is 1x2x3x5, expected 1x?x?x4 (query is 1x2x3x4)" },
    { x { 1, 4, 3, 4 }, x { 1, 3, 3, 4 }, x { 1, 3, 3, 4 },
      error = "attention: key is 1x3x3x4, expected a number of heads that divides the query's "
        .. "(1x4x3x4)" },
    { x { 1, 2, 3, 4 }, x { 1, 4, 3, 4 }, x { 1, 4, 3, 4 },
      error = "a number of heads that divides the query's" },
    { x { 1, 4, 3, 4 }, x { 1, 2, 3, 4 }, x { 1, 4, 3, 4 },
      error = "attention: value is 1x4x3x4, expected 1x2x3x4" },
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 2, 2, 3, 5 },
      error = "attention: mask is 2x2x3x5, expected 2x4x3x5, where the first three may be 1" },
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 2, 4, 3, 1 },
      error = "mask is 2x4x3x1" },
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 3, 5 },
      error = "mask is 3x5, expected 2x4x3x5" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2, dtype = "f64" },
      error = "attention: mask is f64, expected bool or f32" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, ids { 1, 1, 2, 2, below = 2 },
      error = "attention: mask is i64, expected bool or f32" },
    { x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 }, x { 1, 2, 5, 4 },
      error = "attention: value is 1x2x5x4, expected 1x2x3x4" },
    { x { 1, 2, 3, 4 }, x { 1, 2, 0, 4 }, x { 1, 2, 0, 4 },
      error = "expected at least one key and one channel" },
    { x { 1, 2, 3, 0 }, x { 1, 2, 3, 0 }, x { 1, 2, 3, 0 },
      error = "expected at least one key and one channel" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, o = { dropout = 1.5 },
      error = "attention: dropout is 1.5, expected 0 to 1" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2, dtype = "f64" }, x { 1, 1, 2, 2 },
      error = "attention: key is f64, expected f32 (query is f32)" },
    { ids { 1, 1, 2, 2, below = 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 },
      error = "attention: query is i64, expected f32 or f64" },
  },
  also = {
    { "drops probabilities by a mask that its gradient shares", function()
      dropped.separate(attention, 4, {})
      dropped.separate(attention, 4, { causal = true })
      dropped.separate(attention, 2, { causal = true })
      dropped.separate(attention, 1, { bools = true }, bools { 2, 1, 5, 6 })
    end },
    { "refuses a mask that gradients would have to reach", function()
      local text = expect.failure(dropped.pass, conformance.case(attention, 1, "f32", {
        { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 },
          o = { causal = true } },
      }))
      assert.is_truthy(tostring(text):find("no gradient flows into a mask", 1, true), text)
    end },
    { "gives no gradient to a query that sees no key, nor to a key that no query sees", function()
      local case = conformance.case(attention, 1, "f32", { {
        x { 1, 2, 2, 3 }, x { 1, 1, 3, 3 }, x { 1, 1, 3, 3 },
        bools { 1, 1, 2, 3, values = { 1, 0, 1, 0, 0, 0 } }, o = { bools = true },
      } })
      local out, grads = dropped.pass(case)
      for c = 1, 3 do
        assert.are.equal(0, array.at(out, { 1, 2, 2, c }))
        assert.are.equal(0, array.at(array.of(grads[1]), { 1, 1, 2, c }))
        assert.are.equal(0, array.at(array.of(grads[2]), { 1, 1, 2, c }))
        assert.are.equal(0, array.at(array.of(grads[3]), { 1, 1, 2, c }))
      end
    end },
    { "gives nothing when everything is dropped", function()
      local q = gp.ones { 1, 1, 2, 2 }
      assert.are.same({ { { { 0, 0 }, { 0, 0 } } } },
        core.attention(q, q, q, { dropout = 1 }):totable())
    end },
  },
}

local attention_qkv
attention_qkv = {
  op = "attention_qkv", covers = { "attention_qkv_dx" }, tolerance = "attention", gradient = true,
  call = function(o, qkv) return core.attention_qkv(qkv, o) end,
  reference = definition.attend_qkv,
  cases = {
    { x { 2, 3, 12 }, o = { heads = 2, causal = true } },
    { x { 2, 3, 12 }, o = { heads = 1 } },
    { x { 2, 3, 12 }, o = { heads = 4, causal = true } },
    { x { 1, 1, 3 }, o = { heads = 1, causal = true } },
    { x { 1, 70, 6 }, o = { heads = 1, causal = true }, dtypes = "f32" },
    { x { 2, 4, 18 }, o = { heads = 3, dropout = 0 } },
    { x { 0, 3, 12 }, o = { heads = 2 } },
    { x { 2, 0, 12 }, o = { heads = 2 } },
    { x { 2, 3, 12, layout = "transposed" }, o = { heads = 2, causal = true } },
    { x { 2, 3, 12, layout = "narrowed" }, o = { heads = 2 } },
    { x { 2, 3, 12, layout = "expanded" }, o = { heads = 2 } },
    { x { 2, 3, 24 }, o = { heads = 4, groups = 2, causal = true } },
    { x { 2, 3, 18 }, o = { heads = 4, groups = 1 } },
    { x { 1, 5, 12 }, o = { heads = 2, groups = 2, causal = true } },
    { x { 1, 1, 32 }, o = { heads = 2, groups = 1, causal = true } },
    { x { 1, 33, 72 }, o = { heads = 1, groups = 1, causal = true }, dtypes = "f32" },
    { x { 1, 70, 20 }, o = { heads = 6, groups = 2, causal = true }, dtypes = "f32" },
    { x { 2, 3, 24, layout = "transposed" }, o = { heads = 4, groups = 2, causal = true } },
  },
  refuses = {
    { x { 2, 3, 12 }, o = { heads = 3 },
      error = "qkv is 2x3x12, expected a last dimension that 3 x 3 heads divide" },
    { x { 2, 3, 10 }, o = { heads = 1 },
      error = "qkv is 2x3x10, expected a last dimension that 3 x 1 heads divide" },
    { x { 3, 12 }, o = { heads = 2 }, error = "attention_qkv: qkv is 3x12, expected ?x?x?" },
    { x { 2, 3, 0 }, o = { heads = 1 },
      error = "expected a last dimension that 3 x 1 heads divide" },
    { x { 2, 3, 12 }, o = { heads = 0 }, error = "attention_qkv: heads is 0, expected 1 or more" },
    { x { 2, 3, 12 }, o = { heads = 4, groups = 3 },
      error = "attention_qkv: heads of keys are 3, expected a number that divides the 4 heads" },
    { x { 2, 3, 12 }, o = { heads = 4, groups = 2 },
      error = "qkv is 2x3x12, expected a last dimension that 4 + 2 x 2 heads divide" },
    { x { 2, 3, 12 }, o = { heads = 2, groups = 0 },
      error = "attention_qkv: heads of keys are 0, expected a number" },
    { x { 2, 3, 12 }, o = { heads = 2, dropout = -1 },
      error = "attention_qkv: dropout is -1, expected 0 to 1" },
    { ids { 2, 3, 12, below = 2 }, o = { heads = 2 },
      error = "attention_qkv: qkv is i64, expected f32 or f64" },
  },
  also = {
    { "drops probabilities by a mask that its gradient shares", function()
      dropped.packed(attention_qkv, false)
      dropped.packed(attention_qkv, true)
    end },
  },
}

return { attention, attention_qkv }
