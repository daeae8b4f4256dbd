-- lua/gpipe/models/vgg.lua - VGG: stacks of 3x3 convolutions between poolings, and three linear
-- layers.
--
-- Source: Simonyan & Zisserman 2014, table 1: configurations A, B, D, E.

local List = require "gpipe.models.list"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

-- Convolutions of the five blocks.
local DEPTHS = {
  [11] = { 1, 1, 2, 2, 2 },
  [13] = { 2, 2, 2, 2, 2 },
  [16] = { 2, 2, 3, 3, 3 },
  [19] = { 2, 2, 4, 4, 4 },
}
local WIDTHS = { 64, 128, 256, 512, 512 }

local OPTIONS = { classes = { type = "integer", default = 1000, min = 1 },
  batch_norm = { type = "boolean", default = false } }

local function add_classifier(layers, classes)
  layers:add("flat", nn.Flatten())
  local width = 512 * 7 * 7
  for i = 1, 2 do
    layers:add("fc" .. i, nn.Linear(width, 4096))
    layers:add({ "fc" .. i, "relu" }, nn.ReLU())
    layers:add({ "fc" .. i, "dropout" }, nn.Dropout(0.5))
    width = 4096
  end
  layers:add("fc3", nn.Linear(width, classes))
end

--- A VGG network for images of 3 channels. Sizes other than 224 x 224 are averaged to 7 x 7 before
--- the linear layers.
---
--- Shapes: [N, 3, H, W] -> [N, classes], H and W from 32 on. VGG-16 has 138,357,544 parameters.
--- Errors: another depth, an unknown option.
--- ```lua
--- local model = gp.models.vgg(11, {classes = 10, batch_norm = true})
--- assert(#model > 30)
--- ```
---@param depth 11|13|16|19
---@param opts? {classes?: integer, batch_norm?: boolean}
---@return nn.Sequential
return function(depth, opts)
  local o, blocks = options.check("gp.models.vgg", opts, OPTIONS), DEPTHS[depth]
  if not blocks then
    errors.raise("gp.models.vgg: depth is %s, expected 11, 13, 16 or 19", errors.show(depth))
  end
  local layers, from = List.new(), 3
  for b, convs in ipairs(blocks) do
    for i = 1, convs do
      local name = ("conv%d_%d"):format(b, i)
      layers:add(name, nn.Conv2d(from, WIDTHS[b], 3, { padding = 1 }))
      if o.batch_norm then layers:add({ name, "bn" }, nn.BatchNorm2d(WIDTHS[b])) end
      layers:add({ name, "relu" }, nn.ReLU())
      from = WIDTHS[b]
    end
    layers:add("pool" .. b, nn.MaxPool2d(2))
  end
  layers:add("average", nn.AdaptiveAvgPool2d(7))
  add_classifier(layers, o.classes)
  return nn.Sequential(layers)
end
