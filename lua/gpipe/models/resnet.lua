-- lua/gpipe/models/resnet.lua - residual networks for images, flat: one layer a line of the paper's
-- table, with the shortcut as a skip from the first to the last layer of a block.
--
-- Source: He et al. 2015, "Deep Residual Learning"; the stride of a bottleneck is in its 3x3
-- convolution (torchvision's "v1.5"); the layers are those of torchgpipe's benchmark.

local List = require "gpipe.models.list"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

-- Blocks of the four stages, and whether they are bottlenecks.
local DEPTHS = {
  [18] = { blocks = { 2, 2, 2, 2 } },
  [34] = { blocks = { 3, 4, 6, 3 } },
  [50] = { blocks = { 3, 4, 6, 3 }, bottleneck = true },
  [101] = { blocks = { 3, 4, 23, 3 }, bottleneck = true },
  [152] = { blocks = { 3, 8, 36, 3 }, bottleneck = true },
}

-- ---- layers -------------------------------------------------------------------------------------

local function conv(from, to, kernel, stride)
  local layer = nn.Conv2d(from, to, kernel,
    { stride = stride, padding = kernel // 2, bias = false })
  layer.weight = nn.Parameter({ to, from, kernel, kernel },
    nn.init.kaiming_normal { mode = "fan_out", nonlinearity = "relu" })
  return layer
end

-- The end of a block: adds the block's input, halved and widened if the block does that.
local Shortcut = nn.class("Shortcut", nil, { pop = { "identity" } })
function Shortcut:init(from, to, stride)
  if from == to and stride == 1 then return end
  self.downsample = nn.Sequential { conv(from, to, 1, stride), nn.BatchNorm2d(to) }
end
function Shortcut:forward(x)
  local identity = self:pop "identity"
  return x + (self.downsample and self.downsample(identity) or identity)
end

-- ---- blocks -------------------------------------------------------------------------------------

-- Add a block: convolutions as {width, kernel, stride}, each but the last followed by a ReLU.
local function add_block(layers, name, from, convs, stride)
  local names, width = nn.namespace(), from
  layers:add({ name, "identity" }, nn.Stash("identity", { namespace = names }))
  for i, c in ipairs(convs) do
    layers:add({ name, "conv" .. i }, conv(width, c[1], c[2], c[3]))
    layers:add({ name, "bn" .. i }, nn.BatchNorm2d(c[1]))
    if i < #convs then layers:add({ name, "relu" .. i }, nn.ReLU()) end
    width = c[1]
  end
  layers:add({ name, "residual" }, Shortcut(from, width, stride):isolate(names))
  layers:add({ name, "relu" .. #convs }, nn.ReLU())
  return width
end

local function convs_of(planes, stride, bottleneck)
  if bottleneck then return { { planes, 1, 1 }, { planes, 3, stride }, { 4 * planes, 1, 1 } } end
  return { { planes, 3, stride }, { planes, 3, 1 } }
end

local function add_stages(layers, blocks, bottleneck)
  local width = 64
  for stage, count in ipairs(blocks) do
    for block = 1, count do
      local stride = stage > 1 and block == 1 and 2 or 1
      width = add_block(layers, ("layer%d_%d"):format(stage, block - 1), width,
        convs_of(64 << stage - 1, stride, bottleneck), stride)
    end
  end
  return width
end

-- ---- the model ----------------------------------------------------------------------------------

local function check_blocks(blocks)
  for i = 1, math.max(4, #blocks) do
    if math.type(blocks[i]) ~= "integer" or blocks[i] < 1 or i > 4 then
      errors.raise("gp.models.resnet: blocks is %s, expected four integers >= 1",
        errors.show(blocks))
    end
  end
  return blocks
end

local function kind_of(depth)
  if type(depth) == "table" then return { blocks = check_blocks(depth), bottleneck = true } end
  local kind = DEPTHS[depth]
  if not kind then
    errors.raise("gp.models.resnet: depth is %s, expected 18, 34, 50, 101, 152, or the bottlenecks "
      .. "of four stages as {3, 4, 6, 3}", errors.show(depth))
  end
  return kind
end

local OPTIONS = { classes = { type = "integer", default = 1000, min = 1 } }

--- A ResNet for images of 3 channels: 224 x 224 in the paper, any size from 32 on.
---
--- Shapes: [N, 3, H, W] -> [N, classes]. ResNet-101 has 370 layers and 44,549,160 parameters.
--- Layers have names such as `layer3_0_conv2`. A cut may fall inside a block; the block's input
--- then goes straight to the stage that holds its end.
--- Errors: another depth, an unknown option.
--- ```lua
--- local model = gp.models.resnet(18, {classes = 10})
--- assert(model(gp.zeros {2, 3, 32, 32}).shape[2] == 10)
--- ```
---@param depth 18|34|50|101|152|integer[] or the bottlenecks of four stages
---@param opts? {classes?: integer}
---@return nn.Sequential
return function(depth, opts)
  local o, kind = options.check("gp.models.resnet", opts, OPTIONS), kind_of(depth)
  local layers = List.new()
  layers:add("conv1", conv(3, 64, 7, 2))
  layers:add("bn1", nn.BatchNorm2d(64))
  layers:add("relu", nn.ReLU())
  layers:add("maxpool", nn.MaxPool2d(3, { stride = 2, padding = 1 }))
  local width = add_stages(layers, kind.blocks, kind.bottleneck)
  layers:add("avgpool", nn.AdaptiveAvgPool2d(1))
  layers:add("flat", nn.Flatten())
  layers:add("fc", nn.Linear(width, o.classes))
  return nn.Sequential(layers)
end
