-- tests/spec/ops_table/attention.lua - attention on separate and on packed operands.
--
-- With dropout the mask is not known beforehand, but it can be seen: where v is the identity matrix the
-- output is the dropped probabilities themselves. The gradient is then checked for that mask.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local expect = require "tests.support.expect"
local inputs = require "tests.support.inputs"

local nn = gp.nn
local x, ids, bools = inputs.float, inputs.ids, inputs.bools

-- ---- references ------------------------------------------------------------------------------

-- Keys or values [B, G, S, D] as every one of the h heads of the queries sees them.
local function for_heads(h, kv)
  local b, g, s, d = table.unpack(kv.shape)
  return array.build({ b, h, s, d }, function(i)
    return array.at(kv, { i[1], (i[2] - 1) * g // h + 1, i[3], i[4] })
  end)
end

-- What a mask adds to a score; booleans are 1 and 0 here.
local function bias_at(o, mask, i)
  if not mask then return 0.0 end
  local value = array.at(mask, i)
  if o.bools then return value == 1 and 0.0 or -math.huge end
  return value <= -1e30 and -math.huge or value
end

-- A row of scores as probabilities: zeros where none is left.
local function soften(row)
  local top, sum, out = math.max(table.unpack(row)), 0.0, {}
  if top == -math.huge then top, sum = 0.0, 1.0 end
  for j, v in ipairs(row) do
    out[j] = math.exp(v - top)
    sum = sum + out[j]
  end
  for j in ipairs(row) do out[j] = out[j] / sum end
  return out
end

-- Probabilities [B, H, Tq, Tk]; unseen keys have 0.
local function probabilities(o, q, k, mask)
  local b, h, tq, d = table.unpack(q.shape)
  local tk, scale = k.shape[3], o.scale or 1 / math.sqrt(d)
  k = for_heads(h, k)
  local scores = array.build({ b, h, tq, tk }, function(i)
    if o.causal and i[4] > i[3] then return -math.huge end
    local dot = 0.0
    for c = 1, d do
      dot = dot + array.at(q, { i[1], i[2], i[3], c }) * array.at(k, { i[1], i[2], i[4], c })
    end
    return dot * scale + bias_at(o, mask, i)
  end)
  return array.lines(scores, soften)
end

local function attend(o, q, k, v, mask)
  local p = probabilities(o, q, k, mask)
  if o.kept then p = array.map(function(a, m) return a * m end, p, o.kept) end
  return array.matmul(p, for_heads(q.shape[2], v))
end

-- `count` heads of D columns each from the first-th (from 0) on, of packed [B, T, (H + 2 G) D], as [B, count, T, D].
local function unpack_heads(qkv, first, count, d)
  return array.build({ qkv.shape[1], count, qkv.shape[2], d }, function(i)
    return array.at(qkv, { i[1], i[3], (first + i[2] - 1) * d + i[4] })
  end)
end

-- q, k and v of packed ones.
local function parts_of(o, qkv)
  local h, g = o.heads, o.groups or o.heads
  local d = qkv.shape[3] // (h + 2 * g)
  return unpack_heads(qkv, 0, h, d), unpack_heads(qkv, h, g, d), unpack_heads(qkv, h + g, g, d)
end

local function attend_qkv(o, qkv)
  local out = attend(o, parts_of(o, qkv))
  local d = out.shape[4]
  return array.build({ qkv.shape[1], qkv.shape[2], o.heads * d }, function(i)
    return array.at(out, { i[1], (i[3] - 1) // d + 1, i[2], (i[3] - 1) % d + 1 })
  end)
end

-- ---- dropout ---------------------------------------------------------------------------------

local DROP = 0.4

-- A layer with the inputs as parameters, booleans as constants.
local Attend = nn.class("Attend")
function Attend:init(case)
  self.call, self.count = function(...) return case.row.call(case.o, ...) end, #case.inputs
  for i, input in ipairs(case.inputs) do
    local value = inputs.tensor(input)
    local free = input.dtype ~= "bool"
    self["p" .. i] = free and nn.Parameter(input.base.shape, value, { dtype = input.dtype }) or value
  end
end
function Attend:forward()
  local list = {}
  for i = 1, self.count do list[i] = self["p" .. i] end
  local out = self.call(table.unpack(list))
  return out:reshape { 1, table.unpack(out.shape) } -- the batch is one row
end

-- Output and gradients of a training pass whose output gradient is that of conformance's sum.
local function pass(case)
  local pipe <close> = gp.pipeline(nn.Sequential { Attend(case) }, { seed = 12 })
  local out = pipe:forward(gp.zeros { 1 })
  local shape = { table.unpack(out.shape, 2) }
  local w = conformance.weights(shape)
  pipe:backward(gp.tensor({ table.unpack(w) }, { dtype = out.dtype }):reshape(out.shape))
  local grads = {}
  for i, p in ipairs(pipe:parameters()) do grads[i] = p.grad:clone() end
  return array.of(out:reshape(shape)), grads
end

-- What is kept (0 or 1 / (1 - p)) in a case whose value operand is the identity; `probs` as its output.
local function kept_of(out, probs)
  return array.map(function(got, p) return (got == 0 and p > 0) and 0 or 1 / (1 - DROP) end, out, probs)
end

local function check_kept(kept, probs)
  local count, all = 0, 0
  for i = 1, #kept do
    if probs[i] > 0 then count, all = count + (kept[i] > 0 and 1 or 0), all + 1 end
  end
  assert.near(1 - DROP, count / all, 4 * math.sqrt(DROP * (1 - DROP) / all))
end

-- Results and gradients of a case, now that it is known what is kept.
local function check_with_kept(case, kept)
  local out, grads = pass(case)
  case.o = setmetatable({ kept = kept }, { __index = case.o })
  conformance.compare(case.name .. " with dropout", out, conformance.reference(case)[1],
    conformance.bound("attention", case.dtype), case.dtype)
  conformance.check_slopes(case, grads)
end

local function identity(shape)
  return array.build(shape, function(i) return i[#i] == i[#i - 1] and 1.0 or 0.0 end)
end

-- q, k drawn, v first the identity (to see what is dropped), then drawn. mask: an input, or none.
local function separate_dropout(row, groups, o, mask)
  o.dropout = DROP
  local list = { { x { 2, 4, 5, 6 }, x { 2, groups, 6, 6 }, x { 2, groups, 6, 6 }, mask, o = o } }
  local case = conformance.case(row, 1, "f64", list)
  local drawn = case.inputs[3].base
  case.inputs[3].base = identity { 2, groups, 6, 6 }
  local q, k, _, seen = table.unpack(case.inputs)
  local probs = probabilities(case.o, q.base, k.base, seen and inputs.logical(seen))
  local kept = kept_of(pass(case), probs)
  check_kept(kept, probs)
  case.inputs[3].base = drawn
  check_with_kept(case, kept)
end

-- The same for packed operands: T = D, so that v can be the identity.
local function packed_dropout(row, causal)
  local list = { { x { 2, 6, 36 }, o = { heads = 2, causal = causal, dropout = DROP } } }
  local case = conformance.case(row, 1, "f64", list)
  local drawn = case.inputs[1].base
  case.inputs[1].base = array.build(drawn.shape, function(i, flat)
    if i[3] <= 24 then return drawn[flat] end
    return (i[3] - 25) % 6 + 1 == i[2] and 1.0 or 0.0
  end)
  local probs = probabilities(case.o, parts_of(case.o, case.inputs[1].base))
  local out = pass(case)
  local heads = array.build({ 2, 2, 6, 6 }, function(i)
    return array.at(out, { i[1], i[3], (i[2] - 1) * 6 + i[4] })
  end)
  local kept = kept_of(heads, probs)
  check_kept(kept, probs)
  case.inputs[1].base = drawn
  check_with_kept(case, kept)
end

-- ---- attention -------------------------------------------------------------------------------

-- Masks are no input that gradients reach.
local function bias(fields)
  fields.fixed = true
  return x(fields)
end

local INF = math.huge
local NUMBERS = { 0, -1, -INF, 0.5, -3e38, 2, 0, 0.25, -INF, -INF, -INF, -INF } -- for halves too: f16 has no -3e38

local attention
attention = {
  op = "attention", covers = { "attention_dx" }, tolerance = "attention", gradient = true,
  call = function(o, q, k, v, mask)
    if not (next(o) or mask) then return core.attention(q, k, v) end
    return core.attention(q, k, v, { causal = o.causal, dropout = o.dropout, scale = o.scale, mask = mask })
  end,
  reference = attend,
  cases = {
    { x { 1, 1, 3, 4 }, x { 1, 1, 3, 4 }, x { 1, 1, 3, 4 } },
    { x { 2, 3, 4, 5 }, x { 2, 3, 4, 5 }, x { 2, 3, 4, 5 }, o = { causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 } },
    { x { 2, 2, 5, 4 }, x { 2, 2, 3, 4 }, x { 2, 2, 3, 4 }, o = { causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, o = { causal = true } },
    { x { 1, 1, 1, 1 }, x { 1, 1, 1, 1 }, x { 1, 1, 1, 1 }, o = { causal = true } },
    { x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 }, o = { scale = 0.25 } },
    { x { 1, 1, 70, 2 }, x { 1, 1, 70, 2 }, x { 1, 1, 70, 2 }, o = { causal = true }, dtypes = "f32" },
    { x { 1, 1, 3, 2 }, x { 1, 1, 130, 2 }, x { 1, 1, 130, 2 }, dtypes = "f32" },
    { x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 } },
    { x { 1, 2, 0, 4 }, x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 } },
    { x { 2, 2, 3, 4, layout = "transposed" }, x { 2, 2, 3, 4, layout = "swapped" },
      x { 2, 2, 3, 4, layout = "narrowed" } },
    { x { 2, 2, 3, 4, layout = "spaced" }, x { 2, 2, 3, 4, layout = "expanded" },
      x { 2, 2, 3, 4, layout = "transposed" }, o = { causal = true } },
    { x { 1, 2, 3, 2, fixed = true }, x { 1, 2, 3, 2 }, x { 1, 2, 3, 2, fixed = true } },
    { x { 1, 2, 3, 4, low = 20, high = 40 }, x { 1, 2, 3, 4, low = -40, high = -20 }, x { 1, 2, 3, 4 },
      o = { scale = 1 } },
    -- grouped heads
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 } },
    { x { 1, 6, 7, 3 }, x { 1, 2, 7, 3 }, x { 1, 2, 7, 3 }, o = { causal = true } },
    { x { 2, 3, 4, 4 }, x { 2, 1, 4, 4 }, x { 2, 1, 4, 4 }, o = { causal = true } },
    { x { 1, 4, 70, 3 }, x { 1, 2, 70, 3 }, x { 1, 2, 70, 3 }, o = { causal = true }, dtypes = "f32" },
    { x { 2, 4, 3, 4, layout = "transposed" }, x { 2, 2, 3, 4, layout = "swapped" },
      x { 2, 2, 3, 4, layout = "spaced" } },
    { x { 1, 4, 3, 8, fixed = true }, x { 1, 2, 3, 8 }, x { 1, 2, 3, 8, fixed = true } },
    -- widths, and one query or key
    { x { 1, 4, 1, 8 }, x { 1, 1, 33, 8 }, x { 1, 1, 33, 8 } },
    { x { 1, 2, 7, 24 }, x { 1, 1, 33, 24 }, x { 1, 1, 33, 24 } },
    { x { 1, 1, 7, 64 }, x { 1, 1, 1, 64 }, x { 1, 1, 1, 64 } },
    { x { 1, 2, 3, 128 }, x { 1, 1, 5, 128 }, x { 1, 1, 5, 128 }, dtypes = "f32" },
    { x { 1, 1, 3, 130 }, x { 1, 1, 5, 130 }, x { 1, 1, 5, 130 }, dtypes = "f32" },
    -- masks
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 2, 2, 3, 5 }, o = { bools = true } },
    { x { 2, 2, 3, 4 }, x { 2, 1, 5, 4 }, x { 2, 1, 5, 4 }, bools { 2, 1, 1, 5 }, o = { bools = true } },
    { x { 1, 2, 5, 4 }, x { 1, 2, 5, 4 }, x { 1, 2, 5, 4 }, bools { 1, 2, 5, 5 },
      o = { bools = true, causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 1, 1, 1, 5, values = { 0, 0, 0, 0, 0 } }, o = { bools = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bias { 2, 2, 3, 5 } },
    { x { 1, 2, 3, 4 }, x { 1, 2, 4, 4 }, x { 1, 2, 4, 4 }, bias { 1, 1, 3, 4, values = NUMBERS } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bias { 1, 2, 1, 5 }, o = { scale = 0.25 } },
    { x { 2, 4, 3, 4 }, x { 2, 2, 3, 4 }, x { 2, 2, 3, 4 }, bias { 2, 4, 3, 3, layout = "transposed" },
      o = { causal = true } },
    { x { 2, 2, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 2, 2, 3, 5, layout = "expanded" },
      o = { bools = true } },
    { x { 1, 2, 70, 3 }, x { 1, 2, 70, 3 }, x { 1, 2, 70, 3 }, bools { 1, 1, 70, 70 },
      o = { bools = true, causal = true }, dtypes = "f32" },
    { x { 1, 2, 3, 8 }, x { 1, 1, 130, 8 }, x { 1, 1, 130, 8 }, bias { 1, 2, 3, 130, layout = "swapped" },
      dtypes = "f32" },
    { x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 }, x { 0, 2, 3, 4 }, bools { 1, 1, 1, 3 }, o = { bools = true } },
  },
  refuses = {
    { x { 2, 3, 4 }, x { 2, 3, 4 }, x { 2, 3, 4 }, error = "attention: query is 2x3x4, expected ?x?x?x?" },
    { x { 1, 2, 3, 4 }, x { 1, 2, 3, 5 }, x { 1, 2, 3, 5 },
      error = "attention: key is 1x2x3x5, expected 1x?x?x4 (query is 1x2x3x4)" },
    { x { 1, 4, 3, 4 }, x { 1, 3, 3, 4 }, x { 1, 3, 3, 4 },
      error = "attention: key is 1x3x3x4, expected a number of heads that divides the query's (1x4x3x4)" },
    { x { 1, 2, 3, 4 }, x { 1, 4, 3, 4 }, x { 1, 4, 3, 4 }, error = "a number of heads that divides the query's" },
    { x { 1, 4, 3, 4 }, x { 1, 2, 3, 4 }, x { 1, 4, 3, 4 }, error = "attention: value is 1x4x3x4, expected 1x2x3x4" },
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 2, 2, 3, 5 },
      error = "attention: mask is 2x2x3x5, expected 2x4x3x5, where the first three may be 1" },
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 2, 4, 3, 1 }, error = "mask is 2x4x3x1" },
    { x { 2, 4, 3, 4 }, x { 2, 2, 5, 4 }, x { 2, 2, 5, 4 }, bools { 3, 5 }, error = "mask is 3x5, expected 2x4x3x5" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2, dtype = "f64" },
      error = "attention: mask is f64, expected bool or f32" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, ids { 1, 1, 2, 2, below = 2 },
      error = "attention: mask is i64, expected bool or f32" },
    { x { 1, 2, 3, 4 }, x { 1, 2, 3, 4 }, x { 1, 2, 5, 4 }, error = "attention: value is 1x2x5x4, expected 1x2x3x4" },
    { x { 1, 2, 3, 4 }, x { 1, 2, 0, 4 }, x { 1, 2, 0, 4 }, error = "expected at least one key and one channel" },
    { x { 1, 2, 3, 0 }, x { 1, 2, 3, 0 }, x { 1, 2, 3, 0 }, error = "expected at least one key and one channel" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, o = { dropout = 1.5 },
      error = "attention: dropout is 1.5, expected 0 to 1" },
    { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2, dtype = "f64" }, x { 1, 1, 2, 2 },
      error = "attention: key is f64, expected f32 (query is f32)" },
    { ids { 1, 1, 2, 2, below = 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 },
      error = "attention: query is i64, expected f32 or f64" },
  },
  also = {
    { "drops probabilities by a mask that its gradient shares", function()
      separate_dropout(attention, 4, {})
      separate_dropout(attention, 4, { causal = true })
      separate_dropout(attention, 2, { causal = true })
      separate_dropout(attention, 1, { bools = true }, bools { 2, 1, 5, 6 })
    end },
    { "refuses a mask that gradients would have to reach", function()
      local text = expect.failure(pass, conformance.case(attention, 1, "f32", {
        { x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, x { 1, 1, 2, 2 }, o = { causal = true } },
      }))
      assert.is_truthy(tostring(text):find("no gradient flows into a mask", 1, true), text)
    end },
    { "gives no gradient to a query that sees no key, nor to a key that no query sees", function()
      local case = conformance.case(attention, 1, "f32", { {
        x { 1, 2, 2, 3 }, x { 1, 1, 3, 3 }, x { 1, 1, 3, 3 },
        bools { 1, 1, 2, 3, values = { 1, 0, 1, 0, 0, 0 } }, o = { bools = true },
      } })
      local out, grads = pass(case)
      for c = 1, 3 do
        assert.are.equal(0, array.at(out, { 1, 2, 2, c }))
        assert.are.equal(0, array.at(array.of(grads[1]), { 1, 1, 2, c }))
        assert.are.equal(0, array.at(array.of(grads[2]), { 1, 1, 2, c }))
        assert.are.equal(0, array.at(array.of(grads[3]), { 1, 1, 2, c }))
      end
    end },
    { "gives nothing when everything is dropped", function()
      local q = gp.ones { 1, 1, 2, 2 }
      assert.are.same({ { { { 0, 0 }, { 0, 0 } } } }, core.attention(q, q, q, { dropout = 1 }):totable())
    end },
  },
}

local attention_qkv
attention_qkv = {
  op = "attention_qkv", covers = { "attention_qkv_dx" }, tolerance = "attention", gradient = true,
  call = function(o, qkv) return core.attention_qkv(qkv, o.heads, o.causal, o.dropout, o.groups) end,
  reference = attend_qkv,
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
    { x { 2, 3, 12 }, o = { heads = 3 }, error = "qkv is 2x3x12, expected a last dimension that 3 x 3 heads divide" },
    { x { 2, 3, 10 }, o = { heads = 1 }, error = "qkv is 2x3x10, expected a last dimension that 3 x 1 heads divide" },
    { x { 3, 12 }, o = { heads = 2 }, error = "attention_qkv: qkv is 3x12, expected ?x?x?" },
    { x { 2, 3, 0 }, o = { heads = 1 }, error = "expected a last dimension that 3 x 1 heads divide" },
    { x { 2, 3, 12 }, o = { heads = 0 }, error = "attention_qkv: heads is 0, expected an integer" },
    { x { 2, 3, 12 }, o = { heads = 4, groups = 3 },
      error = "attention_qkv: heads of keys are 3, expected a number that divides the 4 heads" },
    { x { 2, 3, 12 }, o = { heads = 4, groups = 2 },
      error = "qkv is 2x3x12, expected a last dimension that 4 + 2 x 2 heads divide" },
    { x { 2, 3, 12 }, o = { heads = 2, groups = 0 }, error = "attention_qkv: heads of keys is 0, expected an integer" },
    { x { 2, 3, 12 }, o = { heads = 2, dropout = -1 }, error = "attention_qkv: dropout is -1, expected 0 to 1" },
    { ids { 2, 3, 12, below = 2 }, o = { heads = 2 }, error = "attention_qkv: qkv is i64, expected f32 or f64" },
  },
  also = {
    { "drops probabilities by a mask that its gradient shares", function()
      packed_dropout(attention_qkv, false)
      packed_dropout(attention_qkv, true)
    end },
  },
}

return { attention, attention_qkv }
