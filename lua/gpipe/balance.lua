-- lua/gpipe/balance.lua - `gp.balance_by_time` and `gp.balance_by_size`: a balance from what layers
-- take, with the arguments and the meaning of torchgpipe's functions.
--
-- Costs are a profile's, and the cut is exact (pipeline/plan/partition/init.lua).
-- Source: torchgpipe/balance/__init__.py and profile.py; theirs counts the first pass, splits by a
-- heuristic that may leave a stage empty, and measures sizes on CUDA devices only.

local call = require "gpipe.ranks.call"
local errors = require "gpipe.errors"
local object = require "gpipe.profile.object"
local options = require "gpipe.options"
local even = require "gpipe.pipeline.plan.partition.even"
local profile = require "gpipe.profile"
local request = require "gpipe.profile.request"

local balance = {}

-- ---- costs --------------------------------------------------------------------------------------

--- The seconds of each layer in one micro-batch, forward and backward.
---@param layers gpipe.LayerProfile[]
---@param again? number the share of micro-batches that recompute; 0
---@return number[]
function balance.time_costs(layers, again)
  local costs = {}
  for i, layer in ipairs(layers) do
    costs[i] = layer.forward + layer.input + layer.weight + (again or 0) * layer.recompute
  end
  return costs
end

--- The bytes of each layer: what a micro-batch keeps, and its parameters with what belongs to them.
---@param layers {saved_bytes: number, parameter_bytes: number}[]
---@param param_scale number copies of the parameters: values, gradients, optimizer state
---@param chunks? integer micro-batches in one of those that saved_bytes counts; 1
---@return number[]
function balance.size_costs(layers, param_scale, chunks)
  local costs = {}
  for i, layer in ipairs(layers) do
    costs[i] = layer.saved_bytes / (chunks or 1) + layer.parameter_bytes * param_scale
  end
  return costs
end

-- Refuse costs that say nothing: a cut by them would be arbitrary.
local function check_costs(who, costs, lacks)
  for _, cost in ipairs(costs) do
    if cost > 0 then return costs end
  end
  errors.raise("%s: the profile has no %s, expected some above zero", who, lacks)
end

local function check_stages(who, stages)
  return options.argument(who, "stages", stages, { type = "integer", min = 1, required = true })
end

local function no_sample(who, sample)
  if sample ~= nil then
    errors.raise("%s: the sample is %s beside a profile, expected nil", who, errors.show(sample))
  end
end

-- ---- by time ------------------------------------------------------------------------------------

local LONGEST = 3600 -- seconds: a longer time is a number of milliseconds, by mistake

local BY_TIME = {
  timeout = { type = "number", min = 0, max = LONGEST, default = 1 },
  device = profile.device_rule,
}

--- Balance a model by the time of its layers: how many layers each stage gets so that the slowest
--- stage, forward and backward, is as fast as possible.
---
--- timeout: seconds to measure for, after three steps that do not count; three steps count at
--- least. device: as in gp.profile. Over several ranks rank 0 measures, and every rank has to call.
--- In place of the model a profile may be given, without a sample.
--- Errors: more stages than layers; those of the layers, when the sample does not fit.
--- ```lua
--- local model = nn.Sequential {nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)}
--- local balance = gp.balance_by_time(2, model, {gp.randn {32, 64}}, {timeout = 0.01})
--- local pipe <close> = gp.pipeline(model, {balance = balance})
--- local p = gp.profile {layers = {{forward = 1}, {forward = 2}, {forward = 3}}}
--- assert(table.concat(gp.balance_by_time(2, p), ",") == "2,1")
--- ```
---@param stages integer
---@param model nn.Sequential|gpipe.ModelProfile
---@param sample? gpipe.Tensor|table one micro-batch: {x}, or x
---@param opts? {timeout?: number, device?: string|table}
---@return integer[] balance layers per stage
function balance.balance_by_time(stages, model, sample, opts)
  local who = "gp.balance_by_time"
  local _ <close> = call.enter(who)
  stages = check_stages(who, stages)
  local o = options.check(who, opts, BY_TIME)
  local measured = model
  if object.is(model) then
    no_sample(who, sample)
  else
    measured = profile.agree(request.of(who, model, sample, { chunks = 1 }),
      { device = o.device or profile.default_device(), timeout = o.timeout })
  end
  local costs = check_costs(who, balance.time_costs(measured.layers), "times")
  return (even.cut(who, costs, stages))
end

-- ---- by size ------------------------------------------------------------------------------------

local BY_SIZE = {
  chunks = { type = "integer", min = 1, default = 1 },
  param_scale = { type = "number", min = 0, below = math.huge, default = 2 },
  device = profile.device_rule,
}

--- Balance a model by the memory of its layers: how many layers each stage gets so that the fullest
--- stage holds as little as possible. A layer counts with what one micro-batch keeps of it, and
--- with its parameters times `param_scale`.
---
--- chunks: the sample is cut into as many micro-batches. param_scale: 2 to 3 for SGD, 4 to 5 for
--- Adam (values, gradients, moments). Bytes are those that plans use, so nothing runs; `device`
--- says what kind of device they are planned for. In place of the model a profile may be given,
--- without a sample.
--- Errors: more stages than layers; those of the layers, when the sample does not fit.
--- ```lua
--- local model = nn.Sequential {nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 512)}
--- local balance = gp.balance_by_size(2, model, {gp.randn {32, 64}}, {param_scale = 4})
--- assert(table.concat(balance, ",") == "2,1")
--- ```
---@param stages integer
---@param model nn.Sequential|gpipe.ModelProfile
---@param sample? gpipe.Tensor|table a mini-batch: {x}, or x
---@param opts? {chunks?: integer, param_scale?: number, device?: string|table}
---@return integer[] balance layers per stage
function balance.balance_by_size(stages, model, sample, opts)
  local who = "gp.balance_by_size"
  stages = check_stages(who, stages)
  local o = options.check(who, opts, BY_SIZE)
  local costs
  if object.is(model) then
    no_sample(who, sample)
    costs = balance.size_costs(model.layers, o.param_scale, o.chunks)
  else
    local wanted = request.of(who, model, sample, o)
    local rows = profile.sizes(wanted, o.device or profile.default_device())
    costs = balance.size_costs(rows, o.param_scale)
  end
  return (even.cut(who, check_costs(who, costs, "sizes"), stages))
end

return balance
