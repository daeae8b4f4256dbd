-- lua/gpipe/nn/layer/norm/channels.lua - shared by the layers that normalise channels: the
-- statistics of an image, and the normalisation by them.
--
-- The ops take images. A sequence is an image of width 1, a row of features an image of one
-- position, and a volume an image whose rows are slices.

local check = require "gpipe.nn.check"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local input = require "gpipe.nn.layer.input"
local parameter = require "gpipe.nn.parameter"
local scope = require "gpipe.nn.scope"

local channels = {}

local WANTED = { [2] = "?x%d", [3] = "?x%dx?", [4] = "?x%dx?x?",
  [5] = "?x%dx?x?x?" }

--- Declare a weight of 1 and a bias of 0, unless the layer is not affine.
---@param layer nn.Module
---@param opts {affine: boolean, dtype: string}
function channels.declare(layer, opts)
  if not opts.affine then return end
  local shape, dtype = { layer.channels }, { dtype = opts.dtype }
  layer.weight = parameter.Parameter(shape, initial.ones(), dtype)
  layer.bias = parameter.Parameter(shape, initial.zeros(), dtype)
end

--- The input as N x C x H x W. Errors: another rank or another number of channels than the layer's.
---@param layer nn.Module its `channels`
---@param x any
---@param least integer the ranks that the layer takes
---@param most integer
---@return gpipe.Tensor
function channels.image(layer, x, least, most)
  local shape = input.tensor(layer, x).shape
  local rank = #shape
  if rank < least or rank > most or shape[2] ~= layer.channels then
    local wanted = {}
    for r = least, most do wanted[#wanted + 1] = WANTED[r]:format(layer.channels) end
    errors.raise("%s: input is %s, expected %s", scope.label(layer), check.shape_text(shape),
      table.concat(wanted, " or "))
  end
  if rank == 4 then return x end
  return x:reshape(shape[1], shape[2], shape[3] or 1, (shape[4] or 1) * (shape[5] or 1))
end

--- Means and variances (biased) over positions.
---@param image gpipe.Tensor N x C x H x W
---@param samples boolean true: of each sample; false: of all samples together
---@param groups integer number of groups that the channels form
---@return gpipe.Tensor mean [1 or N, groups]
---@return gpipe.Tensor variance
---@return integer rows positions in one channel that each value was computed from
function channels.stats(image, samples, groups)
  local shape = image.shape
  local rows = (samples and 1 or shape[1]) * shape[3] * shape[4]
  local mean, variance = core.channel_stats_join(core.channel_stats(image, { samples = samples }),
    { sets = samples and shape[1] or 1, rows = rows, groups = groups })
  return mean, variance, rows
end

--- Normalise by statistics, then scale and shift if the layer is affine.
---@param layer nn.Module its `eps`, `weight`, `bias`
---@param x gpipe.Tensor of the shape of the result
---@param image gpipe.Tensor the same as N x C x H x W
---@param given? boolean the statistics are constants for gradients
---@param replicas? integer the statistics are those of the images of so many replicas
---@return gpipe.Tensor
function channels.normalise(layer, x, image, mean, variance, given, replicas)
  local y = core.channel_norm(image, mean, variance, layer.weight, layer.bias,
    { eps = layer.eps, given = given or false, replicas = replicas or 1 })
  return #x.shape == 4 and y or y:reshape(x.shape)
end

return channels
