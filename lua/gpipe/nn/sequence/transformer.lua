-- lua/gpipe/nn/sequence/transformer.lua - `nn.TransformerEncoderLayer`,
-- `nn.TransformerDecoderLayer` and stacks of them.
--
-- Parameters have PyTorch's names, layouts and order, so that its files can be loaded. Source:
-- Vaswani et al. 2017; norms in front: Xiong et al. 2020.

local Dropout = require "gpipe.nn.layer.dropout"
local LayerNorm = require "gpipe.nn.layer.norm.layer_norm"
local Linear = require "gpipe.nn.layer.linear"
local Module = require "gpipe.nn.module"
local MultiheadAttention = require "gpipe.nn.sequence.multihead"
local Sequential = require "gpipe.nn.sequential"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local create = require "gpipe.tensor.create"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"

local transformer = {}

local OPTIONS = {
  dropout = { type = "number", default = 0.1, min = 0, max = 1 },
  activation = { choices = { "relu", "gelu" }, default = "relu" },
  norm_first = { type = "boolean", default = false },
  causal = { type = "boolean", default = false },
  kv_heads = { type = "integer", min = 1 },
  rotary = { type = { "boolean", "table" } },
  bias = { type = "boolean", default = true },
  eps = { type = "number", default = 1e-5, above = 0 },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

transformer.OPTIONS = OPTIONS -- those of all layers

local CARRYING = { carry = { type = "boolean", default = false } } -- options of single layers
for name, option in pairs(OPTIONS) do CARRYING[name] = option end

---@class nn.TransformerOptions
---@field dropout? number 0.1; on the attention weights and after every part, in training mode only
---@field activation? "relu"|"gelu" "relu"
---@field norm_first? boolean false; true: each part normalises its input, instead of the sum after
--- it
---@field causal? boolean false; true: self-attention does not attend to later positions
---@field kv_heads? integer as in nn.MultiheadAttention, for both attentions
---@field rotary? boolean|nn.Rotary as in nn.MultiheadAttention, for self-attention
---@field bias? boolean true; false: Linears and projections have no bias
---@field eps? number 1e-5, of the norms
---@field dtype? "f32"|"f64"

-- ---- parts of both layers --------------------------------------------------------------------

local FEED_FORWARD = 2048 -- PyTorch's default

local function new_attention(self, opts, more)
  return MultiheadAttention(self.dim, self.heads, {
    kv_heads = opts.kv_heads, dropout = opts.dropout, bias = opts.bias, dtype = opts.dtype,
    causal = more.causal, rotary = more.rotary,
  })
end

local function set_up(self, who, dim, heads, ff, opts)
  self.dim, self.heads = check.size(who, "dim", dim), check.size(who, "heads", heads)
  self.ff = check.size(who, "ff", ff == nil and FEED_FORWARD or ff)
  self.norm_first, self.activation = opts.norm_first, opts.activation
  self.self_attn = new_attention(self, opts, opts)
end

-- Add the Linears and norms after the attentions, in PyTorch's order.
local function add_parts(self, opts, norms)
  local linear = { bias = opts.bias, dtype = opts.dtype }
  self.linear1 = Linear(self.dim, self.ff, linear)
  self.linear2 = Linear(self.ff, self.dim, linear)
  for i = 1, norms do
    self["norm" .. i] = LayerNorm(self.dim, { eps = opts.eps, dtype = opts.dtype })
  end
  self.dropout = Dropout(opts.dropout)
end

local function feed_forward(self, x)
  local hidden = self.linear1(x)
  hidden = self.activation == "gelu" and hidden:gelu("erf") or hidden:relu()
  return self.linear2(self.dropout(hidden))
end

-- x + part(x), normalised before the part or after the sum.
local function residual(self, norm, x, part)
  if self.norm_first then return x + self.dropout(part(norm(x))) end
  return norm(x + self.dropout(part(x)))
end

local function describe(self)
  return ("%d, %d heads, %d%s"):format(self.dim, self.heads, self.ff,
    self.norm_first and ", norm first" or "")
end

-- ---- encoder ---------------------------------------------------------------------------------

---@class nn.TransformerEncoderLayer: nn.Module
---@field self_attn nn.MultiheadAttention
---@field linear1 nn.Linear dim -> ff
---@field linear2 nn.Linear ff -> dim
---@field norm1 nn.LayerNorm of self-attention
---@field norm2 nn.LayerNorm of the feed-forward part
local Encoder = class.new("TransformerEncoderLayer", Module, true)

--- Self-attention and a feed-forward part of two Linears, each added to its input.
---
--- Shapes: [B, T, dim] -> [B, T, dim]. It is called with (x, mask); the mask is as for
--- nn.MultiheadAttention. Without a mask and with `causal` it is a layer of GPT. With `carry` it
--- also returns the mask, if there is one, for the next layer of a Sequential.
--- Errors: those of nn.MultiheadAttention; sizes that are not positive integers.
--- Source: PyTorch nn.TransformerEncoderLayer with batch_first.
--- ```lua
--- local layer = nn.TransformerEncoderLayer(16, 4, 32, {norm_first = true, activation = "gelu"})
--- local y = layer(gp.randn {2, 5, 16})
--- ```
---@param dim integer
---@param heads integer divides dim
---@param ff? integer width between the two Linears; 2048
---@param opts? nn.TransformerOptions|{carry?: boolean}
function Encoder:init(dim, heads, ff, opts)
  local who = "nn.TransformerEncoderLayer"
  opts = options.check(who, opts, CARRYING)
  set_up(self, who, dim, heads, ff, opts)
  self.carry = opts.carry
  add_parts(self, opts, 2)
end

function Encoder:forward(x, mask)
  input.tensor(self, x)
  x = residual(self, self.norm1, x, function(y) return self.self_attn(y, nil, nil, mask) end)
  x = residual(self, self.norm2, x, function(y) return feed_forward(self, y) end)
  if self.carry and mask then return x, mask end
  return x
end

Encoder.describe = describe

-- ---- decoder ---------------------------------------------------------------------------------

---@class nn.TransformerDecoderLayer: nn.Module
---@field self_attn nn.MultiheadAttention
---@field multihead_attn nn.MultiheadAttention of the memory
---@field linear1 nn.Linear dim -> ff
---@field linear2 nn.Linear ff -> dim
---@field norm1 nn.LayerNorm of self-attention
---@field norm2 nn.LayerNorm of the attention to the memory
---@field norm3 nn.LayerNorm of the feed-forward part
local Decoder = class.new("TransformerDecoderLayer", Module, true)

--- Self-attention, attention to the memory of an encoder, and a feed-forward part.
---
--- Shapes: x [B, T, dim], memory [B, S, dim] -> [B, T, dim]. It is called with (x, memory, mask,
--- memory_mask), with masks as for nn.MultiheadAttention. Self-attention attends to later positions
--- unless `causal` is set, as in PyTorch. With `carry` it also returns the memory and the masks,
--- for the next layer of a Sequential.
--- Errors: those of nn.TransformerEncoderLayer; no memory.
--- Source: PyTorch nn.TransformerDecoderLayer with batch_first.
--- ```lua
--- local layer = nn.TransformerDecoderLayer(16, 4, 32, {causal = true})
--- local y = layer(gp.randn {2, 5, 16}, gp.randn {2, 7, 16})
--- ```
---@param dim integer
---@param heads integer divides dim
---@param ff? integer width between the two Linears; 2048
---@param opts? nn.TransformerOptions|{carry?: boolean}
function Decoder:init(dim, heads, ff, opts)
  local who = "nn.TransformerDecoderLayer"
  opts = options.check(who, opts, CARRYING)
  set_up(self, who, dim, heads, ff, opts)
  self.carry = opts.carry
  self.multihead_attn = new_attention(self, opts, {})
  add_parts(self, opts, 3)
end

-- The values for the next layer. None may be missing between others, so a mask that hides nothing
-- stands in for a missing one.
local function carried(x, memory, mask, memory_mask)
  if memory_mask then
    return x, memory, mask or create.ones({ x.shape[1], 1, 1, 1 }):gt(0), memory_mask
  end
  if mask then return x, memory, mask end
  return x, memory
end

function Decoder:forward(x, memory, mask, memory_mask)
  input.tensor(self, x)
  input.tensor(self, memory, "memory")
  x = residual(self, self.norm1, x, function(y) return self.self_attn(y, nil, nil, mask) end)
  x = residual(self, self.norm2, x, function(y)
    return self.multihead_attn(y, memory, nil, memory_mask)
  end)
  x = residual(self, self.norm3, x, function(y) return feed_forward(self, y) end)
  if self.carry then return carried(x, memory, mask, memory_mask) end
  return x
end

Decoder.describe = describe

-- ---- stacks ----------------------------------------------------------------------------------

-- Stack layers of one kind. All but the last pass on what they were called with; with norms in
-- front, one more norm follows the last layer.
local function stack(who, make, sizes, opts)
  local layers, layer_opts = {}, options.check(who, opts, OPTIONS)
  local count = check.size(who, "count", sizes.count)
  for i = 1, count do
    layer_opts.carry = i < count
    layers[i] = make(sizes.dim, sizes.heads, sizes.ff, layer_opts)
  end
  if layer_opts.norm_first then
    layers[#layers + 1] = LayerNorm(sizes.dim, { eps = layer_opts.eps, dtype = layer_opts.dtype })
  end
  return Sequential(layers)
end

--- A stack of nn.TransformerEncoderLayer: an nn.Sequential that can be cut between any two layers.
--- With `norm_first` an nn.LayerNorm comes last. If it is called with (x, mask), every layer gets
--- the mask, also across cuts. In a pipeline the mask is a second input, `pipe:step({x, mask}, y)`,
--- and has a row for each row of x, [B, 1, 1, T] for padding (true: may attend).
---
--- Shapes: [B, T, dim] -> [B, T, dim].
--- Errors: those of nn.TransformerEncoderLayer; a count that is not a positive integer.
--- ```lua
--- local encoder = nn.TransformerEncoder(6, 16, 4, 32, {norm_first = true})
--- assert(#encoder == 7 and encoder(gp.randn {2, 5, 16}).shape[3] == 16)
--- ```
---@param count integer layers
---@param dim integer
---@param heads integer divides dim
---@param ff? integer 2048
---@param opts? nn.TransformerOptions
---@return nn.Sequential
function transformer.TransformerEncoder(count, dim, heads, ff, opts)
  return stack("nn.TransformerEncoder", Encoder,
    { count = count, dim = dim, heads = heads, ff = ff }, opts)
end

--- A stack of nn.TransformerDecoderLayer: an nn.Sequential that can be cut between any two layers.
--- Its layers pass the memory and the masks on, and the last one returns only x; with `norm_first`
--- an nn.LayerNorm comes last. It is called like nn.TransformerDecoderLayer.
---
--- Shapes: x [B, T, dim], memory [B, S, dim] -> [B, T, dim].
--- Errors: those of nn.TransformerDecoderLayer; a count that is not a positive integer.
--- ```lua
--- local decoder = nn.TransformerDecoder(2, 16, 4, 32, {causal = true})
--- local y = decoder(gp.randn {2, 5, 16}, gp.randn {2, 7, 16})
--- ```
---@param count integer layers
---@param dim integer
---@param heads integer divides dim
---@param ff? integer 2048
---@param opts? nn.TransformerOptions
---@return nn.Sequential
function transformer.TransformerDecoder(count, dim, heads, ff, opts)
  return stack("nn.TransformerDecoder", Decoder,
    { count = count, dim = dim, heads = heads, ff = ff }, opts)
end

transformer.TransformerEncoderLayer, transformer.TransformerDecoderLayer = Encoder, Decoder
return transformer
