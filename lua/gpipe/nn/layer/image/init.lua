-- lua/gpipe/nn/layer/image/init.lua - layers of images and of sequences over one kind of op: a
-- sequence is an image of height 1.

local check = require "gpipe.nn.check"
local errors = require "gpipe.errors"
local input = require "gpipe.nn.layer.input"
local scope = require "gpipe.nn.scope"

local image = {}

local WANTED = { "?x?x?", "?x?x?x?" }

--- [a, b, c] as [a, b, 1, c].
---@param t gpipe.Tensor
---@return gpipe.Tensor
function image.raised(t) return t:reshape(t.shape[1], t.shape[2], 1, t.shape[3]) end

--- [a, b, 1, c] as [a, b, c].
---@param t gpipe.Tensor
---@return gpipe.Tensor
function image.lowered(t) return t:reshape(t.shape[1], t.shape[2], t.shape[4]) end

--- An op of images on what a layer is called with: N x C x H x W, or N x C x L for layers of one
--- axis.
---@param layer nn.Module its `axes` are 1 or 2
---@param op function
---@param x any
---@param attributes table
---@return gpipe.Tensor
function image.apply(layer, op, x, attributes)
  local shape = input.tensor(layer, x).shape
  if #shape ~= layer.axes + 2 then
    errors.raise("%s: input is %s, expected %s", scope.label(layer), check.shape_text(shape),
      WANTED[layer.axes])
  end
  if layer.axes == 2 then return op(x, attributes) end
  return image.lowered(op(image.raised(x), attributes))
end

return image
