-- lua/gpipe/nn/sequence/encoder_decoder.lua - `nn.Transformer`: an encoder, and a decoder that
-- reads its output.
--
-- It is one module, so a pipeline treats it as one layer; gp.models.transformer can be cut
-- anywhere.

local LayerNorm = require "gpipe.nn.layer.norm.layer_norm"
local Module = require "gpipe.nn.module"
local Sequential = require "gpipe.nn.sequential"
local check = require "gpipe.nn.check"
local class = require "gpipe.nn.class"
local options = require "gpipe.options"
local transformer = require "gpipe.nn.sequence.transformer"

local WHO = "nn.Transformer"

local OPTIONS = {
  encoder_layers = { type = "integer", default = 6, min = 1 },
  decoder_layers = { type = "integer", default = 6, min = 1 },
  ff = { type = "integer", default = 2048, min = 1 },
}
for name, option in pairs(transformer.OPTIONS) do OPTIONS[name] = option end

---@class nn.TransformerModelOptions: nn.TransformerOptions
---@field encoder_layers? integer 6
---@field decoder_layers? integer 6
---@field ff? integer 2048, width between the two Linears of a layer

---@class nn.Transformer: nn.Module
---@field encoder nn.Sequential layers, then an nn.LayerNorm
---@field decoder nn.Sequential layers, then an nn.LayerNorm
local Transformer = class.new("Transformer", Module, true)

-- PyTorch's stacks end in a norm, whether or not the layers have norms in front.
local function stack(make, count, sizes, opts)
  local layers = {}
  for i = 1, count do
    opts.carry = i < count
    layers[i] = make(sizes.dim, sizes.heads, sizes.ff, opts)
  end
  layers[count + 1] = LayerNorm(sizes.dim, { eps = opts.eps, dtype = opts.dtype })
  return Sequential(layers)
end

-- Select the options of a layer from those of the whole.
local function layer_options(opts, causal)
  local made = { causal = causal }
  for name in pairs(transformer.OPTIONS) do
    if name ~= "causal" then made[name] = opts[name] end
  end
  return made
end

--- An encoder of nn.TransformerEncoderLayers and a decoder of nn.TransformerDecoderLayers, each
--- followed by an nn.LayerNorm. The script provides embeddings, positions and the head.
---
--- Shapes: source [B, S, dim], target [B, T, dim] -> [B, T, dim]. It is called with (source,
--- target, source_mask, target_mask, memory_mask), with masks as for nn.MultiheadAttention (true:
--- may attend). `causal` applies to the decoder: a position of the target does not attend to later
--- ones.
--- Errors: those of nn.TransformerEncoderLayer; numbers of layers that are not positive integers.
--- Source: PyTorch nn.Transformer with batch_first, and its first values.
--- ```lua
--- local model = nn.Transformer(16, 4, {encoder_layers = 1, decoder_layers = 2, ff = 32,
---   causal = true})
--- assert(model(gp.randn {2, 7, 16}, gp.randn {2, 5, 16}).shape[2] == 5)
--- ```
---@param dim integer
---@param heads integer divides dim
---@param opts? nn.TransformerModelOptions
function Transformer:init(dim, heads, opts)
  opts = options.check(WHO, opts, OPTIONS)
  self.dim, self.heads = check.size(WHO, "dim", dim), check.size(WHO, "heads", heads)
  local sizes = { dim = self.dim, heads = self.heads, ff = opts.ff }
  self.encoder = stack(transformer.TransformerEncoderLayer, opts.encoder_layers, sizes,
    layer_options(opts, false))
  self.decoder = stack(transformer.TransformerDecoderLayer, opts.decoder_layers, sizes,
    layer_options(opts, opts.causal))
end

function Transformer:forward(source, target, source_mask, target_mask, memory_mask)
  return self.decoder(target, self.encoder(source, source_mask), target_mask, memory_mask)
end

function Transformer:describe() return ("%d, %d heads"):format(self.dim, self.heads) end

return Transformer
