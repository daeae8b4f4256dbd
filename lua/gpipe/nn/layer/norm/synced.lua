-- lua/gpipe/nn/layer/norm/synced.lua - batch norms whose replicas normalise together
-- (sync_batch_norm): by the statistics of the micro-batches of one number in all replicas.
--
-- A replica sends mean, variance and number of rows of its micro-batch to the others, and merges
-- what all have sent by a tree over their numbers (runtime/ops/replicas). In the backward pass it
-- does so with the sums that the gradient of its input needs (runtime/ops/channels/channel_norm.c).

local channels = require "gpipe.nn.layer.norm.channels"
local core = require "gpipe.core"
local running = require "gpipe.nn.layer.norm.running"

local synced = {}

local joining = 1 -- replicas that normalise together in the trace that is being made

--- The replicas that normalise together in the trace that is being made; 1: each by itself.
---@return integer
function synced.replicas() return joining end

--- Set how many replicas normalise together in layers that are traced from now on; return what it
--- was.
---@param count integer
---@return integer
function synced.set(count)
  local before = joining
  joining = count
  return before
end

--- Normalise by the statistics of all replicas, and update the running ones.
---@param layer nn.Module
---@param x gpipe.Tensor
---@param image gpipe.Tensor the same as N x C x H x W
---@param replicas integer
---@return gpipe.Tensor
function synced.forward(layer, x, image, replicas)
  local shape = image.shape
  local own_mean, own_variance, positions = channels.stats(image, false, layer.channels)
  local all, rows, first = core.replica_gather(own_mean, own_variance,
    { replicas = replicas, rows = shape[1] })
  local mean, variance, unbiased = core.replica_stats(all, rows,
    { positions = shape[3] * shape[4] })
  if layer.track then
    local own = { mean = own_mean, variance = own_variance, rows = positions }
    running.note_synced(layer, own, mean, unbiased, first)
  end
  return channels.normalise(layer, x, image, mean, variance, false, replicas)
end

return synced
