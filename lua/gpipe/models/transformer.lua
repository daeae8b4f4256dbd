-- lua/gpipe/models/transformer.lua - the Transformer of encoder and decoder.
--
-- Source: Vaswani et al. 2017, figure 1; norms in front: Xiong et al. 2020. What one half does not
-- use is handed through it: target ids through the encoder, the memory through the decoder.

local Positions = require "gpipe.models.positions"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

-- ---- layers -------------------------------------------------------------------------------------

local Source = nn.class("TransformerSource")
function Source:init(o) self.positions = Positions(o) end
function Source:forward(source, target) return self.positions(source), target end

-- A layer for the first of two values.
local Beside = nn.class("TransformerEncoding")
function Beside:init(layer) self.layer = layer end
function Beside:forward(x, target) return self.layer(x), target end

local Target = nn.class("TransformerTarget")
function Target:init(o, table_of) self.positions = Positions(o, table_of) end
function Target:forward(memory, target) return self.positions(target), memory end

-- ---- the model ----------------------------------------------------------------------------------

local function size(default) return { type = "integer", min = 1, default = default } end
local OPTIONS = {
  vocabulary = { type = "integer", min = 1, required = true },
  encoder_layers = size(6), decoder_layers = size(6), width = size(512), heads = size(8),
  ff = size(2048), context = size(1024),
  dropout = { type = "number", min = 0, max = 1, default = 0.1 },
  activation = { choices = { "relu", "gelu" }, default = "relu" },
  norm_first = { type = "boolean", default = false }, tied = { type = "boolean", default = true },
}

--- A Transformer with encoder and decoder, for translation and the like.
---
--- Shapes: source ids [B, S] and target ids [B, T] -> scores [B, T, vocabulary]; called with both,
--- in a pipeline as `pipe:step({source, target}, next_target)`. An nn.Sequential of
--- encoder_layers + decoder_layers + 3 entries (with `norm_first` two norms more) that can be cut
--- between any two. With `tied` the tables of source and target and the head's matrix are one
--- parameter. There is no mask for padding: a padded source is attended to like any other id.
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
---  activation?: "relu"|"gelu", norm_first?: boolean, tied?: boolean}
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
  if o.norm_first then add("encoder_norm", Beside(nn.LayerNorm(o.width))) end
  add("target", Target(o, shared))
  how.causal = true
  for i = 1, o.decoder_layers do
    how.carry = i < o.decoder_layers
    add("decoder_" .. i, nn.TransformerDecoderLayer(o.width, o.heads, o.ff, how))
  end
  if o.norm_first then add("decoder_norm", nn.LayerNorm(o.width)) end
  local head = nn.Linear(o.width, o.vocabulary)
  if shared then head.weight = shared end
  add("head", head)
  return nn.Sequential(layers)
end
