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

-- Only the first replica's micro-batches move them: `first` is 1 there, else 0, and a share of 0
-- moves nothing.
local function move_synced(layer, mean, unbiased, first)
  local dtype, batches = layer.running_mean.dtype, layer.num_batches_tracked + first
  local share = first:to(dtype) * (layer.momentum or 1)
  if not layer.momentum then share = share / batches:to(dtype) end
  local function move(buffer, to)
    buffer:copy_(buffer + (to:reshape(layer.channels) - buffer) * share)
  end
  move(layer.running_mean, mean)
  move(layer.running_var, unbiased)
  layer.num_batches_tracked:copy_(batches)
end

--- The same where replicas normalise together. Deferred statistics are those of all positions of
--- the mini-batch in any case, so the own ones are merged.
---@param layer nn.Module
---@param own {mean: gpipe.Tensor, variance: gpipe.Tensor, rows: integer} of this replica
---@param mean gpipe.Tensor [1, C] of all replicas
---@param unbiased gpipe.Tensor [1, C] the unbiased variance of all
---@param first gpipe.Tensor scalar, i64: 1 on the first replica, else 0
function running.note_synced(layer, own, mean, unbiased, first)
  if deferring and layer.pending then
    running.note(layer, own.mean, own.variance, own.rows)
  else
    gradient.no_grad(move_synced, layer, mean, unbiased, first)
  end
end

-- ---- for pipelines ---------------------------------------------------------------------------

--- The batch norms of a model, with their names.
---@param model nn.Module
---@return {name: string, module: nn.Module}[]
function running.norms(model)
  local found = {}
  for name, module in model:modules() do
    if class.of(module).class.defers then found[#found + 1] = { name = name, module = module } end
  end
  return found
end

--- Those that keep running statistics.
---@param model nn.Module
---@return {name: string, module: nn.Module}[]
function running.layers(model)
  local found = {}
  for _, layer in ipairs(running.norms(model)) do
    if layer.module.track then found[#found + 1] = layer end
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
