-- lua/gpipe/tensor/attention.lua - gp.attention: attention for layers that users write.
--
-- It is one fused op, run at once or recorded in a layer's forward, and it never keeps a T x S
-- table of probabilities. If gradients flow into what is added to the scores, or the values have
-- another width, it is composed of products and a softmax, which keep that table.
-- nn.MultiheadAttention and nn.CausalSelfAttention are the ready-made layers.

local check = require "gpipe.tensor.methods.check"
local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

local WHO = "gp.attention"
local OPTIONS = {
  causal = { type = "boolean", default = false },
  mask = { type = "tensor" },
  bias = { type = "tensor" },
  dropout = { type = "number", default = 0, min = 0, max = 1 },
  scale = { type = "number", above = 0 },
}

-- ---- of products and a softmax ---------------------------------------------------------------

local HIDES = -1e30 -- numbers in a mask up to this hide a key
local HIDDEN = -6e4 -- the score of a hidden key: within f16, and its probability is 0

local function refuse(name, have, want)
  errors.raise_as("shape", "%s: %s is %s, expected %s", WHO, name, table.concat(have, "x"),
    table.concat(want, "x"))
end

-- The sizes {B, H, G, T, S, D, E}, where E is the width of values. Errors: shapes that do not fit.
local function sizes_of(q, k, v)
  local sq, sk, sv = q.shape, k.shape, v.shape
  if #sq ~= 4 then refuse("query", sq, { "?", "?", "?", "?" }) end
  local groups = sk[2]
  if #sk ~= 4 or sk[1] ~= sq[1] or sk[4] ~= sq[4] or groups == 0 or sq[2] % groups ~= 0 then
    refuse("key", sk, { sq[1], ("G (a divisor of %d)"):format(sq[2]), "?", sq[4] })
  end
  if #sv ~= 4 or sv[1] ~= sk[1] or sv[2] ~= groups or sv[3] ~= sk[3] then
    refuse("value", sv, { sk[1], groups, sk[3], "?" })
  end
  return { B = sq[1], H = sq[2], G = groups, T = sq[3], S = sk[3], D = sq[4], E = sv[4] }
end

-- Which scores are visible, as bool, only as large as the options require; nil: all.
local function seen_scores(o, size)
  local seen
  if o.causal then
    local row = create.arange(1, size.S, 1):reshape { 1, size.S }
    seen = row:le(create.arange(1, size.T, 1):reshape { size.T, 1 })
  end
  if not o.mask then return seen end
  local allowed = o.mask.dtype == "bool" and o.mask or o.mask:gt(HIDES)
  return seen and seen:logical_and(allowed) or allowed
end

-- softmax(q k^T scale + bias + mask) v, with heads arranged as [B, G, H / G, ..].
local function composed(q, k, v, o)
  local n = sizes_of(q, k, v)
  local shared = n.H // n.G
  local keys = k:reshape({ n.B, n.G, 1, n.S, n.D }):transpose(4, 5)
  local scores = q:reshape({ n.B, n.G, shared, n.T, n.D }):matmul(keys)
  scores = scores:reshape({ n.B, n.H, n.T, n.S }) * (o.scale or 1 / math.sqrt(n.D))
  if o.bias then scores = scores + o.bias end
  if o.mask and o.mask.dtype ~= "bool" then scores = scores + o.mask:to(scores.dtype) end
  local have, want = scores.shape, { n.B, n.H, n.T, n.S }
  if table.concat(have, "x") ~= table.concat(want, "x") then
    refuse("the scores with bias and mask", have, want)
  end
  local seen = seen_scores(o, n)
  if seen then scores = core.where(seen, scores, HIDDEN) end
  local shares = scores:softmax(-1)
  if seen then shares = core.where(seen, shares, 0) end -- a query without keys returns zeros
  if o.dropout > 0 then shares = core.dropout(shares, o.dropout) end
  local values = v:reshape { n.B, n.G, 1, n.S, n.E }
  return shares:reshape({ n.B, n.G, shared, n.T, n.S }):matmul(values)
    :reshape { n.B, n.H, n.T, n.E }
end

-- ---- the function ----------------------------------------------------------------------------

--- Scaled dot-product attention: softmax(q k^T * scale + mask) v, head by head.
---
--- Shapes: q [B, H, T, D], k [B, G, S, D], v [B, G, S, E] -> [B, H, T, E]. G divides H: each head
--- of keys and values serves H / G neighbouring heads of queries (G = 1: multi-query attention).
---
--- mask: [B, H, T, S], where the first three may be 1. It is bool, true where a query may attend to
--- a key, or has the dtype of q (for bf16 and f16 also f32) and is added to the scaled scores,
--- where -1e30 or less hides the key. No gradient flows into it. A query that is left without keys
--- returns zeros, and neither takes nor gives a gradient. With causal, query i sees the keys 1 ..
--- i, both counted from the first, also if T and S differ; with a mask too, both must allow a key.
--- bias is also added to the scaled scores, broadcast, and takes gradients, for example a bias of
--- distances. With a bias, or if E is not D, the T x S probabilities are kept for the gradient.
---
--- Errors: shapes and dtypes that do not fit, by name; a mask that depends on trained parameters.
--- ```lua
--- local q, k, v = gp.randn {2, 4, 5, 8}, gp.randn {2, 2, 7, 8}, gp.randn {2, 2, 7, 8}
--- local lengths = gp.tensor {{7}, {4}}                              -- of the keys of each row
--- local seen = gp.arange(1, 7):reshape {1, 7}:le(lengths)           -- bool [2, 7]
--- local y = gp.attention(q, k, v, {mask = seen:reshape {2, 1, 1, 7}})
--- ```
---@param q gpipe.Tensor
---@param k gpipe.Tensor
---@param v gpipe.Tensor
---@param opts? {causal?: boolean, mask?: gpipe.Tensor, bias?: gpipe.Tensor, dropout?: number,
--- scale?: number} dropout of the probabilities is always applied: a layer has to ask whether it
--- trains (self:is_training()); scale: 1 / sqrt(D) by default
---@return gpipe.Tensor
return function(q, k, v, opts)
  check.tensor(WHO, q, "query")
  check.tensor(WHO, k, "key")
  check.tensor(WHO, v, "value")
  local o = options.check(WHO, opts, OPTIONS)
  local wide = is_tensor(q) and is_tensor(v) and #v.shape == 4 and v.shape[4] ~= q.shape[#q.shape]
  if o.bias or wide then return composed(q, k, v, o) end
  return (core.attention(q, k, v, { causal = o.causal, mask = o.mask, dropout = o.dropout,
    scale = o.scale }))
end
