-- lua/gpipe/nn/layer/attention.lua - `nn.CausalSelfAttention`: each position attends to those
-- before it and itself.
--
-- The three projections are one Linear, `qkv`, whose outputs are three blocks of dim (query, key,
-- value), each of `heads` heads; one fused op reads them in place. Source: Vaswani et al. 2017;
-- the layout is that of GPT-2.

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
---@field qkv nn.Linear dim -> 3 dim: query, key, value
---@field proj nn.Linear dim -> dim
local Attention = class.new("CausalSelfAttention", Module, true)

local WHO = "nn.CausalSelfAttention"
local OPTIONS = {
  dropout = { type = "number", default = 0, min = 0, max = 1 },
  bias = { type = "boolean", default = true },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

--- Multi-head scaled dot-product attention with a causal mask.
---
--- Shapes: [B, T, dim] -> [B, T, dim].
--- Errors: heads that do not divide dim; when called, an input that is not [B, T, dim].
--- ```lua
--- local y = nn.CausalSelfAttention(16, 4)(gp.randn {2, 5, 16})
--- ```
---@param dim integer
---@param heads integer divides dim
---@param opts? {dropout?: number, bias?: boolean, dtype?: "f32"|"f64"} dropout of the attention
---  weights, in training mode only; bias of both projections
function Attention:init(dim, heads, opts)
  self.dim, self.heads = check.size(WHO, "dim", dim), check.size(WHO, "heads", heads)
  if self.dim % self.heads ~= 0 then
    errors.raise("%s: dim is %d and heads is %d, expected heads to divide dim", WHO, self.dim,
      self.heads)
  end
  opts = options.check(WHO, opts, OPTIONS)
  self.dropout = opts.dropout
  local linear = { bias = opts.bias, dtype = opts.dtype }
  self.qkv = Linear(self.dim, 3 * self.dim, linear)
  self.proj = Linear(self.dim, self.dim, linear)
end

function Attention:forward(x)
  local shape = input.tensor(self, x).shape
  if #shape ~= 3 or shape[3] ~= self.dim then
    errors.raise("%s: input is %s, expected ?x?x%d", scope.label(self), check.shape_text(shape),
      self.dim)
  end
  local dropout = self:is_training() and self.dropout or 0
  return self.proj((core.attention_qkv(self.qkv(x), self.heads, true, dropout)))
end

function Attention:describe() return ("%d, %d heads"):format(self.dim, self.heads) end

return Attention
