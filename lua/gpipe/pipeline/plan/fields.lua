-- lua/gpipe/pipeline/plan/fields.lua - what the runtime needs to know about a model and its
-- options, for a pipeline or for a plan without one.

local checkpoint = require "gpipe.pipeline.plan.checkpoint"
local class = require "gpipe.nn.class"
local attributes = require "gpipe.nn.attributes"
local errors = require "gpipe.errors"
local named_balance = require "gpipe.pipeline.plan.named_balance"
local nn = require "gpipe.nn"
local options = require "gpipe.options"
local replicas = require "gpipe.pipeline.plan.replicas"
local running = require "gpipe.nn.layer.norm.running"
local schedule = require "gpipe.schedule"
local skips = require "gpipe.nn.skip.verify"

local fields = {}

--- The options that every plan has.
local COMMON = {
  balance = { check = named_balance.check },
  chunks = { type = "integer", min = 1 },
  schedule = { type = { "string", "table" }, default = "1f1b" },
  checkpoint = checkpoint.rule,
  loss = { type = "callable", called = "a loss such as nn.MSELoss() or a function" },
  sample = { type = "table" },
  deferred_batch_norm = { type = "boolean", default = false },
  sync_batch_norm = { type = "boolean", default = false },
  replicas = { type = "integer", min = 1, max = 1024 },
  barrier = { type = "boolean" },
  sum_group = { type = "integer", min = 1 },
  zero = replicas.zero_rule,
  finite = {
    default = false,
    check = function(v) return type(v) ~= "boolean" and v ~= "ignore" and 'true, false or "ignore"'
      or nil end,
  },
  fuse = { type = "boolean" },
}

--- Whether ops are fused: GPIPE_FUSE=0 in the environment is for scripts that do not say.
---@param option? boolean
---@return boolean
function fields.fuses(option)
  if option ~= nil then return option end
  return os.getenv "GPIPE_FUSE" ~= "0"
end

--- What happens to gradients that are not finite, as the runtime calls it.
---@param option boolean|"ignore"
---@return "raise"|"skip"|"ignore"
function fields.finite(option) return option == true and "raise" or option or "skip" end

local MOST_DEVICES = 1 << 16

--- Say what is wrong with a number of devices.
---@param v integer|table
---@return string?
function fields.check_devices(v)
  if not math.type(v) or v >= 1 and v <= MOST_DEVICES then return nil end
  return ("a number of devices from 1 to %d"):format(MOST_DEVICES)
end

--- The rules of these options and of further ones, which may replace some.
---@param more table<string, table>
---@return table<string, table>
function fields.rules(more)
  local rules = {}
  for name, rule in pairs(COMMON) do rules[name] = rule end
  for name, rule in pairs(more) do rules[name] = rule end
  return rules
end

-- Check the model: only a Sequential can be cut.
local function check_model(who, model)
  class.refuse(who, "the model", model)
  local is = type(model) == "table" and model.is
  if not is or not model:is(nn.Sequential) then
    errors.raise("%s: the model is %s, expected an nn.Sequential (wrap it: nn.Sequential {model})",
      who, is and nn.describe and nn.describe(model) or errors.show(model))
  end
  if #model == 0 then errors.raise("%s: the model has no layers, expected at least one", who) end
end

-- The number of micro-batches. A built schedule already has it; in a stream that was read from
-- text, a mini-batch is the micro-batches between two updates.
local function chunks_of(opts)
  local made = schedule.is(opts.schedule) and opts.schedule
  if opts.chunks or not made then return opts.chunks or 1 end
  return made.batch > 0 and not made.recipe and made.batch or made.chunks
end

--- The options of a plan of this model, checked, with the number of micro-batches.
---@param who string
---@param model nn.Sequential
---@param opts? table
---@param rules table<string, table> of fields.rules
---@return table
function fields.check(who, model, opts, rules)
  check_model(who, model)
  local checked = options.check(who, opts, rules)
  skips.model(who, model)
  class.refuse(who, "option 'loss'", checked.loss)
  checkpoint.check_count(who, checked.checkpoint, #model)
  checked.chunks = chunks_of(checked)
  replicas.settle(who, checked)
  return checked
end

--- The schedule that plans are made from: a built asynchronous schedule stands for a stream of any
--- length.
function fields.source_of(opts, made)
  return made.batch > 0 and made.recipe or opts.schedule
end

-- ---- data for the runtime --------------------------------------------------------------------

-- The stage of each layer (from 0), and one more entry for the loss, which belongs to the last
-- stage.
local function stages_of(list)
  local stage_of = {}
  for stage, layers in ipairs(list) do
    for _ = 1, layers do stage_of[#stage_of + 1] = stage - 1 end
  end
  stage_of[#stage_of + 1] = #list - 1
  return stage_of
end

-- The parameters and buffers of a module, as lists; with `deferred` also the buffers in which its
-- batch norms merge statistics.
local function state_of(module, deferred)
  return { module:parameters(), module:buffers(), deferred and running.pending(module) or {} }
end

-- The layer (from 0) that first declares each parameter or buffer.
local function owners(model, deferred)
  local layer_of = {}
  for i = 1, #model do
    for _, list in ipairs(state_of(model[i], deferred)) do
      for _, entry in ipairs(list) do
        layer_of[entry.param] = layer_of[entry.param] or i - 1
      end
    end
  end
  return layer_of
end

-- Parameters and buffers of the model with their layers.
local function inventory(model, deferred, layer_of)
  local boxes, layers = {}, {}
  for _, list in ipairs(state_of(model, deferred)) do
    for _, entry in ipairs(list) do
      boxes[#boxes + 1] = entry.param
      layers[#layers + 1] = layer_of[entry.param] or 0
    end
  end
  return boxes, layers
end

--- The model cut into stages of these many layers, with the lists by which the runtime indexes its
--- parameters.
---@param model nn.Sequential
---@param balance integer[]
---@param deferred boolean option deferred_batch_norm
---@return table {stages, stage_of, params, param_layer} for core
---@return table<any, integer> layer_of per parameter
function fields.of(model, balance, deferred)
  local layer_of = owners(model, deferred)
  local boxes, layers = inventory(model, deferred, layer_of)
  return {
    stages = #balance, stage_of = stages_of(balance), params = boxes, param_layer = layers,
  }, layer_of
end

--- Refuse a model in which a layer or parameter was replaced later, at any depth: parameters and
--- their stages are fixed when the pipeline is made.
---@param who string
---@param made_of table[] places of the model
function fields.check_layers(who, made_of)
  local name, kind = attributes.replaced(made_of)
  if not name then return end
  errors.raise("%s: %s %s of the model is another one than when the pipeline was made, expected "
    .. "the same: close the pipeline and make another",
    who, kind == "module" and "layer" or kind, name)
end

return fields
