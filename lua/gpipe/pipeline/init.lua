-- lua/gpipe/pipeline/init.lua - `gp.pipeline(model, options)`: a model cut into stages that run.
--
-- This file checks the options and makes the object; running is in run.lua, tracing and plans are
-- in their own files.

local advice = require "gpipe.pipeline.advice"
local attributes = require "gpipe.nn.attributes"
local call = require "gpipe.ranks.call"
local core = require "gpipe.core"
local cut = require "gpipe.pipeline.plan.cut"
local dry_mode = require "gpipe.dry_mode"
local far = require "gpipe.ranks.pipeline"
local fields = require "gpipe.pipeline.plan.fields"
local parameters = require "gpipe.pipeline.plan.parameters"
local plans = require "gpipe.pipeline.plan.plans"
local precision = require "gpipe.pipeline.plan.precision"
local Pipeline = require "gpipe.pipeline.run"
local random = require "gpipe.random"
local remark = require "gpipe.ranks.remark"
local replicas = require "gpipe.pipeline.plan.replicas"
local watchdog = require "gpipe.pipeline.watchdog"

local WHO = "gp.pipeline"

local RULES = fields.rules {
  devices = {
    type = { "integer", "table" },
    check = fields.check_devices,
  },
  precision = precision.rule,
  loss_scale = precision.scale_rule,
  seed = { type = "integer" },
  watchdog = watchdog.rule,
}

-- ---- options ---------------------------------------------------------------------------------

-- The options that a plan stands for; plans are loaded where they are asked for.
local function planned(model, opts)
  local plain = opts == nil or type(opts) == "table" and getmetatable(opts) == nil
    and opts.plan == nil
  return plain and opts or require("gpipe.plan.apply").options(model, opts)
end

-- ---- making one ------------------------------------------------------------------------------

-- If a requested fault can never occur, say so for the first pipeline of a process; later ones may
-- be smaller than the one that it is meant for.
local checked_faults = false
local function note_faults(inner)
  local fault = not checked_faults and inner:check_faults()
  checked_faults = true
  if fault then remark("%s", fault) end
end

-- Plan for the sample. If that fails, close the pipeline, so that it does not keep the model.
local function plan_for_sample(pipe, sample)
  local good, message = pcall(pipe.prepare, pipe, table.unpack(sample))
  if good then return end
  pipe:close()
  error(message, 0)
end

--- Cut a model into stages, place each on a device and start the workers.
---
--- Errors: those of torchgpipe (a balance with the wrong sum, entries below one, too few devices,
--- chunks < 1, an unknown checkpoint mode, not a Sequential) with both numbers; a model that
--- another open pipeline owns.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)}
--- local pipe <close> = gp.pipeline(model, {
---   balance = {2, 1}, chunks = 2, loss = nn.CrossEntropyLoss(),
--- })
--- local loss = pipe:step(gp.randn {6, 4}, gp.zeros({6}, {dtype = "i64"}))
--- ```
--- In place of the options: a plan of gp.plan. {plan = "auto", sample = {x, y}, ...} plans first,
--- with the options of gp.plan.
---@param model nn.Sequential
---@param opts? table|gpipe.Plan see docs/pipeline.md
---@return gpipe.Pipeline
local function pipeline(model, opts)
  local _ <close> = call.enter "gp.pipeline"
  if dry_mode.is_on() then
    return require("gpipe.plan.script").pipeline(model, opts, RULES)
  end
  opts = fields.check(WHO, model, planned(model, opts), RULES)
  local list, chosen, made, one = cut.resolve(model, opts)
  local computes = precision.resolve(WHO, opts, made.batch > 0)
  local apart = replicas.are_free(WHO, made, opts)
  parameters.check_names(model)
  parameters.check_memory(model, list, made, chosen)
  local of, layer_of = fields.of(model, list, opts.deferred_batch_norm)
  local spread = far.agree(model, opts, { balance = list, devices = chosen, schedule = made })
  far.bring(of, made, chosen)
  local inner = core.pipeline_new {
    stages = #list, stage_of = of.stage_of, params = of.params, param_layer = of.param_layer,
    devices = far.for_runtime(chosen), spread = spread,
    placement = made.device_list, copies = made.copies, replicas = made.replicas,
    streams = made.batch > 0 or apart, sum_group = opts.grouped, bucket = replicas.bucket(),
    most_whole = far.most_whole(),
    checkpoint = opts.checkpoint, seed = opts.seed or random.current(),
    finite = fields.finite(opts.finite),
    watchdog = watchdog.seconds(WHO, opts.watchdog), tf32 = computes.tf32,
    loss_scale = computes.scale,
    unfused = not fields.fuses(opts.fuse), added = os.getenv "GPIPE_ASSIGN" == "0",
  }
  note_faults(inner)
  if not opts.deferred_batch_norm then
    advice.batch_norm(model, opts.chunks * opts.replicas // opts.synced)
  end
  local pipe = Pipeline.new {
    core = inner, model = model, made_of = attributes.places(model),
    balance = list, devices = chosen, stages = #list,
    stage_of = of.stage_of, layer_of = layer_of, chunks = opts.chunks,
    placement = made.device_list, copies = made.copies, asynchronous = made.batch > 0,
    schedule_name = made.name, asked = one.asked, replicas = opts.replicas,
    sum_group = opts.sum_group, built = plans.built(made),
    schedule = fields.source_of(opts, one), checkpoint = opts.checkpoint, loss = opts.loss,
    precision = computes, deferred = opts.deferred_batch_norm, synced = opts.synced,
    spread = spread, barrier = opts.barrier, apart = apart,
  }
  if opts.sample then plan_for_sample(pipe, opts.sample) end
  return pipe
end

return pipeline
