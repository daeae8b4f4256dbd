-- lua/gpipe/models/transformer_lm.lua - a Transformer that predicts the next token.
--
-- Source: Vaswani et al. 2017, one half of figure 1, with a causal mask. The layers are those of
-- PyTorch's tutorial on language models, nn.TransformerEncoderLayer.

local Positions = require "gpipe.models.positions"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

local function size(default) return { type = "integer", min = 1, default = default } end
local OPTIONS = {
  vocabulary = { type = "integer", min = 1, required = true },
  layers = size(6), width = size(512), heads = size(8), ff = size(), context = size(1024),
  dropout = { type = "number", min = 0, max = 1, default = 0.1 },
  activation = { choices = { "relu", "gelu" }, default = "relu" },
  norm_first = { type = "boolean", default = false },
  positions = { choices = { "waves", "learned" }, default = "waves" },
  tied = { type = "boolean", default = false },
}

--- A Transformer language model: an embedding with positions, `layers` causal encoder layers, and a
--- head. With `norm_first` a norm comes before the head.
---
--- Shapes: ids [B, T] -> scores [B, T, vocabulary], T up to `context`. It has layers + 2 entries,
--- with `norm_first` layers + 3, and can be cut between any two; with `tied` the head's matrix is
--- the embedding's table, wherever both lie.
--- Errors: no vocabulary, heads that do not divide width, an unknown option.
--- ```lua
--- local model = gp.models.transformer_lm {vocabulary = 100, layers = 2, width = 16, heads = 2}
--- assert(#model == 4)
--- assert(model(gp.tensor({{1, 2, 3}}, {dtype = "i64"})).shape[3] == 100)
--- ```
---@param opts {vocabulary: integer, layers?: integer, width?: integer, heads?: integer, ff?: integer,
---  context?: integer, dropout?: number, activation?: "relu"|"gelu", norm_first?: boolean,
---  positions?: "waves"|"learned", tied?: boolean} ff: 4 width; positions: sines, or learned
---@return nn.Sequential
return function(opts)
  local o = options.check("gp.models.transformer_lm", opts, OPTIONS)
  o.learned = o.positions == "learned"
  local embedding = Positions(o)
  local layers = { { "embedding", embedding } }
  for i = 1, o.layers do
    layers[#layers + 1] = { "layer_" .. i, nn.TransformerEncoderLayer(o.width, o.heads,
      o.ff or 4 * o.width, { dropout = o.dropout, activation = o.activation,
        norm_first = o.norm_first, causal = true }) }
  end
  if o.norm_first then layers[#layers + 1] = { "norm", nn.LayerNorm(o.width) } end
  local head = nn.Linear(o.width, o.vocabulary)
  if o.tied then head.weight = embedding.embedding.weight end
  layers[#layers + 1] = { "head", head }
  return nn.Sequential(layers)
end
