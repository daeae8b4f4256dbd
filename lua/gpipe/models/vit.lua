-- lua/gpipe/models/vit.lua - the Vision Transformer.
--
-- Source: Dosovitskiy et al. 2020, "An Image is Worth 16x16 Words", figure 1: patches and a class
-- token with learned positions, encoder layers with norms in front, a head for the class token.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"
local options = require "gpipe.options"
local patches = require "gpipe.models.patches"

-- ---- layers -------------------------------------------------------------------------------------

local Embedding = nn.class("ViTEmbedding")

function Embedding:init(o, count)
  self.patches = patches.Patches(o.channels, o.width, o.patch)
  self.class_token = nn.Parameter({ 1, 1, o.width }, 0)
  self.places = nn.Parameter({ 1, count + 1, o.width }, nn.init.normal(0, 0.02))
  self.dropout = nn.Dropout(o.dropout)
  self.image, self.channels = o.image, o.channels
end

-- [N, channels, image, image] -> [N, patches + 1, width]
function Embedding:forward(x)
  local s = x.shape
  if #s ~= 4 or s[2] ~= self.channels or s[3] ~= self.image or s[4] ~= self.image then
    errors.raise_as("shape", "vit: the images are %s, expected ?x%dx%dx%d", table.concat(s, "x"),
      self.channels, self.image, self.image)
  end
  local y = self.patches(x)
  local first = self.class_token:expand { s[1], 1, y.shape[3] }
  return self.dropout(core.concat({ first, y }, 2) + self.places)
end

-- The class token: [N, T, C] -> [N, C].
local First = nn.class("ViTClass")
function First:forward(x) return x:select(2, 1) end -- luacheck: ignore 212

-- ---- the model ----------------------------------------------------------------------------------

local function size(default) return { type = "integer", min = 1, default = default } end
local OPTIONS = {
  image = size(224), patch = size(16), channels = size(3), layers = size(12), width = size(768),
  heads = size(12), ff = size(), classes = size(1000),
  dropout = { type = "number", min = 0, max = 1, default = 0 },
}

--- A Vision Transformer; the default is ViT-B/16 with 86,567,656 parameters.
---
--- Shapes: [N, channels, image, image] -> [N, classes]. It has layers + 4 entries and can be cut
--- between any two.
--- Errors: a patch that does not divide image, heads that do not divide width, an unknown option.
--- ```lua
--- local model = gp.models.vit {image = 16, patch = 4, layers = 2, width = 16, heads = 2,
---   classes = 5}
--- assert(#model == 6 and model(gp.zeros {2, 3, 16, 16}).shape[2] == 5)
--- ```
---@param opts? {image?: integer, patch?: integer, channels?: integer, layers?: integer,
---  width?: integer, heads?: integer, ff?: integer, classes?: integer, dropout?: number} ff: 4
---  width
---@return nn.Sequential
return function(opts)
  local o = options.check("gp.models.vit", opts, OPTIONS)
  local layers = { { "embedding",
    Embedding(o, patches.count("gp.models.vit", o.image, o.patch)) } }
  for i = 1, o.layers do
    layers[#layers + 1] = { "layer_" .. i, nn.TransformerEncoderLayer(o.width, o.heads,
      o.ff or 4 * o.width, { dropout = o.dropout, activation = "gelu", norm_first = true,
        eps = 1e-6 }) }
  end
  layers[#layers + 1] = { "norm", nn.LayerNorm(o.width, { eps = 1e-6 }) }
  layers[#layers + 1] = { "class", First() }
  layers[#layers + 1] = { "head", nn.Linear(o.width, o.classes) }
  return nn.Sequential(layers)
end
