-- tests/support/attention.lua - attention by its definition, on plain arrays.
--
-- o: options of a case: causal, scale, heads and groups of packed operands; bools: the mask is one
-- of booleans; kept: factors of the probabilities, where dropout is known.

local array = require "tests.support.array"

local attention = {}

-- Returns keys or values [B, G, S, D] as each of the h query heads reads them.
local function for_heads(h, kv)
  local b, g, s, d = table.unpack(kv.shape)
  return array.build({ b, h, s, d }, function(i)
    return array.at(kv, { i[1], (i[2] - 1) * g // h + 1, i[3], i[4] })
  end)
end

-- Returns what a mask adds to a score; booleans are 1 and 0 here.
local function bias_at(o, mask, i)
  if not mask then return 0.0 end
  local value = array.at(mask, i)
  if o.bools then return value == 1 and 0.0 or -math.huge end
  return value <= -1e30 and -math.huge or value
end

-- Turns a row of scores into probabilities: zeros where every key is hidden.
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

-- Returns probabilities [B, H, Tq, Tk]; hidden keys have 0.
function attention.probabilities(o, q, k, mask)
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

function attention.attend(o, q, k, v, mask)
  local p = attention.probabilities(o, q, k, mask)
  if o.kept then p = array.map(function(a, m) return a * m end, p, o.kept) end
  return array.matmul(p, for_heads(q.shape[2], v))
end

-- Returns `count` heads of D columns each, from the first-th (from 0) on, of packed [B, T, (H + 2
-- G) D], as [B, count, T, D].
local function unpack_heads(qkv, first, count, d)
  return array.build({ qkv.shape[1], count, qkv.shape[2], d }, function(i)
    return array.at(qkv, { i[1], i[3], (first + i[2] - 1) * d + i[4] })
  end)
end

-- Returns q, k and v of packed operands.
function attention.parts_of(o, qkv)
  local h, g = o.heads, o.groups or o.heads
  local d = qkv.shape[3] // (h + 2 * g)
  return unpack_heads(qkv, 0, h, d), unpack_heads(qkv, h, g, d), unpack_heads(qkv, h + g, g, d)
end

function attention.attend_qkv(o, qkv)
  local out = attention.attend(o, attention.parts_of(o, qkv))
  local d = out.shape[4]
  return array.build({ qkv.shape[1], qkv.shape[2], o.heads * d }, function(i)
    return array.at(out, { i[1], (i[3] - 1) // d + 1, i[2], (i[3] - 1) % d + 1 })
  end)
end

return attention
