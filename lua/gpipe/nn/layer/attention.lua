-- lua/gpipe/nn/layer/attention.lua - `nn.CausalSelfAttention`: each position attends to itself and
-- to those before it.
--
-- The three projections are one Linear, `qkv`, whose outputs are three blocks: the queries of
-- `heads` heads, then the keys and the values of `kv_heads` heads. One fused op reads them in
-- place. Source: Vaswani et al. 2017; the layout is that of GPT-2; fewer heads of keys: Ainslie et
-- al. 2023, "GQA".

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local Linear = require "gpipe.nn.layer.linear"
local Module = require "gpipe.nn.module"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local scope = require "gpipe.nn.scope"

---@class nn.CausalSelfAttention: nn.Module
---@field qkv nn.Linear dim -> (heads + 2 kv_heads) dim / heads: query, key, value
---@field proj nn.Linear dim -> dim
local Attention = class.new("CausalSelfAttention", Module, true)

local WHO = "nn.CausalSelfAttention"
local OPTIONS = {
  kv_heads = { type = "integer", min = 1 },
  dropout = { type = "number", default = 0, min = 0, max = 1 },
  bias = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

-- The number of heads of keys and values; by default as many as of queries.
local function kv_heads(heads, opts)
  local count = opts.kv_heads or heads
  if heads % count ~= 0 then
    errors.raise("%s: heads is %d and kv_heads is %d, expected kv_heads to divide heads", WHO,
      heads,
      count)
  end
  return count
end

--- Multi-head scaled dot-product attention with a causal mask.
---
--- Shapes: [B, T, dim] -> [B, T, dim].
--- Errors: heads that do not divide dim, kv_heads that do not divide heads; when called, an input
--- that is not [B, T, dim].
--- ```lua
--- local y = nn.CausalSelfAttention(16, 4, {kv_heads = 2})(gp.randn {2, 5, 16})
--- ```
---@param dim integer
---@param heads integer divides dim
---@param opts? {kv_heads?: integer, dropout?: number, bias?: boolean, dtype?: "f32"|"f64"} kv_heads:
---  heads of keys and values, each shared by heads / kv_heads neighbouring heads of queries (1:
---  multi-query attention), default heads; dropout of the attention weights, in training mode only;
---  bias of both projections
function Attention:init(dim, heads, opts)
  self.dim, self.heads = check.size(WHO, "dim", dim), check.size(WHO, "heads", heads)
  if self.dim % self.heads ~= 0 then
    errors.raise("%s: dim is %d and heads is %d, expected heads to divide dim", WHO, self.dim,
      self.heads)
  end
  opts = options.check(WHO, opts, OPTIONS)
  self.kv_heads = kv_heads(self.heads, opts)
  self.dropout = opts.dropout
  local linear = { bias = opts.bias, dtype = opts.dtype }
  self.qkv = Linear(self.dim, self.dim + 2 * self.kv_heads * (self.dim // self.heads), linear)
  self.proj = Linear(self.dim, self.dim, linear)
end

function Attention:forward(x)
  local shape = input.tensor(self, x).shape
  if #shape ~= 3 or shape[3] ~= self.dim then
    errors.raise_as("shape", "%s: input is %s, expected ?x?x%d", scope.label(self),
      check.shape_text(shape), self.dim)
  end
  local dropout = self:is_training() and self.dropout or 0
  local heads = core.attention_qkv(self.qkv(x),
    { heads = self.heads, groups = self.kv_heads, causal = true, dropout = dropout })
  return self.proj(heads)
end

function Attention:describe()
  local shared = self.kv_heads < self.heads and (", %d of keys"):format(self.kv_heads) or ""
  return ("%d, %d heads%s"):format(self.dim, self.heads, shared)
end

return Attention
