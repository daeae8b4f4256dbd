-- lua/gpipe/models/mlp_mixer.lua - the MLP-Mixer: products along patches, then along channels.
--
-- Source: Tolstikhin et al. 2021, "MLP-Mixer: An all-MLP Architecture for Vision", figure 1.

local nn = require "gpipe.nn"
local options = require "gpipe.options"
local patches = require "gpipe.models.patches"

local Block = nn.class("MixerBlock")

function Block:init(o, count)
  self.norm1 = nn.LayerNorm(o.width, { eps = 1e-6 })
  self.norm2 = nn.LayerNorm(o.width, { eps = 1e-6 })
  self.tokens1, self.tokens2 = nn.Linear(count, o.token_ff), nn.Linear(o.token_ff, count)
  self.channels1, self.channels2 = nn.Linear(o.width, o.ff), nn.Linear(o.ff, o.width)
end

-- [N, T, C] -> [N, T, C]
function Block:forward(x)
  local y = self.norm1(x):transpose(2, 3)
  x = x + self.tokens2(self.tokens1(y):gelu "erf"):transpose(2, 3)
  return x + self.channels2(self.channels1(self.norm2(x)):gelu "erf")
end

local function size(default) return { type = "integer", min = 1, default = default } end
local OPTIONS = {
  image = size(224), patch = size(16), channels = size(3), layers = size(12), width = size(768),
  token_ff = size(384), ff = size(3072), classes = size(1000),
}

--- An MLP-Mixer; the default is Mixer-B/16 with 59,880,472 parameters.
---
--- Shapes: [N, channels, image, image] -> [N, classes]. It has layers + 4 entries and can be cut
--- between any two.
--- Errors: a patch that does not divide image, an unknown option.
--- ```lua
--- local model = gp.models.mlp_mixer {image = 8, patch = 4, layers = 1, width = 16, token_ff = 8,
---   ff = 32, classes = 5}
--- assert(#model == 5 and model(gp.zeros {2, 3, 8, 8}).shape[2] == 5)
--- ```
---@param opts? {image?: integer, patch?: integer, channels?: integer, layers?: integer,
---  width?: integer, token_ff?: integer, ff?: integer, classes?: integer}
---@return nn.Sequential
return function(opts)
  local o = options.check("gp.models.mlp_mixer", opts, OPTIONS)
  local count = patches.count("gp.models.mlp_mixer", o.image, o.patch)
  local layers = { { "patches", patches.Patches(o.channels, o.width, o.patch) } }
  for i = 1, o.layers do layers[#layers + 1] = { "block_" .. i, Block(o, count) } end
  layers[#layers + 1] = { "norm", nn.LayerNorm(o.width, { eps = 1e-6 }) }
  layers[#layers + 1] = { "mean", patches.Mean() }
  layers[#layers + 1] = { "head", nn.Linear(o.width, o.classes) }
  return nn.Sequential(layers)
end
