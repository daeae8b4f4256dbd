-- lua/gpipe/models/gpt2/layers.lua - GPT-2 as an nn.Sequential: embedding, blocks, head.
--
-- Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3:
-- norms in front of each part and one at the end, weights that lead into the residual stream scaled
-- by 1 / sqrt(2 layers); the head's matrix is the embedding's table.

local check = require "gpipe.nn.check"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"

local STD = 0.02

-- A Linear with GPT-2's initial values: normal weights, zero biases.
local function linear(from, to, c, scale)
  local layer = nn.Linear(from, to)
  layer.weight = nn.Parameter({ to, from }, c.init or nn.init.normal(0, STD * (scale or 1)))
  layer.bias = nn.Parameter({ to }, 0)
  return layer
end

-- ---- embedding ----------------------------------------------------------------------------------

local Embedding = nn.class("GPT2Embedding")

function Embedding:init(c)
  local init = { init = c.init or nn.init.normal(0, STD) }
  self.wte = nn.Embedding(c.vocabulary, c.width, init)
  self.wpe = nn.Embedding(c.context, c.width, init)
  self.drop = nn.Dropout(c.dropouts.embedding)
  self.context = c.context
end

-- ids [B, T] -> [B, T, C]
function Embedding:forward(ids)
  local shape = ids.shape
  if #shape ~= 2 or shape[2] > self.context then
    errors.raise_as("shape", "gpt2: the ids are %s, expected ?xT with T from 1 to %d",
      check.shape_text(shape), self.context)
  end
  return self.drop(self.wte(ids) + self.wpe.weight:narrow(1, 1, shape[2]))
end

-- ---- block --------------------------------------------------------------------------------------

local Block = nn.class("GPT2Block")

function Block:init(c)
  local width, into_stream = c.width, 1 / math.sqrt(2 * c.layers)
  self.ln_1 = nn.LayerNorm(width, { eps = c.eps })
  self.attn = nn.CausalSelfAttention(width, c.heads, { dropout = c.dropouts.attention })
  self.attn.qkv = linear(width, 3 * width, c)
  self.attn.proj = linear(width, width, c, into_stream)
  self.ln_2 = nn.LayerNorm(width, { eps = c.eps })
  self.fc = linear(width, c.inner, c)
  self.proj = linear(c.inner, width, c, into_stream)
  self.drop, self.activation = nn.Dropout(c.dropouts.residual), c.activation
end

-- x [B, T, C] -> [B, T, C]
function Block:forward(x)
  x = x + self.drop(self.attn(self.ln_1(x)))
  return x + self.drop(self.proj(self.fc(self.ln_2(x)):gelu(self.activation)))
end

-- ---- head ---------------------------------------------------------------------------------------

local Head = nn.class("GPT2Head")

function Head:init(c, table)
  self.ln_f = nn.LayerNorm(c.width, { eps = c.eps })
  self.out = nn.Linear(c.width, c.vocabulary, { bias = false })
  self.out.weight = c.tied and table
    or nn.Parameter({ c.vocabulary, c.width }, c.init or nn.init.normal(0, STD))
end

-- x [B, T, C] -> scores [B, T, V]
function Head:forward(x) return self.out(self.ln_f(x)) end

-- ---- model --------------------------------------------------------------------------------------

local configs = setmetatable({}, { __mode = "k" }) -- by the embedding, which is GPT-2's own

--- Make the layers of a whole configuration.
---@param c table all fields of gpt2.complete
---@return nn.Sequential
local function build(c)
  local embedding = Embedding(c)
  local layers = { { "embedding", embedding } }
  for i = 0, c.layers - 1 do layers[#layers + 1] = { "h_" .. i, Block(c) } end
  layers[#layers + 1] = { "head", Head(c, embedding.wte.weight) }
  configs[embedding] = c
  return nn.Sequential(layers)
end

--- The configuration that a model was made from; nil if it is no GPT-2.
local function config_of(model)
  local first = nn.is_module(model) and model:is(nn.Sequential) and model[1]
  return first and configs[first] or nil
end

return { build = build, config_of = config_of }
