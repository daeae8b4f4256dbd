-- lua/gpipe/tensor/attention.lua - gp.attention: what layers of one's own make attention of.
--
-- One fused op, at once or recorded in a layer's forward: no T x S table of probabilities is ever
-- kept.
-- nn.CausalSelfAttention is the ready-made layer.

local core = require "gpipe.core"
local options = require "gpipe.options"

local WHO = "gp.attention"
local OPTIONS = {
  causal = { type = "boolean", default = false },
  mask = { type = "tensor" },
  dropout = { type = "number", default = 0, min = 0, max = 1 },
  scale = { type = "number", above = 0 },
}

--- Scaled dot-product attention: softmax(q k^T * scale + mask) v, head by head.
---
--- Shapes: q [B, H, T, D], k and v [B, G, S, D] -> [B, H, T, D]. G divides H: each head of keys and
--- values serves H / G neighbouring heads of queries (G = 1: multi-query attention).
---
--- mask: [B, H, T, S], where the first three may be 1; bool, true where a query may attend to a
--- key, or of the dtype of q (for bf16 and f16 also f32), added to the scaled scores, where -1e30
--- and less hides the key. No gradient flows into it. A query that is left without keys gives
--- zeros, and takes and gives no gradient.
--- With causal, query i sees the keys 1 .. i, counted from the first of each also where T and S
--- differ; with a mask too, both must allow.
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
---@param opts? {causal?: boolean, mask?: gpipe.Tensor, dropout?: number, scale?: number} dropout of the
---  probabilities, always: whether a layer trains is its own to ask (self:is_training()); scale:
---  1 / sqrt(D) unless said
---@return gpipe.Tensor
return function(q, k, v, opts)
  local o = options.check(WHO, opts, OPTIONS)
  return (core.attention(q, k, v, o))
end
