-- lua/gpipe/models/unet.lua - a flat U-Net with any depth and any number of convolutions a level.
--
-- Source: Ronneberger et al. 2015, as torchgpipe's benchmark builds it.

local List = require "gpipe.models.list"
local core = require "gpipe.core"
local nn = require "gpipe.nn"
local options = require "gpipe.options"

-- Convolutions from -> mid -> .. -> to, each with dropout, norm and activation.
local function add_cell(layers, name, widths, count)
  for i = 1, count do
    local from = i == 1 and widths.from or widths.mid
    local to = i == count and widths.to or widths.mid
    local unit = ("%s_%d"):format(name, i - 1)
    layers:add({ unit, "conv" }, nn.Conv2d(from, to, 3, { padding = 1, bias = false }))
    layers:add({ unit, "dropout" }, nn.Dropout2d(0.1))
    layers:add({ unit, "norm" }, nn.InstanceNorm2d(to))
    layers:add({ unit, "relu" }, nn.LeakyReLU(0.01))
  end
end

-- Join x to the skip. An odd size that was halved and doubled comes back one short: add zeros to
-- the right and below.
local function join(x, skip)
  local h, w = skip.shape[3] - x.shape[3], skip.shape[4] - x.shape[4]
  return core.concat({ (h > 0 or w > 0) and x:pad { 0, w, 0, h } or x, skip }, 2)
end

local COUNT = { type = "integer", min = 1 }
local function count(default) return { type = COUNT.type, min = COUNT.min, default = default } end
local OPTIONS = { depth = count(5), convs = count(5), channels = count(64), input = count(3),
  output = count(1) }

--- A U-Net: `depth` levels that halve the image, a bottom, and as many that double it, with `convs`
--- convolutions each; the outermost level has `channels` channels, the next twice as many.
---
--- Shapes: [N, input, H, W] -> [N, output, H, W], H and W above 2^depth. `channels` is even. The
--- default has 241 layers and 232,687,328 parameters; skips are isolated level by level.
--- Errors: sizes that are not positive integers, an unknown option.
--- ```lua
--- local model = gp.models.unet {depth = 2, convs = 1, channels = 8}
--- assert(model(gp.zeros {1, 3, 8, 9}).shape[4] == 9)
--- ```
---@param opts? {depth?: integer, convs?: integer, channels?: integer, input?: integer, output?: integer}
---@return nn.Sequential
return function(opts)
  local o = options.check("gp.models.unet", opts, OPTIONS)
  local layers, levels, c = List.new(), {}, o.channels
  for i = 0, o.depth - 1 do
    local from = i == 0 and o.input or c << i - 1
    levels[i] = nn.namespace()
    add_cell(layers, ("encoder_%d_encode"):format(i), { from = from, mid = c << i, to = c << i },
      o.convs)
    layers:add({ "encoder", i, "skip" }, nn.Stash("skip", { namespace = levels[i] }))
    layers:add({ "encoder", i, "down" }, nn.MaxPool2d(2))
  end
  local deepest = c << o.depth - 1
  add_cell(layers, "bottleneck_0", { from = deepest, mid = 2 * deepest, to = deepest }, o.convs)
  for i = o.depth - 1, 0, -1 do
    local t, width = o.depth - 1 - i, (c << i) // 2
    layers:add({ "decoder", t, "up" }, nn.Upsample { scale = 2 })
    layers:add({ "decoder", t, "skip" }, nn.Pop("skip", join, { namespace = levels[i] }))
    add_cell(layers, ("decoder_%d_decode"):format(t),
      { from = c << i + 1, mid = width, to = width }, o.convs)
  end
  layers:add("segment", nn.Conv2d(c // 2, o.output, 1, { bias = false }))
  return nn.Sequential(layers)
end
