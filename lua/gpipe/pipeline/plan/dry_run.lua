-- lua/gpipe/pipeline/plan/dry_run.lua - `gp.dry_run(model, options)`: what a pipeline would run and
-- allocate, on devices that need not exist, or for one device out of many.
--
-- The model is traced and planned as for a pipeline, but nothing is bound: no memory is allocated,
-- no worker started, no parameter drawn, and a model that a pipeline owns may be planned too.

local core = require "gpipe.core"
local activations = require "gpipe.pipeline.activations"
local areas = require "gpipe.pipeline.areas"
local batch = require "gpipe.pipeline.batch"
local budgets = require "gpipe.pipeline.plan.budgets"
local capacity = require "gpipe.plan.capacity"
local checkpoint = require "gpipe.pipeline.plan.checkpoint"
local counted = require "gpipe.counted"
local cut = require "gpipe.pipeline.plan.cut"
local describe = require "gpipe.pipeline.describe"
local errors = require "gpipe.errors"
local fields = require "gpipe.pipeline.plan.fields"
local host = require "gpipe.plan.host"
local keeps = require "gpipe.pipeline.plan.keeps"
local options = require "gpipe.options"
local plans = require "gpipe.pipeline.plan.plans"
local precision = require "gpipe.pipeline.plan.precision"
local replicas = require "gpipe.pipeline.plan.replicas"
local short = require "gpipe.pipeline.areas.short"
local sizes = require "gpipe.sizes"

local WHO = "gp.dry_run"
local ALL, SHOWN = -1, -2 -- devices, as core.plan_new takes them

local RULES = fields.rules {
  devices = { type = { "integer", "table" }, check = fields.check_devices },
  loss = { type = "callable", required = true },
  sample = { type = "table", required = true },
  precision = precision.rule,
  loss_scale = precision.scale_rule,
  device = { type = "integer", min = 0 },
}

local DEVICE = {
  own = { type = "boolean", default = true },
  rank = { type = "integer", min = 0, default = 0 },
  scratch = { type = "integer", min = 0, default = 0 },
  shown = { type = "boolean", default = false },
  memory = { type = { "number", "string" } },
  host_link = host.SPEC.host_link, host_memory = host.SPEC.host_memory,
}

---@class gpipe.DryRun
---@field devices {name: string}[]
---@field stages integer
---@field balance integer[]
---@field chunks integer
---@field fits boolean whether every device has room for its share; true without caps
---@field follows? string the policy by name that "auto" has found to be the fastest that fits
local DryRun = {}
DryRun.__index = DryRun
DryRun.__name = "gpipe.DryRun"

-- ---- results ---------------------------------------------------------------------------------

--- What each device would run, as text; see pipe:lowered.
---@return string[] rows of devices whose share is not planned are ""
function DryRun:rows()
  local rows = {}
  for d = 1, #self.devices do rows[d] = self.core:row(self.core, d - 1) end
  return rows
end

--- Bytes of each device's memory that a step would take, beside parameters and gradients. They
--- include the weights in halves, which are kept beside the parameters.
---@return integer[] bytes 0 if a device's share is not planned
function DryRun:bytes()
  local bytes = {}
  for d = 1, #self.devices do bytes[d] = self.core:bytes(self.core, d - 1) end
  return bytes
end

--- What the pipeline would take of each device's memory, by areas; see pipe:memory. Nothing is
--- measured, and no optimizer is known: its state comes in addition.
--- ```lua
--- local dry = gp.dry_run(nn.Sequential {nn.Linear(4, 8), nn.Linear(8, 2)}, {
---   balance = {1, 1}, loss = nn.MSELoss(), sample = {gp.ones {8, 4}, gp.ones {8, 2}},
--- })
--- assert(dry:memory()[1].areas.parameters >= (4 * 8 + 8) * 4)
--- print(dry:memory():draw {width = 72})
--- ```
---@return gpipe.Memory
function DryRun:memory() return areas.of(self) end

--- What a micro-batch would save between its forward and its backward pass; see
--- pipe:activations.
--- ```lua
--- local dry = gp.dry_run(nn.Sequential {nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)}, {
---   loss = nn.MSELoss(), sample = {gp.ones {8, 4}, gp.ones {8, 2}},
--- })
--- assert(dry:activations()[1].op == "tanh")
--- ```
---@return table[] {layer, stage, name, op, shape, bytes, last, why, away}
function DryRun:activations() return activations.of(self.core, self.core) end

--- What does not fit: for each device that needs more than its option `memory` a text with the
--- numbers and the largest part. Parameters, gradients and buffers count, moments of an optimizer
--- do not.
---@return string? one line per device; nil if everything fits
function DryRun:short() return short.text(areas.of(self)) end

--- The values that cross cuts: {label, from, to, backward, slots, bytes}.
---@return table[]
function DryRun:edges() return self.core:edges(self.core) end

--- What GPUs of two ranks send each other by NCCL, in this order, which is proven to come to its
--- end when the plan is made: a line for each directed pair of devices. Empty without such pairs.
--- ```lua
--- local dry = gp.dry_run(nn.Sequential {nn.Linear(4, 8), nn.Linear(8, 2)}, {
---   balance = {1, 1}, loss = nn.MSELoss(), sample = {gp.ones {8, 4}, gp.ones {8, 2}},
---   devices = {{rank = 0}, {rank = 1}}, chunks = 2,
--- })
--- assert(dry:transfers()[1] == "device 0 (rank 0) to 1 (rank 1): the value of 0F0, "
---   .. "the value of 0F1")
--- ```
---@return string[]
function DryRun:transfers()
  local lines = {}
  for line in self.core:transfers(self.core):gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

--- Print the rows, the edges, what each stage keeps and what each task touches; see pipe:lowered.
---@param opts? {tasks: boolean?}
function DryRun:lowered(opts) return describe.lowered(self, opts) end

--- The cost of actions by the cost model; see pipe:costs.
---@param opts? {flops: number?, bandwidth: number?}
function DryRun:costs(opts)
  local given = { from = "model" }
  for key, value in pairs(opts or {}) do given[key] = value end
  return describe.costs(self, given)
end

function DryRun:__tostring()
  local lines = {
    ("%s: %s on %s, %s"):format(self.schedule_name, counted(self.stages, "stage"),
      counted(#self.devices, "device"), counted(self.chunks, "micro-batch")),
  }
  for d, device in ipairs(self.devices) do
    if self.core:tasks(self.core, d - 1) > 0 then
      lines[#lines + 1] = ("  %s: %d actions, %s"):format(device.name,
        self.core:tasks(self.core, d - 1), sizes.text(self.core:bytes(self.core, d - 1)))
    end
  end
  lines[#lines + 1] = "  (beside parameters, their gradients and the optimizer's state)"
  lines[#lines + 1] = self:short()
  return table.concat(lines, "\n")
end

-- ---- making one ------------------------------------------------------------------------------

-- The number of devices, given as a number or as a list of descriptions. Devices without a
-- description share the host's memory.
local function count_of(given) return type(given) == "table" and #given or given end

local function describe_devices(given, count)
  local described, names = {}, {}
  for d = 1, count do
    local one = type(given) == "table" and given[d]
    described[d] = one and options.check(WHO .. ": devices", one, DEVICE) or {}
    described[d].halves = described[d].own and os.getenv "GPIPE_UPDATE_HALVES" ~= "0"
    local kind = described[d].own and "cuda" or "cpu"
    names[d] = { name = "device " .. d - 1, threads = 1, kind = kind }
    local who = ("%s: devices[%d]"):format(WHO, d)
    if one and one.memory then names[d].cap = capacity.bytes(who, one.memory) end
    host.read(who, described[d], names[d])
    described[d].host_memory = names[d].host_memory
    described[d].host_bandwidth, described[d].host_latency = names[d].host_bandwidth,
      names[d].host_latency
  end
  return described, names
end

local function check_device(device, count)
  if not device or device < count then return end
  errors.raise("%s: option 'device' is %d, expected one of 0..%d", WHO, device, count - 1)
end

-- The devices (from 0) that are to be planned, as a set; nil: all of them.
local function shown_of(described)
  local set
  for d, one in ipairs(described) do
    if one.shown then
      set = set or {}
      set[d - 1] = true
    end
  end
  return set
end

-- The fields that plans.specify and describe read from a pipeline.
local function as_pipeline(model, opts, list, made, one, computes)
  return setmetatable({
    model = model, balance = list, stages = #list, chunks = opts.chunks, copies = made.copies,
    asynchronous = made.batch > 0, schedule = fields.source_of(opts, one), asked = one.asked,
    replicas = opts.replicas, built = plans.built(made), schedule_name = made.name,
    loss = opts.loss, precision = computes, core = true, plans = {},
    deferred = opts.deferred_batch_norm, synced = opts.synced, placement = made.device_list,
    checkpoint = opts.checkpoint, apart = replicas.are_free(WHO, made, opts),
    free = opts.barrier == false,
  }, DryRun)
end

-- The stages that keep everything although the policy is another one; nil if none has to.
local function keeping(dry, plan, made)
  local function measure(flags)
    plan(nil, flags)
    return areas.needs(dry, false)
  end
  return keeps.find(measure, keeps.stages(made.device_list, made.copies, #dry.devices), dry.stages,
    checkpoint.offloads(dry.checkpoint))
end

-- Make the plan, with budgets that fit where the policy asks for some.
local function settle(dry, plan, auto, keep)
  local room, capped = { host = {} }, false
  for d, device in ipairs(dry.devices) do
    room[d], room.host[d] = device.cap or false, device.host_memory or false
    capped = capped or room[d] or room.host[d]
  end
  local function measure(list)
    plan(list)
    return areas.needs(dry, true)
  end
  if auto and capped then
    local found = budgets.find(measure, room, budgets.links(dry.devices),
      keeps.stages(dry.placement, dry.copies, #dry.devices))
    dry.follows = found and found.policy
    plan(found)
  else
    plan(nil, keep)
  end
  dry.fits = not capped or not dry:short()
end

--- Plan a step of a model for devices that need not exist.
---
--- The options are those of gp.pipeline, with these differences: `sample = {x, y}` and `loss` are
--- required. `devices` is the number of devices, or a list of descriptions {own = true, scratch =
--- 0, rank = 0}: whether the device has its own memory, as GPUs have, how many bytes its libraries
--- need in addition, and which process drives it. With memory = "8GiB" a device has a cap:
--- checkpoint = "auto" keeps what it has room for, `dry.fits` says whether all of it fits, and
--- dry:short() what does not. No cap is an error here. host_link = {bandwidth = 25e9} and
--- host_memory are as in gp.pipeline. `device` (from 0) plans the share of one device,
--- in the time and memory of that share; shown = true of some devices plans theirs.
--- ```lua
--- local model = nn.Sequential {nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)}
--- local dry = gp.dry_run(model, {
---   balance = {2, 1}, chunks = 4, loss = nn.MSELoss(), sample = {gp.ones {8, 4}, gp.ones {8, 2}},
--- })
--- assert(dry:rows()[1]:find("0F0,0SEND_F0", 1, true))
--- print(dry)
--- ```
---@param model nn.Sequential
---@param opts table
---@param raw? boolean internal: "selective" on all stages, even where it takes more than "never"
---@return gpipe.DryRun
local function dry_run(model, opts, raw)
  opts = fields.check(WHO, model, opts, RULES)
  local list, made, one = cut.arrange(model, opts, count_of(opts.devices), 1)
  check_device(opts.device, made.devices)
  local described, names = describe_devices(opts.devices, made.devices)
  local computes = precision.resolve(WHO, opts, made.batch > 0)
  local dry = as_pipeline(model, opts, list, made, one, computes)
  local given = fields.of(model, list, opts.deferred_batch_norm)
  given.devices, given.placement, given.copies = names, made.device_list, made.copies
  given.replicas, given.sum_group = made.replicas, opts.grouped
  given.bucket, given.streams = replicas.bucket(), made.batch > 0 or dry.apart
  given.checkpoint, given.finite = opts.checkpoint, fields.finite(opts.finite)
  given.unfused = not fields.fuses(opts.fuse)
  given.loss_scale = computes.scale
  local inputs = batch.list(WHO, "sample's input", opts.sample[1])
  local targets = batch.list(WHO, "sample's target", opts.sample[2])
  batch.check_rows(WHO, inputs, targets)
  local which = opts.device or shown_of(described)
  dry.devices, dry.share = names, type(which) == "number" and { [which] = true } or which
  local function plan(found, keep)
    local spec = plans.specify(dry, "step", inputs, targets, opts.chunks)
    spec.keeps = keep
    budgets.specify(spec, found)
    dry.core = core.plan_new(given, spec, described, opts.device or which and SHOWN or ALL)
    dry.plans[1] = { kind = "step", handle = dry.core, used = 1 }
  end
  local asks = (opts.checkpoint == "selective" or checkpoint.offloads(opts.checkpoint))
    and not raw and not opts.device
  settle(dry, plan, opts.checkpoint == "auto", asks and keeping(dry, plan, made) or nil)
  return dry
end

return dry_run
