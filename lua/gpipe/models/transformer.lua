-- lua/gpipe/models/transformer.lua - the Transformer of encoder and decoder.
--
-- Source: Vaswani et al. 2017, figure 1; norms in front: Xiong et al. 2020. Values that one half
-- does not use pass through it: target ids through the encoder, the memory through the decoder, and
-- the mask of a padded source through both.

local Positions = require "gpipe.models.positions"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

-- ---- layers -------------------------------------------------------------------------------------

local Source = nn.class("TransformerSource")
function Source:init(o)
  self.positions = Positions(o)
  self.padding = o.padding
end

local HIDDEN = -1e9 -- exp makes this 0 beside any score

-- Added to the scores of attention: [B, 1, 1, S].
local function mask_of(source, padding)
  local rows, length = source.shape[1], source.shape[2]
  return source:eq(padding):to("f32"):reshape { rows, 1, 1, length } * HIDDEN
end

function Source:forward(source, target)
  if not self.padding then return self.positions(source), target end
  return self.positions(source), target, mask_of(source, self.padding)
end

-- Apply a layer to the first of several values and pass the others on; attention gets the mask.
local Beside = nn.class("TransformerEncoding")
function Beside:init(layer, is_norm) self.layer, self.is_norm = layer, is_norm end
function Beside:forward(x, target, mask)
  if mask == nil then return self.layer(x), target end
  if self.is_norm then return self.layer(x), target, mask end
  return self.layer(x, mask), target, mask
end

local Target = nn.class("TransformerTarget")
function Target:init(o, table_of) self.positions = Positions(o, table_of) end
function Target:forward(memory, target, mask)
  if mask == nil then return self.positions(target), memory end
  return self.positions(target), memory, mask
end

-- A layer of the decoder that does not attend to padding in the memory.
local Masked = nn.class("TransformerDecoding")
function Masked:init(layer, is_last) self.layer, self.is_last = layer, is_last end
function Masked:forward(x, memory, mask)
  x = self.layer(x, memory, nil, mask)
  if self.is_last then return x end
  return x, memory, mask
end

-- ---- the model ----------------------------------------------------------------------------------

local function size(default) return { type = "integer", min = 1, default = default } end
local OPTIONS = {
  vocabulary = { type = "integer", min = 1, required = true },
  encoder_layers = size(6), decoder_layers = size(6), width = size(512), heads = size(8),
  ff = size(2048), context = size(1024),
  dropout = { type = "number", min = 0, max = 1, default = 0.1 },
  activation = { choices = { "relu", "gelu" }, default = "relu" },
  padding = { type = "integer", min = 0 },
  norm_first = { type = "boolean", default = false }, tied = { type = "boolean", default = true },
}

--- A Transformer with encoder and decoder, for translation and the like.
---
--- Shapes: source ids [B, S] and target ids [B, T] -> scores [B, T, vocabulary]; it is called with
--- both, in a pipeline as `pipe:step({source, target}, next_target)`. It is an nn.Sequential of
--- encoder_layers + decoder_layers + 3 entries (with `norm_first` two norms more) that can be cut
--- between any two. With `tied` the tables of source and target and the head's matrix are one
--- parameter. `padding` is an id that fills up sources of different lengths: no attention sees it.
--- (Targets are padded at the end, where causal attention does not look; `ignore_index` of the loss
--- ignores the padding.)
--- Errors: no vocabulary, heads that do not divide width, an unknown option.
--- ```lua
--- local model = gp.models.transformer {vocabulary = 50, width = 16, heads = 2, ff = 32,
---   encoder_layers = 1, decoder_layers = 2}
--- local source = gp.tensor({{1, 2, 3}}, {dtype = "i64"})
--- local target = gp.tensor({{4, 5}}, {dtype = "i64"})
--- assert(#model == 6 and model(source, target).shape[2] == 2)
--- ```
---@param opts {vocabulary: integer, encoder_layers?: integer, decoder_layers?: integer,
---  width?: integer, heads?: integer, ff?: integer, context?: integer, dropout?: number,
---  activation?: "relu"|"gelu", padding?: integer, norm_first?: boolean, tied?: boolean}
---@return nn.Sequential
return function(opts)
  local o = options.check("gp.models.transformer", opts, OPTIONS)
  local how = { dropout = o.dropout, activation = o.activation, norm_first = o.norm_first }
  local source = Source(o)
  local shared = o.tied and source.positions.embedding.weight or nil
  local layers = { { "source", source } }
  local function add(name, layer) layers[#layers + 1] = { name, layer } end
  for i = 1, o.encoder_layers do
    add("encoder_" .. i, Beside(nn.TransformerEncoderLayer(o.width, o.heads, o.ff, how)))
  end
  if o.norm_first then add("encoder_norm", Beside(nn.LayerNorm(o.width), true)) end
  add("target", Target(o, shared))
  how.causal = true
  for i = 1, o.decoder_layers do
    local is_last = i == o.decoder_layers
    how.carry = not is_last and not o.padding
    local layer = nn.TransformerDecoderLayer(o.width, o.heads, o.ff, how)
    add("decoder_" .. i, o.padding and Masked(layer, is_last) or layer)
  end
  if o.norm_first then add("decoder_norm", nn.LayerNorm(o.width)) end
  local head = nn.Linear(o.width, o.vocabulary)
  if shared then head.weight = shared end
  add("head", head)
  return nn.Sequential(layers)
end
