-- lua/gpipe/nn/layer/norm/running.lua - the running statistics of a layer: the buffers, and how
-- batches update them.
--
-- Forward writes buffers once for every micro-batch, in the order of the micro-batches, under any
-- schedule, by one op for all buffers of a layer (ops/channels/running_stats.c). Recomputation
-- writes nothing. A step that fails leaves the buffers as they were.
--
-- A pipeline with deferred_batch_norm updates them once for every mini-batch. The statistics of
-- its micro-batches so far are merged in a buffer of the layer that is not saved with it; the first
-- micro-batch starts it over. Every micro-batch writes the running statistics as if it were the
-- last one, starting from those before the mini-batch, so no count of micro-batches can get out of
-- step.
-- Source: torchgpipe's DeferredBatchNorm, whose variance is biased and cancels.

local class = require "gpipe.nn.class"
local core = require "gpipe.core"
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

--- The running statistics, in the shape of those of one set.
---@param layer nn.Module
---@return gpipe.Tensor mean [1, C]
---@return gpipe.Tensor variance [1, C]
function running.get(layer)
  return layer.running_mean:reshape(1, layer.channels), layer.running_var:reshape(1, layer.channels)
end

-- The mean over sets, [S, C] -> [1, C]. Batch norm has one set.
local function over_sets(stats)
  return stats.shape[1] == 1 and stats or stats:mean(1, true)
end

-- What ops on running statistics are told: how many positions a batch has, how far to move.
local function moves(layer, rows)
  return { rows = rows, momentum = layer.momentum or 0, cumulative = not layer.momentum }
end

local function move_now(layer, mean, variance, rows)
  core.move_stats(layer.running_mean, layer.running_var, layer.num_batches_tracked,
    over_sets(mean), over_sets(variance), moves(layer, rows))
end

local function move_deferred(layer, mean, variance, rows)
  core.merge_stats(layer.running_mean, layer.running_var, layer.num_batches_tracked,
    layer.pending, mean, variance, moves(layer, rows))
end

local deferring = false -- whether the trace that is being made defers

--- Move the running statistics towards those of a batch.
---@param layer nn.Module
---@param mean gpipe.Tensor [S, C]
---@param variance gpipe.Tensor [S, C] biased
---@param rows integer number of positions that they were computed from
function running.note(layer, mean, variance, rows)
  gradient.no_grad(deferring and layer.pending and move_deferred or move_now, layer, mean, variance,
    rows)
end

-- ---- for pipelines ---------------------------------------------------------------------------

--- The layers of a model that keep running statistics, with their names.
---@param model nn.Module
---@return {name: string, module: nn.Module}[]
function running.layers(model)
  local found = {}
  for name, module in model:modules() do
    local of = class.of(module).class
    if of.defers and module.track then found[#found + 1] = { name = name, module = module } end
  end
  return found
end

--- The buffers in which a model's layers keep the merged statistics of the current
--- mini-batch: [5, C] each, not part of its state.
---@param model nn.Module
---@return {param: gpipe.Tensor}[]
function running.pending(model)
  local list = {}
  for i, layer in ipairs(running.layers(model)) do
    local of = layer.module
    of.pending = of.pending or core.parameter {
      shape = { 5, of.channels }, dtype = of.running_mean.dtype, kind = "constant", a = 0, b = 0,
      seed = 0, number = 0, buffer = true,
    }
    list[i] = { param = of.pending }
  end
  return list
end

--- Set whether layers that are traced from now on defer; return what it was.
---@param flag boolean
---@return boolean
function running.defer(flag)
  local before = deferring
  deferring = flag
  return before
end

return running
