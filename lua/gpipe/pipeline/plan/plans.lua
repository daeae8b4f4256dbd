-- lua/gpipe/pipeline/plan/plans.lua - makes one plan for each kind of pass and shape of batch, and
-- keeps it.
--
-- Plans hold memory, so only the few that were used last are kept: a training shape, the smaller
-- last batch of an epoch, evaluation.

local budgets = require "gpipe.pipeline.plan.budgets"
local caps = require "gpipe.pipeline.plan.caps"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local memory = require "gpipe.pipeline.memory"
local mode = require "gpipe.nn.mode"
local replicate = require "gpipe.schedule.replicate"
local schedule = require "gpipe.schedule"
local share = require "gpipe.ranks.share"
local traced = require "gpipe.pipeline.plan.traced"
local tracing = require "gpipe.pipeline.plan.tracing"

local plans = {}

local LIMIT = 6

local function add_shapes(parts, tensors)
  for _, t in ipairs(tensors) do
    parts[#parts + 1] = t.dtype .. " " .. table.concat(t.shape, "x")
  end
end

-- The key of a plan; it distinguishes inputs from targets.
local function key_of(pipe, kind, inputs, targets)
  local parts = { kind, traced.key(pipe.forwards) }
  add_shapes(parts, inputs)
  parts[#parts + 1] = "targets"
  add_shapes(parts, targets)
  return table.concat(parts, ";")
end

-- Split n rows into m micro-batches that are as equal as possible: {rows, how many} of the larger
-- and of the smaller ones.
local function split(n, chunks)
  local m = math.min(n, chunks)
  local rows, larger = n // m, n % m
  if larger == 0 then return { { rows, m } }, m end
  return { { rows + 1, larger }, { rows, m - larger } }, m
end

local TRAINING = { step = true, split = true }
local WITH_LOSS = { step = true, evaluate = true }

-- A name for a schedule of m micro-batches, `each` of them on a replica.
local function key_of_schedule(m, each) return m .. ":" .. each end

--- The first entry of a pipeline's schedules; streams are built anew.
---@param made gpipe.Schedule
---@return table<string, gpipe.Schedule>
function plans.built(made)
  if made.batch > 0 then return {} end
  return { [key_of_schedule(made.chunks, made.replica_chunks or made.chunks)] = made }
end

-- Build the schedule of one replica for m micro-batches; opts are further options, for a stream.
local function resolve_one(pipe, m, opts)
  local made = schedule.resolve(pipe.schedule, pipe.asked, m, opts)
  if made.chunks == m then return made end
  errors.raise("step: the batch has rows for %d micro-batches%s, the schedule is for %d: expected "
    .. "at least %d rows (a schedule's name fits itself)", m, pipe.replicas > 1
    and " of a replica" or "", made.chunks, made.chunks * pipe.replicas)
end

-- Make the schedule of all replicas, of m micro-batches and at most `each` on a replica, and verify
-- it. of(count) makes that of one replica.
local function of_replicas(pipe, of, m, each)
  local made = pipe.replicas == 1 and of(m) or replicate(of, pipe.replicas, each, m)
  local good, report = made:verify()
  if not good then errors.raise("step: %s", report) end
  return made
end

-- Build the schedule of the pipeline's option for m micro-batches, at most `each` on a replica,
-- once for all kinds of passes.
local function resolve(pipe, m, each, opts)
  local key = key_of_schedule(m, pipe.replicas > 1 and each or m)
  if not opts and pipe.built[key] then return pipe.built[key] end
  local function of(count) return resolve_one(pipe, count, opts) end
  local made = of_replicas(pipe, of, m, each)
  if not opts then pipe.built[key] = made end
  return made
end

-- Build so many mini-batches of m micro-batches of one replica's stream. A schedule may be known to
-- have two versions; of any other one the pipeline may take as many updates as stages to fill.
local function stream_of(pipe, m, batches)
  if schedule.is(pipe.schedule) then return pipe.schedule end
  if schedule.takes(pipe.schedule, "batches") then
    return resolve_one(pipe, m, { batches = batches })
  end
  local made = schedule.resolve(pipe.schedule, pipe.asked, m * batches)
  local least = math.ceil((4 + 2 * pipe.stages) * made.batch / m)
  if batches >= least then return made end
  return schedule.resolve(pipe.schedule, pipe.asked, m * least)
end

-- Build a stream of an asynchronous schedule that is long enough to repeat itself: several
-- mini-batches of m, at most `each` of them on a replica.
local function stream(pipe, m, each)
  local least = pipe.replicas > 1 and m % each > 0 and m % each or math.min(m, each)
  local batches = 4 + math.ceil(2 * pipe.stages / least)
  return of_replicas(pipe, function(count) return stream_of(pipe, count, batches) end, m, each)
end

-- Build a stream of a synchronous schedule whose replicas update without a barrier. Mini-batches do
-- not overlap on a device, so four are enough for it to repeat itself.
local function repeated(pipe, m, each)
  return of_replicas(pipe, function(count)
    local one = resolve_one(pipe, count)
    local rows = core.rows(one.devices)
    rows:repeated(one:parsed(), count, 4)
    return schedule.wrap(one.name, { placement = one.placement, rows = rows, batch = count },
      4 * count)
  end, m, each)
end

-- Whether a step of the pipeline is a part of a stream of replicas.
local function is_free(pipe) return pipe.apart and pipe.free end

-- Build a schedule that runs one micro-batch of a replica after the other through all stages on
-- their devices, for passes that a stream does not contain.
local function plain(pipe, m, each)
  local made = pipe.schedule
  local function of(count)
    local rows = schedule.rows(made.devices)
    for i = 0, count - 1 do
      for s = 0, made.stages - 1 do rows:F(made.placement[s], s, i) end
    end
    for i = 0, count - 1 do
      for s = made.stages - 1, 0, -1 do rows:B(made.placement[s], s, i) end
    end
    return schedule.wrap(made.name, { placement = made.placement, rows = rows }, count)
  end
  return of_replicas(pipe, of, m, each)
end

-- The schedule of a pass: for a step it is the pipeline's own. Other passes (forward only, and the
-- forward before pipe:backward) keep its order and its devices.
local function schedule_for(pipe, kind, m, each)
  if kind == "step" and is_free(pipe) then return repeated(pipe, m, each).checked end
  if kind == "step" then
    return (pipe.asynchronous and stream(pipe, m, each) or resolve(pipe, m, each)).checked
  end
  if pipe.asynchronous and schedule.is(pipe.schedule) then
    return plain(pipe, m, each).checked:part(kind == "split")
  end
  local one = pipe.asynchronous and schedule.takes(pipe.schedule, "batches") and { batches = 1 }
    or nil
  return resolve(pipe, m, each, one).checked:part(kind == "split")
end

-- Add to messages that their shapes are those of a micro-batch, which the user never made.
local function explain(rows, total)
  return function(message)
    if rows == total or errors.code_of(message) ~= "shape" then return message end
    return ("%s (shapes of a micro-batch: %d of the %d rows)"):format(message, rows, total)
  end
end

--- The specification of a plan for this many micro-batches on each replica, and the number of rows
--- in the larger ones.
local function specify(pipe, kind, inputs, targets, chunks)
  local sizes, m = split(inputs[1].shape[1], chunks * pipe.replicas)
  local request = {
    pipe = pipe, training = TRAINING[kind] or false, with_loss = WITH_LOSS[kind] or false,
    inputs = inputs, targets = targets,
  }
  local spec = { kind = kind, schedule = schedule_for(pipe, kind, m, chunks), shapes = {} }
  for k, size in ipairs(sizes) do
    request.handler = explain(size[1], inputs[1].shape[1])
    spec.shapes[k], spec.sum_loss = tracing.run(request, size[1], size[2])
  end
  if not pipe.core then errors.raise("%s: forward closed the pipeline that it runs in", kind) end
  return spec, sizes[1][1]
end

plans.specify = specify

-- The specification with the pipeline's micro-batches. The model's functions run here: over ranks,
-- one that fails on some of them fails on all.
local function specify_together(pipe, kind, inputs, targets)
  local spec, rows
  local function make() spec, rows = specify(pipe, kind, inputs, targets, pipe.chunks) end
  if pipe.spread then share.together("plan for new shapes", make) else make() end
  return spec, rows
end

-- Make a plan; if a device has too little memory, return nothing and the error.
local function build(pipe, kind, inputs, targets)
  local first, rows = specify_together(pipe, kind, inputs, targets)
  local function again()
    local spec = first or specify(pipe, kind, inputs, targets, pipe.chunks)
    first = nil
    return spec
  end
  local found, keep, refused = caps.settle(pipe, again, kind, TRAINING[kind] or false)
  if refused then return nil, refused end
  local spec = again()
  spec.keeps = keep
  budgets.specify(spec, found)
  local good, handle = pcall(pipe.core.plan, pipe.core, spec)
  if good then return { handle = handle, kind = kind, rows = rows } end
  if errors.code_of(handle) ~= "memory" then error(handle, 0) end
  return nil, handle
end

-- Drop the plan that was used longest ago; return false if all of them are in use.
local function evict(pipe)
  local oldest
  for key, plan in pairs(pipe.plans) do
    local waits = pipe.pending and pipe.pending.plan == plan -- its backward is still to come
    if not waits and (not oldest or plan.used < pipe.plans[oldest].used) then oldest = key end
  end
  if not oldest then return false end
  pipe.core:drop(pipe.plans[oldest].handle)
  pipe.plans[oldest] = nil
  pipe.plan_count = pipe.plan_count - 1
  return true
end

-- Make a plan; if a device has too little memory, free other plans and garbage first, and if that
-- is not enough, say what would fit.
local function build_somehow(pipe, kind, inputs, targets)
  local made = build(pipe, kind, inputs, targets)
  if made then return made end
  collectgarbage()
  repeat until not evict(pipe)
  local again, message = build(pipe, kind, inputs, targets)
  if again then return again end
  local function of(chunks) return (specify(pipe, kind, inputs, targets, chunks)) end
  errors.raise_as("memory", "%s%s", message,
    memory.advise(pipe, of, inputs[1].shape[1], TRAINING[kind] or false))
end

-- The parts of the model that stay in evaluation; they are looked up again only after a mode has
-- changed.
local function frozen_parts(pipe)
  local changes = mode.changes()
  if pipe.mode_changes ~= changes then
    pipe.frozen, pipe.mode_changes = mode.key(pipe.model), changes
  end
  return pipe.frozen
end

local function find(pipe, kind, inputs, targets)
  local key = key_of(pipe, kind, inputs, targets)
  if TRAINING[kind] then key = key .. ";" .. frozen_parts(pipe) end
  return pipe.plans[key], key
end

--- Return whether the plan for this pass is the one whose stream is open.
function plans.is_open(pipe, kind, inputs, targets)
  local plan = find(pipe, kind, inputs, targets)
  return plan ~= nil and pipe.core:stream() == plan.handle
end

--- Drop all plans, because what they were made for has changed.
function plans.drop(pipe)
  for key, plan in pairs(pipe.plans) do
    pipe.core:drop(plan.handle)
    pipe.plans[key] = nil
  end
  pipe.plan_count = 0
end

--- The plan for this kind of pass over these tensors.
---@param pipe table
---@param kind "step"|"split"|"evaluate"|"forward"
---@param inputs gpipe.Tensor[]
---@param targets gpipe.Tensor[]
---@return table plan
function plans.get(pipe, kind, inputs, targets)
  local plan, key = find(pipe, kind, inputs, targets)
  if not plan then
    if pipe.plan_count >= LIMIT then evict(pipe) end
    plan = build_somehow(pipe, kind, inputs, targets)
    pipe.plans[key] = plan
    pipe.plan_count = pipe.plan_count + 1
  end
  pipe.clock = pipe.clock + 1
  plan.used = pipe.clock
  return plan
end

return plans
