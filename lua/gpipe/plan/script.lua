-- lua/gpipe/plan/script.lua - `gpipe-lua --dry-run script.lua`: plans the pipelines that a script
-- builds, and stops before the first step, whatever loop the script has.
--
-- gp.pipeline then returns an object that has all methods of a pipeline and owns nothing: no
-- memory, no workers, no device, so devices and models may be larger than the machine. The first
-- pass shows the shape of a batch: all plans are printed, and the program ends. A script that runs
-- no pass at all is planned at its end, for the samples that it gave.

local apply = require "gpipe.plan.apply"
local asked = require "gpipe.plan.asked"
local candidates = require "gpipe.plan.candidates"
local cut = require "gpipe.pipeline.plan.cut"
local errors = require "gpipe.errors"
local fields = require "gpipe.pipeline.plan.fields"
local machine = require "gpipe.machine"
local object = require "gpipe.pipeline.object"
local plan = require "gpipe.plan"
local plan_devices = require "gpipe.plan.devices"
local precision = require "gpipe.pipeline.plan.precision"
local readable = require "gpipe.readable"
local report = require "gpipe.pipeline.areas.report"
local text_of = require "gpipe.pipeline.text"

local script = {}

local WHO = "gp.pipeline"

local opened = {} ---@type table[] the fields of all pipelines, in order
local printed = false
local failed = false -- a pipeline would raise an error where it runs

-- ---- plans --------------------------------------------------------------------------------------

-- The plans of a pipeline for a batch: as it is set, and as the planner would.
local function say(pipe, x, y)
  local problem = plan.problem(pipe.model, y ~= nil and { x, y } or { x }, {
    devices = pipe.planned, loss = y ~= nil and pipe.loss or nil, precision = pipe.precision.name,
    optimizer = pipe.optimizer or plan.newest_optimizer(),
    sync_batch_norm = (pipe.synced or 1) > 1,
  })
  local lines = { ("  optimizer: %s"):format(problem.optimizer) }
  local row, why = asked.row(problem, {
    balance = pipe.balance, devices = #pipe.devices,
    schedule = candidates.replicated(pipe.schedule, pipe.replicas),
    chunks = pipe.chunks, checkpoint = pipe.checkpoint,
  })
  lines[#lines + 1] = row and asked.text(problem, row) or "  as it is set: " .. why
  local best, message = plan.solve(problem)
  lines[#lines + 1] = "  as gp.plan would set it:"
  lines[#lines + 1] = "  " .. (best and tostring(best) or message):gsub("\n", "\n  ")
  return table.concat(lines, "\n")
end

local function print_one(i, pipe, x, y)
  print(("pipeline %d%s"):format(i, pipe.where))
  if x == nil then
    print "  no batch is known: it is planned with option 'sample', or where it is stepped first"
    return
  end
  local good, lines = pcall(say, pipe, x, y)
  failed = failed or not good
  print(good and lines or "  " .. tostring(lines))
end

--- Print the plans of all pipelines that were built: of `active` for a batch, of others for their
--- samples.
---@param active? table
---@param x any
---@param y any
function script.report(active, x, y)
  printed = true
  for i, pipe in ipairs(opened) do
    if pipe == active then
      print_one(i, pipe, x, y)
    else
      local sample = pipe.sample or {}
      print_one(i, pipe, sample[1], sample[2])
    end
  end
end

--- Print what is known at the end of the script, unless it ended with a pass. Exits with code 1 if
--- a pipeline cannot be planned.
function script.finish()
  if printed then return end
  script.report()
  if #opened == 0 then
    io.stderr:write "gpipe-lua: --dry-run: the script has built no pipeline\n"
  end
  if failed then os.exit(1, true) end
end

local function leave(pipe, x, y)
  script.report(pipe, x, y)
  print "(--dry-run: stopped before the first step)"
  os.exit(failed and 1 or 0, true)
end

-- ---- the object ---------------------------------------------------------------------------------

local methods = {}

function methods:step(x, y) leave(self, x, y) end
function methods:evaluate(x, y) leave(self, x, y) end
function methods:accuracy(x, y) leave(self, x, y) end
function methods:forward(x) leave(self, x) end
function methods:backward() leave(self) end
function methods:profile(x, y) leave(self, x, y) end
function methods:prepare(x, y) self.sample = { x, y } end
function methods:flush() return self and {} end
function methods:use(opt)
  self.optimizer = opt
  return self
end
function methods:parameters(pattern)
  local list = self.model:parameters(pattern)
  for _, entry in ipairs(list) do
    rawset(entry, "stage", self.stage_of[(self.layer_of[entry.param] or 0) + 1])
  end
  return list
end
function methods:state_dict() return self.model:state_dict() end
function methods:progress() return self and {} end
function methods:loss_scale() return nil, self end
function methods:post_mortem() return nil, self end
function methods:close() self.closed = true end
function methods:describe() return text_of(self) end
for _, name in ipairs { "train", "eval", "zero_grad", "load_state_dict", "load_progress" } do
  methods[name] = function(self) return self end
end
for _, name in ipairs {
  "activations", "lowered", "timeline", "costs", "draw", "svg", "html", "trace",
} do
  methods[name] = function()
    errors.raise("%s: this is a dry run, no step was planned yet, expected a step before", name)
  end
end

-- What is known before a step: no bytes of any device are taken.
function methods:memory()
  local list = {}
  for d, device in ipairs(self.devices) do
    list[d] = { name = device.name, planned = 0, lower_bound = 0, areas = {} }
  end
  return report.new(list, nil, nil)
end

local wrap = object.class(methods, {
  stats = function() return readable { seconds = 0, skipped = 0 } end,
}, text_of)

-- The devices of the pipeline, all with rates: nothing is measured.
local function devices_of(given, count)
  local list = plan_devices.read(WHO, given or count)
  local described, names = {}, {}
  for d, one in ipairs(list) do
    local threads = one.threads or 1
    described[d] = plan_devices.modelled(one)
    names[d] = { name = one.name, kind = one.kind or "cpu", threads = threads }
  end
  return described, names
end

-- Where the script called gp.pipeline: " (train.lua:12)".
local function caller()
  local level = errors.level()
  local info = level > 0 and debug.getinfo(level, "Sl")
  return info and (" (%s:%d)"):format(info.short_src, info.currentline) or ""
end

--- Open a pipeline that is only planned.
---@param model any
---@param given any as gp.pipeline takes it
---@param rules table of its options
function script.pipeline(model, given, rules)
  local where = caller()
  local opts = fields.check(WHO, model, apply.options(model, given, true), rules)
  local named = opts.devices or machine.configured()
  local count = type(named) == "table" and #named or named
  local list, made, one = cut.arrange(model, opts, count)
  local planned, names = devices_of(named, made.devices)
  local of, layer_of = fields.of(model, list, opts.deferred_batch_norm)
  local pipe = {
    model = model, balance = list, stages = #list, devices = names, planned = planned,
    stage_of = of.stage_of, layer_of = layer_of, chunks = opts.chunks, core = true,
    placement = made.device_list, copies = made.copies, schedule_name = made.name, built = one,
    schedule = fields.source_of(opts, one), checkpoint = opts.checkpoint, loss = opts.loss,
    replicas = opts.replicas, sum_group = opts.sum_group,
    precision = precision.resolve(WHO, opts, made.batch > 0), asynchronous = made.batch > 0,
    deferred = opts.deferred_batch_norm, synced = opts.synced, sample = opts.sample,
    where = where, mode = "train",
  }
  opened[#opened + 1] = pipe
  return wrap(pipe)
end

return script
