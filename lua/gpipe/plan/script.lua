-- lua/gpipe/plan/script.lua - `gpipe-lua --dry-run script.lua`: plans the pipelines that a script
-- builds, and stops before the first step, whatever loop the script has.
--
-- gp.pipeline then returns an object that has all methods of a pipeline and owns nothing: no
-- memory, no workers, no device, so devices and models may be larger than the machine. The first
-- step, or forward pass, shows the shape of a batch: all plans are printed, and the program ends.
-- Evaluations before it are skipped. A script that runs no such pass is planned at its end, for the
-- samples that it gave.

local apply = require "gpipe.plan.apply"
local asked = require "gpipe.plan.asked"
local checks = require "gpipe.pipeline.checks"
local candidates = require "gpipe.plan.candidates"
local cut = require "gpipe.pipeline.plan.cut"
local dry_run = require "gpipe.pipeline.plan.dry_run"
local errors = require "gpipe.errors"
local fields = require "gpipe.pipeline.plan.fields"
local machine = require "gpipe.machine"
local in_use = require "gpipe.optim.in_use"
local object = require "gpipe.pipeline.object"
local optimizer = require "gpipe.optim.optimizer"
local plan = require "gpipe.plan"
local plan_devices = require "gpipe.plan.devices"
local precision = require "gpipe.pipeline.plan.precision"
local readable = require "gpipe.readable"
local report = require "gpipe.pipeline.areas.report"
local text_of = require "gpipe.pipeline.text"
local update = require "gpipe.pipeline.update"

local script = {}

local WHO = "gp.pipeline"

local opened = {} ---@type table[] the fields of all pipelines, in order
local printed = false
local failed = false -- a pipeline would raise an error where it runs

-- ---- plans --------------------------------------------------------------------------------------

-- The optimizers of a pipeline: the one that it updates by, else those that hold its parameters.
local function optimizers_of(pipe)
  if pipe.optimizer then return { pipe.optimizer } end
  local boxes = {}
  for _, entry in ipairs(pipe.model:parameters()) do boxes[entry.param] = true end
  return in_use.all_of(boxes)
end

-- Name optimizers, and return the one that keeps the most.
local function most_of(list)
  local most, names = list[1], {}
  for i, opt in ipairs(list) do
    names[i] = tostring(opt):match "^[^(]+"
    if optimizer.moments(opt) > optimizer.moments(most) then most = opt end
  end
  if #list > 1 then
    names[#names] = ("%s (every parameter with the moments of %s)"):format(names[#names],
      tostring(most):match "^[^(]+")
  end
  return most, #list > 0 and table.concat(names, ", ") or "none, for which gp.plan takes AdamW"
end

-- The plans of a pipeline for a batch: as it is set, and as the planner would.
local function say(pipe, x, y)
  local most, names = most_of(optimizers_of(pipe))
  local problem = plan.problem(pipe.model, y ~= nil and { x, y } or { x }, {
    devices = pipe.planned, loss = y ~= nil and pipe.loss or nil, precision = pipe.precision.name,
    optimizer = most, sync_batch_norm = (pipe.synced or 1) > 1,
  })
  local lines = { "  optimizer: " .. names }
  if y == nil then
    lines[2] = "  no target is known: planned for training by the mean of the outputs as the loss"
  elseif not (pipe.sample or pipe.stepped) then
    lines[2] = "  it was only evaluated: planned for a training step with such a batch"
  end
  local row, why = asked.row(problem, {
    balance = pipe.balance, devices = #pipe.devices,
    schedule = candidates.replicated(pipe.schedule, pipe.replicas),
    chunks = pipe.chunks, checkpoint = pipe.checkpoint, options = pipe.options,
    moments = most and problem.moments or 0, own_moments = pipe.optimizer and {} or pipe.capped,
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

-- The batch by which a pipeline is known that no step was taken of.
local function known_batch(pipe) return table.unpack(pipe.sample or pipe.evaluated or {}, 1, 2) end

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
      print_one(i, pipe, known_batch(pipe))
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

function methods:step(x, y, opts)
  checks.need_loss(self, "step")
  update.check_step(self, type(opts) == "table" and opts.accumulate)
  self.stepped = true
  leave(self, x, y)
end

-- No loss is known before the first step: a loop that waits for a small one goes on.
function methods:evaluate(x, y)
  checks.need_loss(self, "evaluate")
  self.evaluated = self.evaluated or { x, y }
  return math.huge
end

function methods:accuracy(x, y)
  self.evaluated = self.evaluated or { x, y }
  return 0.0
end

function methods:forward(x) leave(self, x) end

function methods.backward()
  errors.raise "backward: there is no forward to go back through, expected one before"
end

function methods:profile(x, y) leave(self, x, y) end

function methods:prepare(x, y)
  self.sample, self.dry = { x, y }, nil
  return self
end

function methods:flush() return self and {} end

function methods:use(opt, opts)
  local _, hypers = update.check_use(self, opt, opts)
  self.optimizer, self.hypers = opt, hypers
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
for _, name in ipairs { "activations", "timeline", "draw", "svg", "html", "trace" } do
  methods[name] = function(...) -- luacheck: ignore 212
    errors.raise("%s: this is a dry run, no step was planned yet, expected a step before", name)
  end
end

-- The plan of a step for the pipeline's sample; nil if it has none.
local function of_sample(pipe)
  if not (pipe.sample and pipe.loss) then return nil end
  if pipe.dry then return pipe.dry end
  local described = {}
  for d, device in ipairs(pipe.planned) do
    described[d] = { own = device.own or false, rank = device.rank or device.host }
  end
  local opts = {
    balance = pipe.balance, chunks = pipe.chunks, schedule = pipe.schedule, loss = pipe.loss,
    checkpoint = pipe.checkpoint, replicas = pipe.replicas > 1 and pipe.replicas or nil,
    precision = pipe.precision.name, devices = described, sample = pipe.sample,
  }
  for name, value in pairs(pipe.options) do opts[name] = value end
  pipe.dry = dry_run(pipe.model, opts)
  for d, device in ipairs(pipe.dry.devices) do
    device.name, device.threads = pipe.devices[d].name, pipe.devices[d].threads
  end
  return pipe.dry
end

for _, name in ipairs { "lowered", "costs" } do
  methods[name] = function(self, opts)
    local dry = of_sample(self)
    if not dry then
      errors.raise("%s: this is a dry run, no step was planned yet, expected option 'sample' and a "
        .. "loss, or a step before", name)
    end
    if name == "costs" then opts = nil end -- {from = "model"} is all that a dry run has
    return dry[name](dry, opts)
  end
end

-- What is planned for the sample; without one no bytes of any device are taken.
function methods:memory()
  local dry, list = of_sample(self), {}
  if dry then return dry:memory() end
  for d, device in ipairs(self.devices) do
    list[d] = { name = device.name, planned = 0, lower_bound = 0, areas = {} }
  end
  return report.new(list, nil, nil)
end

local wrap = object.class(methods, {
  stats = function() return readable { seconds = 0, skipped = 0 } end,
}, text_of)

-- The devices of the pipeline, the first ones of those given, all with rates: nothing is measured.
-- Those that are there and have option `memory` are capped.
local function devices_of(given, count)
  local list = plan_devices.read(WHO, given or count)
  local described, names, capped = {}, {}, {}
  for d, one in ipairs(table.move(list, 1, count, 1, {})) do
    local threads, said = one.threads or 1, type(given) == "table" and given[d]
    described[d] = plan_devices.modelled(one)
    names[d] = { name = one.name, kind = one.kind or "cpu", threads = threads }
    capped[d] = not one.sim and type(said) == "table" and said.memory ~= nil
  end
  return described, names, capped
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
  local planned, names, capped = devices_of(named, made.devices)
  local of, layer_of = fields.of(model, list, opts.deferred_batch_norm)
  local pipe = {
    model = model, balance = list, stages = #list, devices = names, planned = planned,
    stage_of = of.stage_of, layer_of = layer_of, chunks = opts.chunks, core = true,
    placement = made.device_list, copies = made.copies, schedule_name = made.name, built = one,
    schedule = fields.source_of(opts, one), checkpoint = opts.checkpoint, loss = opts.loss,
    replicas = opts.replicas, sum_group = opts.sum_group,
    precision = precision.resolve(WHO, opts, made.batch > 0), asynchronous = made.batch > 0,
    deferred = opts.deferred_batch_norm, synced = opts.synced, sample = opts.sample,
    where = where, mode = "train", capped = capped, options = {
      sum_group = opts.sum_group, finite = opts.finite, fuse = opts.fuse, barrier = opts.barrier,
      deferred_batch_norm = opts.deferred_batch_norm, sync_batch_norm = opts.sync_batch_norm,
    },
  }
  opened[#opened + 1] = pipe
  return wrap(pipe)
end

return script
