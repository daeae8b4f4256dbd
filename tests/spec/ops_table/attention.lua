-- tests/spec/ops_table/attention.lua - attention on separate and on packed operands.
--
-- With dropout the mask is not known beforehand, but it can be seen: where v is the identity matrix the
-- output is the dropped probabilities themselves. The gradient is then checked for that mask.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local conformance = require "tests.support.conformance"
local inputs = require "tests.support.inputs"

local nn = gp.nn
local x, ids = inputs.float, inputs.ids

-- ---- references ------------------------------------------------------------------------------

-- Probabilities [B, H, Tq, Tk]; unseen keys have 0.
local function probabilities(o, q, k)
  local b, h, tq, d = table.unpack(q.shape)
  local tk, scale = k.shape[3], o.scale or 1 / math.sqrt(d)
  local scores = array.build({ b, h, tq, tk }, function(i)
    if o.causal and i[4] > i[3] then return -math.huge end
    local dot = 0.0
    for c = 1, d do
      dot = dot + array.at(q, { i[1], i[2], i[3], c }) * array.at(k, { i[1], i[2], i[4], c })
    end
    return dot * scale
  end)
  return array.lines(scores, function(row)
    local top, sum, out = math.max(table.unpack(row)), 0.0, {}
    for j, v in ipairs(row) do
      out[j] = math.exp(v - top)
      sum = sum + out[j]
    end
    for j in ipairs(row) do out[j] = out[j] / sum end
    return out
  end)
end

local function attend(o, q, k, v)
  local p = probabilities(o, q, k)
  if o.mask then p = array.map(function(a, m) return a * m end, p, o.mask) end
  return array.matmul(p, v)
end

-- Head h of part (0 q, 1 k, 2 v) of packed [B, T, 3C] as [B, H, T, D].
local function unpack_heads(qkv, heads, part)
  local b, t, width = table.unpack(qkv.shape)
  local c = width // 3
  return array.build({ b, heads, t, c // heads }, function(i)
    return array.at(qkv, { i[1], i[3], part * c + (i[2] - 1) * (c // heads) + i[4] })
  end)
end

local function attend_qkv(o, qkv)
  local q, k, v = unpack_heads(qkv, o.heads, 0), unpack_heads(qkv, o.heads, 1), unpack_heads(qkv, o.heads, 2)
  local out = attend(o, q, k, v)
  local c = qkv.shape[3] // 3
  return array.build({ qkv.shape[1], qkv.shape[2], c }, function(i)
    local head, column = (i[3] - 1) // (c // o.heads), (i[3] - 1) % (c // o.heads)
    return array.at(out, { i[1], head + 1, i[2], column + 1 })
  end)
end

-- ---- dropout ---------------------------------------------------------------------------------

local DROP = 0.4

-- A layer with the inputs as parameters.
local Attend = nn.class("Attend")
function Attend:init(case)
  self.call, self.count = function(...) return case.row.call(case.o, ...) end, #case.inputs
  for i, input in ipairs(case.inputs) do
    self["p" .. i] = nn.Parameter(input.base.shape, inputs.tensor(input), { dtype = input.dtype })
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

-- The mask (0 or 1 / (1 - p)) of a case whose value operand is the identity; `probs` as its output.
local function mask_of(out, probs)
  return array.map(function(got, p) return (got == 0 and p > 0) and 0 or 1 / (1 - DROP) end, out, probs)
end

local function check_mask(mask, probs)
  local kept, all = 0, 0
  for i = 1, #mask do
    if probs[i] > 0 then kept, all = kept + (mask[i] > 0 and 1 or 0), all + 1 end
  end
  assert.near(1 - DROP, kept / all, 4 * math.sqrt(DROP * (1 - DROP) / all))
end

-- Results and gradients of a case under a mask that is known now.
local function check_with_mask(case, mask)
  local out, grads = pass(case)
  case.o = setmetatable({ mask = mask }, { __index = case.o })
  conformance.compare(case.name .. " with dropout", out, conformance.reference(case)[1],
    conformance.bound("attention", case.dtype), case.dtype)
  conformance.check_slopes(case, grads)
end

local function identity(shape)
  return array.build(shape, function(i) return i[#i] == i[#i - 1] and 1.0 or 0.0 end)
end

-- q, k drawn, v first the identity (to see the mask), then drawn.
local function separate_dropout(row, causal)
  local list = { { x { 2, 2, 5, 6 }, x { 2, 2, 6, 6 }, x { 2, 2, 6, 6 }, o = { causal = causal, dropout = DROP } } }
  local case = conformance.case(row, 1, "f64", list)
  local drawn = case.inputs[3].base
  case.inputs[3].base = identity { 2, 2, 6, 6 }
  local probs = probabilities(case.o, case.inputs[1].base, case.inputs[2].base)
  local mask = mask_of(pass(case), probs)
  check_mask(mask, probs)
  case.inputs[3].base = drawn
  check_with_mask(case, mask)
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
  local qkv = case.inputs[1].base
  local probs = probabilities(case.o, unpack_heads(qkv, 2, 0), unpack_heads(qkv, 2, 1))
  local out = pass(case)
  local heads = array.build({ 2, 2, 6, 6 }, function(i)
    return array.at(out, { i[1], i[3], (i[2] - 1) * 6 + i[4] })
  end)
  local mask = mask_of(heads, probs)
  check_mask(mask, probs)
  case.inputs[1].base = drawn
  check_with_mask(case, mask)
end

-- ---- attention -------------------------------------------------------------------------------

local attention
attention = {
  op = "attention", covers = { "attention_dx" }, tolerance = "attention", gradient = true,
  call = function(o, q, k, v)
    if not next(o) then return core.attention(q, k, v) end
    return core.attention(q, k, v, { causal = o.causal, dropout = o.dropout, scale = o.scale })
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
  },
  refuses = {
    { x { 2, 3, 4 }, x { 2, 3, 4 }, x { 2, 3, 4 }, error = "attention: query is 2x3x4, expected ?x?x?x?" },
    { x { 1, 2, 3, 4 }, x { 1, 2, 3, 5 }, x { 1, 2, 3, 5 },
      error = "attention: key is 1x2x3x5, expected 1x2x?x4 (query is 1x2x3x4)" },
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
      separate_dropout(attention, false)
      separate_dropout(attention, true)
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
  call = function(o, qkv) return core.attention_qkv(qkv, o.heads, o.causal, o.dropout) end,
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
  },
  refuses = {
    { x { 2, 3, 12 }, o = { heads = 3 }, error = "qkv is 2x3x12, expected a last dimension that 3 x 3 heads divide" },
    { x { 2, 3, 10 }, o = { heads = 1 }, error = "qkv is 2x3x10, expected a last dimension that 3 x 1 heads divide" },
    { x { 3, 12 }, o = { heads = 2 }, error = "attention_qkv: qkv is 3x12, expected ?x?x?" },
    { x { 2, 3, 0 }, o = { heads = 1 }, error = "expected a last dimension that 3 x 1 heads divide" },
    { x { 2, 3, 12 }, o = { heads = 0 }, error = "attention_qkv: heads is 0, expected an integer" },
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
