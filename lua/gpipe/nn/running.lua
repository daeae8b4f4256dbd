-- lua/gpipe/nn/running.lua - running statistics of a layer: the buffers, and how batches move them.
--
-- Forward writes buffers once for every micro-batch, in the order of the micro-batches, whatever
-- the schedule; recomputation reads what was there and writes nothing (graph/trace.c). A step that
-- fails leaves them as they were.

local gradient = require "gpipe.gradient"
local parameter = require "gpipe.nn.parameter"

local running = {}

--- Declare running_mean (0), running_var (1) and num_batches_tracked (0).
---@param layer nn.Module its `channels`
---@param dtype string
function running.declare(layer, dtype)
  local shape = { layer.channels }
  layer.running_mean = parameter.Buffer(shape, 0, { dtype = dtype })
  layer.running_var = parameter.Buffer(shape, 1, { dtype = dtype })
  layer.num_batches_tracked = parameter.Buffer({}, 0, { dtype = "i64" })
end

--- The running statistics, as those of one set.
---@param layer nn.Module
---@return gpipe.Tensor mean [1, C]
---@return gpipe.Tensor variance [1, C]
function running.get(layer)
  return layer.running_mean:reshape(1, layer.channels), layer.running_var:reshape(1, layer.channels)
end

-- The share of the newest statistics, of so many batches: a number or a scalar.
local function share_of(layer, batches)
  if layer.momentum then return layer.momentum end
  return 1 / batches:to(layer.running_mean.dtype)
end

local function move_all(layer, mean, variance, rows)
  local batches = layer.num_batches_tracked + 1
  local share, unbiased = share_of(layer, batches), rows / math.max(rows - 1, 1)
  local function move(buffer, to)
    buffer:copy_(buffer + (to:mean(1) - buffer) * share)
  end
  move(layer.running_mean, mean)
  move(layer.running_var, variance * unbiased)
  layer.num_batches_tracked:copy_(batches)
end

--- Move the running statistics towards those of a batch.
---@param layer nn.Module
---@param mean gpipe.Tensor [S, C]
---@param variance gpipe.Tensor [S, C] biased
---@param rows integer that they were made of
function running.note(layer, mean, variance, rows)
  gradient.no_grad(move_all, layer, mean, variance, rows)
end

return running
