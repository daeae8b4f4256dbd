-- lua/gpipe/pipeline/init.lua - `gp.pipeline(model, options)`: a model cut into stages that run.
--
-- This file checks what the user asked for and makes the object; running is in run.lua, tracing and
-- plans in files of their own.

local class = require "gpipe.nn.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local nn = require "gpipe.nn"
local options = require "gpipe.options"
local cut = require "gpipe.pipeline.cut"
local precision = require "gpipe.pipeline.precision"
local Pipeline = require "gpipe.pipeline.run"
local random = require "gpipe.random"
local schedule = require "gpipe.schedule"
local watchdog = require "gpipe.pipeline.watchdog"

local WHO = "gp.pipeline"

local SPEC = {
  balance = { type = "table" },
  devices = { type = "table" },
  chunks = { type = "integer", min = 1 },
  schedule = { type = { "string", "table" }, default = "1f1b" },
  checkpoint = { choices = core.checkpoints, default = "except_last" },
  loss = { type = "callable" },
  sample = { type = "table" },
  precision = precision.rule,
  loss_scale = precision.scale_rule,
  finite = {
    default = false,
    check = function(v) return type(v) ~= "boolean" and v ~= "ignore" and 'true, false or "ignore"'
      or nil end,
  },
  fuse = { type = "boolean" },
  seed = { type = "integer" },
  watchdog = watchdog.rule,
}

-- ---- checks ----------------------------------------------------------------------------------

local function check_model(model)
  class.refuse(WHO, "the model", model)
  local is = type(model) == "table" and model.is
  if not is or not model:is(nn.Sequential) then
    errors.raise("%s: the model is %s, expected an nn.Sequential (wrap it: nn.Sequential {model})",
      WHO, is and nn.describe and nn.describe(model) or errors.show(model))
  end
  if #model == 0 then errors.raise("%s: the model has no layers, expected at least one", WHO) end
end

-- A schedule that was built already knows its number of micro-batches; of a stream that was read
-- from text, a mini-batch is as many as follow each other between updates.
local function chunks_of(opts)
  local made = schedule.is(opts.schedule) and opts.schedule
  if opts.chunks or not made then return opts.chunks or 1 end
  return made.batch > 0 and not made.recipe and made.batch or made.chunks
end

-- What plans are made from: an asynchronous schedule that was built stands for a stream of any
-- length.
local function source_of(opts, made)
  return made.batch > 0 and made.recipe or opts.schedule
end

-- ---- what the runtime wants ------------------------------------------------------------------

-- Per layer its stage (from 0), and one more entry: the loss belongs to the last stage.
local function stages_of(list)
  local stage_of = {}
  for stage, layers in ipairs(list) do
    for _ = 1, layers do stage_of[#stage_of + 1] = stage - 1 end
  end
  stage_of[#stage_of + 1] = #list - 1
  return stage_of
end

-- Per parameter or buffer the layer (from 0) that declares it first.
local function owners(model)
  local layer_of = {}
  for i = 1, #model do
    for _, list in ipairs { model[i]:parameters(), model[i]:buffers() } do
      for _, entry in ipairs(list) do
        layer_of[entry.param] = layer_of[entry.param] or i - 1
      end
    end
  end
  return layer_of
end

-- Parameters and buffers of the model with their layers.
local function inventory(model, layer_of)
  local boxes, layers = {}, {}
  for _, list in ipairs { model:parameters(), model:buffers() } do
    for _, entry in ipairs(list) do
      boxes[#boxes + 1] = entry.param
      layers[#layers + 1] = layer_of[entry.param] or 0
    end
  end
  return boxes, layers
end

-- GPIPE_FUSE=0 in the environment, for scripts that say nothing.
local function fuses(option)
  if option ~= nil then return option end
  return os.getenv "GPIPE_FUSE" ~= "0"
end

-- ---- making one ------------------------------------------------------------------------------

-- A fault on request that can never strike is said of the first pipeline of a process; others may
-- be smaller than the one that it is meant for.
local checked_faults = false
local function note_faults(inner)
  local fault = not checked_faults and inner:check_faults()
  checked_faults = true
  if fault then io.stderr:write("gpipe: ", fault, "\n") end
end

-- A sample that cannot be planned for leaves no pipeline behind that owns the model.
local function plan_for_sample(pipe, sample)
  local good, message = pcall(pipe.prepare, pipe, table.unpack(sample))
  if good then return end
  pipe:close()
  error(message, 0)
end

--- Cut a model into stages, place each on a device and start the workers.
---
--- Errors: the conditions of torchgpipe (balance of the wrong sum, entries below one, too few
--- devices, chunks < 1, unknown checkpoint mode, not a Sequential) with both numbers; a model that
--- another live pipeline owns.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)}
--- local pipe <close> = gp.pipeline(model, {
---   balance = {2, 1}, chunks = 2, loss = nn.CrossEntropyLoss(),
--- })
--- local loss = pipe:step(gp.randn {6, 4}, gp.zeros({6}, {dtype = "i64"}))
--- ```
---@param model nn.Sequential
---@param opts? table see docs/pipeline.md
---@return gpipe.Pipeline
local function pipeline(model, opts)
  check_model(model)
  opts = options.check(WHO, opts, SPEC)
  class.refuse(WHO, "option 'loss'", opts.loss)
  opts.chunks = chunks_of(opts)
  local list, chosen, made = cut.resolve(model, opts)
  local computes = precision.resolve(opts, chosen, made.batch > 0)
  local stage_of, layer_of = stages_of(list), owners(model)
  local boxes, layers = inventory(model, layer_of)
  local inner = core.pipeline_new {
    stages = #list, stage_of = stage_of, params = boxes, param_layer = layers,
    devices = chosen, placement = made.device_list, copies = made.copies,
    checkpoint = opts.checkpoint, seed = opts.seed or random.current(),
    finite = opts.finite == true and "raise" or opts.finite or "skip",
    watchdog = watchdog.seconds(WHO, opts.watchdog), tf32 = computes.tf32,
    loss_scale = computes.scale,
    unfused = not fuses(opts.fuse),
  }
  note_faults(inner)
  local pipe = Pipeline.new {
    core = inner, model = model, balance = list, devices = chosen, stages = #list,
    stage_of = stage_of, layer_of = layer_of, chunks = opts.chunks,
    placement = made.device_list, copies = made.copies, asynchronous = made.batch > 0,
    schedule_name = made.name, asked = made.asked,
    built = made.batch == 0 and { [made.chunks] = made } or {},
    schedule = source_of(opts, made), checkpoint = opts.checkpoint, loss = opts.loss,
    precision = computes,
  }
  if opts.sample then plan_for_sample(pipe, opts.sample) end
  return pipe
end

return pipeline
