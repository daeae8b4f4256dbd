-- lua/gpipe/nn/sequence/multihead.lua - `nn.MultiheadAttention`: positions attend to positions of
-- the same or of another sequence.
--
-- Parameters have PyTorch's names and layouts. Source: Vaswani et al. 2017; fewer heads of keys:
-- Ainslie et al. 2023, "GQA".

local core = require "gpipe.core"
local Linear = require "gpipe.nn.layer.linear"
local Module = require "gpipe.nn.module"
local attention = require "gpipe.tensor.attention"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local options = require "gpipe.options"
local parameter = require "gpipe.nn.parameter"
local rotary = require "gpipe.nn.sequence.rotary"
local scope = require "gpipe.nn.scope"

---@class nn.MultiheadAttention: nn.Module
---@field in_proj_weight gpipe.Tensor [(heads + 2 kv_heads) dim / heads, dim]: query, key, value
---@field in_proj_bias? gpipe.Tensor [(heads + 2 kv_heads) dim / heads]
---@field out_proj nn.Linear dim -> dim
local Attention = class.new("MultiheadAttention", Module, true)

local WHO = "nn.MultiheadAttention"
local OPTIONS = {
  kv_heads = { type = "integer", min = 1 },
  causal = { type = "boolean", default = false },
  dropout = { type = "number", default = 0, min = 0, max = 1 },
  bias = { type = "boolean", default = true },
  rotary = { type = { "boolean", "table" } },
  dtype = { choices = { "f32", "f64" }, default = "f32" },
}

local function check_divides(name, part, of, whole)
  if whole % part ~= 0 then
    errors.raise("%s: %s is %d and %s is %d, expected %s to divide %s", WHO, of, whole, name, part,
      name, of)
  end
end

--- Multi-head scaled dot-product attention.
---
--- Shapes: query [B, T, dim], key and value [B, S, dim] -> [B, T, dim]. A query alone attends to
--- itself; without value the keys are the values too. mask: as in gp.attention, bool (true: may
--- attend) or floats that are added, broadcast to [B, heads, T, S]. in_proj_weight starts as
--- nn.init.xavier_uniform(), biases start at 0.
--- Errors: heads that do not divide dim, kv_heads that do not divide heads, an odd size of heads
--- with rotary; when called, other shapes.
--- Source: PyTorch nn.MultiheadAttention with batch_first, whose boolean masks mean the opposite.
--- ```lua
--- local attention = nn.MultiheadAttention(16, 4, {kv_heads = 2, rotary = true})
--- local y = attention(gp.randn {2, 5, 16})                          -- self-attention
--- local seen = gp.ones({5, 7}):gt(0)                                -- of 5 queries and 7 keys
--- local z = attention(y, gp.randn {2, 7, 16}, nil, seen)            -- cross-attention
--- assert(z.shape[2] == 5)
--- ```
---@param dim integer
---@param heads integer divides dim
---@param opts? {kv_heads?: integer, causal?: boolean, dropout?: number, bias?: boolean,
---  rotary?: boolean|nn.Rotary, dtype?: "f32"|"f64"} kv_heads: heads of keys and values, each
---  shared by heads / kv_heads neighbouring heads of queries, default heads; causal: query i sees
---  the keys 1 .. i; dropout of the attention weights, in training mode only; rotary: queries and
---  keys are turned by their positions, true: {base = 10000, style = "halves"}
function Attention:init(dim, heads, opts)
  self.dim, self.heads = check.size(WHO, "dim", dim), check.size(WHO, "heads", heads)
  check_divides("heads", self.heads, "dim", self.dim)
  opts = options.check(WHO, opts, OPTIONS)
  self.kv_heads = opts.kv_heads or self.heads
  check_divides("kv_heads", self.kv_heads, "heads", self.heads)
  self.causal, self.dropout = opts.causal, opts.dropout
  local size = self.dim // self.heads
  self.rotary = rotary.read(WHO, opts.rotary, size)
  local rows, dtype = (self.heads + 2 * self.kv_heads) * size, { dtype = opts.dtype }
  self.in_proj_weight = parameter.Parameter({ rows, self.dim }, initial.xavier_uniform(), dtype)
  if opts.bias then
    self.in_proj_bias = parameter.Parameter({ rows }, initial.zeros(), dtype)
  end
  self.out_proj = Linear(self.dim, self.dim, { bias = opts.bias, dtype = opts.dtype })
  if opts.bias then
    self.out_proj.bias = parameter.Parameter({ self.dim }, initial.zeros(), dtype)
  end
end

local function check_sequence(self, name, x, rows)
  local shape = input.tensor(self, x, name).shape
  if #shape ~= 3 or shape[3] ~= self.dim or rows and shape[1] ~= rows then
    errors.raise_as("shape", "%s: %s is %s, expected %sx?x%d", scope.label(self), name,
      check.shape_text(shape), rows or "?", self.dim)
  end
end

-- Project x [B, T, dim] to the heads first .. first + count - 1 of the joint projection,
-- [B, T, count D].
local function project(self, x, first, count)
  local size = self.dim // self.heads
  local from, rows = (first - 1) * size + 1, count * size
  local bias = self.in_proj_bias and self.in_proj_bias:narrow(1, from, rows)
  return core.linear(x, self.in_proj_weight:narrow(1, from, rows), bias)
end

-- Split [B, T, .. D ..] into the heads first .. first + count - 1: [B, count, T, D].
local function heads_of(self, x, first, count)
  local shape, size = x.shape, self.dim // self.heads
  return x:narrow(3, (first - 1) * size + 1, count * size)
    :reshape({ shape[1], shape[2], count, size }):permute { 1, 3, 2, 4 }
end

local function joint_projection(self, x)
  return core.linear(x, self.in_proj_weight, self.in_proj_bias)
end

-- The queries, keys and values as heads; sequences that are the same tensor share a product.
local function projections(self, query, key, value)
  local h, g = self.heads, self.kv_heads
  if rawequal(key, query) and rawequal(value, query) then
    local all = joint_projection(self, query)
    return heads_of(self, all, 1, h), heads_of(self, all, h + 1, g),
      heads_of(self, all, h + g + 1, g)
  end
  local q = heads_of(self, project(self, query, 1, h), 1, h)
  if rawequal(key, value) then
    local both = project(self, key, h + 1, 2 * g)
    return q, heads_of(self, both, 1, g), heads_of(self, both, g + 1, g)
  end
  return q, heads_of(self, project(self, key, h + 1, g), 1, g),
    heads_of(self, project(self, value, h + g + 1, g), 1, g)
end

-- Reshape a mask of up to four dimensions as the op takes it: [B or 1, H or 1, T or 1, S].
local function four_dimensions(self, mask, length)
  local shape = input.tensor(self, mask, "mask").shape
  if #shape > 4 then
    errors.raise_as("shape", "%s: mask is %s, expected what broadcasts to ?x%dx?x%d",
      scope.label(self), check.shape_text(shape), self.heads, length)
  end
  while #shape < 4 do table.insert(shape, 1, 1) end
  mask = mask:reshape(shape)
  if shape[4] ~= 1 or length == 1 then return mask end
  return mask:expand { shape[1], shape[2], shape[3], length }
end

local function attend(self, query, key, value, mask, dropout)
  local q, k, v = projections(self, query, key, value)
  if self.rotary then q, k = rotary.turn(self.rotary, q), rotary.turn(self.rotary, k) end
  mask = mask and four_dimensions(self, mask, key.shape[2])
  local y = attention(q, k, v, { causal = self.causal, mask = mask, dropout = dropout })
  return y:permute({ 1, 3, 2, 4 }):reshape(query.shape)
end

function Attention:forward(query, key, value, mask)
  check_sequence(self, "query", query)
  key = key or query
  value = value or key
  local rows = query.shape[1]
  check_sequence(self, "key", key, rows)
  check_sequence(self, "value", value, rows)
  if value.shape[2] ~= key.shape[2] then
    errors.raise_as("shape", "%s: value is %s, expected as many positions as key, %s",
      scope.label(self), check.shape_text(value.shape), check.shape_text(key.shape))
  end
  local dropout = self:is_training() and self.dropout or 0
  local itself = rawequal(key, query) and rawequal(value, query)
  if itself and not mask and not self.rotary then
    return self.out_proj(core.attention_qkv(joint_projection(self, query),
      { heads = self.heads, groups = self.kv_heads, causal = self.causal, dropout = dropout }))
  end
  return self.out_proj(attend(self, query, key, value, mask, dropout))
end

function Attention:describe()
  local text = ("%d, %d heads"):format(self.dim, self.heads)
  if self.kv_heads < self.heads then text = ("%s, %d of keys"):format(text, self.kv_heads) end
  if self.causal then text = text .. ", causal" end
  return self.rotary and text .. ", rotary" or text
end

return Attention
