-- lua/gpipe/plan/exact.lua - asks the runtime for the bytes of a plan: the same passes that a
-- pipeline's own plan comes from, on devices that need not be there.
--
-- The planner's own sums are quick and near; these are exact. What they lack goes back into the
-- search as bytes that the device does not have. Of a large plan only the devices that are printed
-- are planned, and the one that is the fullest by those sums; the sums stand for the others.

local candidates = require "gpipe.plan.candidates"
local create = require "gpipe.tensor.create"
local demand = require "gpipe.plan.demand"
local dry_run = require "gpipe.pipeline.plan.dry_run"
local far = require "gpipe.ranks.pipeline"
local modelled = require "gpipe.plan.modelled"
local profile_request = require "gpipe.profile.request"
local samples = require "gpipe.plan.samples"
local sizes = require "gpipe.sizes"
local sums = require "gpipe.plan.sums"

local exact = {
  SHOWN = 16, -- devices whose bytes are printed
}

-- The devices of a row that are planned, as a set; nil: all of them.
local function shown_of(problem, row)
  if 2 * #row.balance * row.chunks <= far.most_whole() then return nil end
  local set, fullest = {}, 1
  local function full(d) return row.taken[d].bytes / problem.devices[d].memory end
  for d = 1, row.devices do
    if full(d) > full(fullest) then fullest = d end
    set[d] = d <= exact.SHOWN or nil
  end
  set[fullest] = true
  return set
end

-- The plan of a step; without a loss the mean of the outputs stands for one, in a layer of its own.
local function plan(problem, row, caps, shown)
  local sample = samples.batch(problem.figures.sample, problem.batch)
  local wanted = {
    who = problem.who, model = problem.model, loss = problem.loss, inputs = sample[1],
    targets = problem.loss and sample[2] or { create.zeros { problem.batch } },
  }
  local model, loss = profile_request.shared(wanted)
  local balance, described = table.move(row.balance, 1, #row.balance, 1, {}), {}
  if #model > problem.figures.count then balance[#balance] = balance[#balance] + 1 end
  for d = 1, row.devices do
    local device = problem.devices[d]
    described[d] = { own = device.own, rank = device.rank or device.host,
      host_link = device.host_link, memory = caps and caps[d],
      host_memory = caps and device.host_memory, shown = shown and shown[d] }
  end
  local schedule, replicas = candidates.apart(row.schedule)
  local opts = {
    balance = balance, chunks = row.asked, schedule = schedule, checkpoint = row.checkpoint,
    replicas = replicas > 1 and replicas or nil,
    sync_batch_norm = problem.norms ~= nil and replicas > 1,
    loss = loss, precision = problem.precision, devices = described,
    sample = { wanted.inputs, wanted.targets },
  }
  for name, value in pairs(row.options or {}) do opts[name] = value end
  return dry_run(model, opts)
end

-- The areas of a pipeline under the names of the planner's parts.
local PARTS = {
  ["extra gradients"] = "gradients", recomputed = "saved", transient = "workspace",
  waste = "workspace", staging = "workspace", ["thread scratch"] = "workspace",
  padding = "workspace", prepared = "packed", constants = "packed", ["kernel states"] = "packed",
  halves = "parameters", buffers = "parameters",
}

-- Bytes of the gradients that a device sums and updates. An optimizer keeps moments there: of two
-- copies of a stage, or of replicas, one does so for each parameter.
local function updated_on(dry, d)
  local bytes, copies = 0, dry.copies
  for holder, device in ipairs(dry.placement) do
    if device == d - 1 then
      local stage, copy = (holder - 1) // copies, (holder - 1) % copies
      bytes = bytes + dry.core:stage(dry.core, stage, copy).owned_bytes
    end
  end
  return bytes
end

-- The parts of a device from its areas in a plan without threads and optimizer.
local function parts_of(problem, row, d, areas, dry)
  local parts, estimate, device = {}, row.taken[d].parts, problem.devices[d]
  for name, bytes in pairs(areas) do
    local part = PARTS[name] or name
    if name == "thread scratch" then bytes = bytes * (device.threads or 1) end
    parts[part] = (parts[part] or 0) + bytes
  end
  -- an estimate's gradients include partial sums, which are areas of the step; a replica receives
  -- the gradients that it owns from the others
  local estimated = estimate.gradients / (row.gradients + (device.own and row.received or 0))
  local received = device.own and (row.replicas - 1) / row.replicas or 0
  parts.optimizer = math.ceil(problem.moments * updated_on(dry, d))
  parts.gradients = (parts.gradients or 0) + math.ceil(received * estimated)
  return parts
end

--- Bytes that the device's cap does not count: the moments of an optimizer that the script steps.
---@param row gpipe.PlanRow
---@param d integer
---@param parts table<string, integer>
---@return integer
function exact.apart(row, d, parts)
  return row.own_moments and row.own_moments[d] and parts.optimizer or 0
end

-- What a plan takes, as exact.bytes has it.
local function bytes_of(problem, row, dry, shown)
  local memory, list, parts, host, rest = dry:memory(), {}, {}, {}, {}
  for d, taken in ipairs(row.taken) do
    if not shown or shown[d] then
      parts[d] = parts_of(problem, row, d, memory[d].areas, dry)
      list[d] = sizes.sum(parts[d])
      rest[d] = list[d] - memory[d].planned - exact.apart(row, d, parts[d])
      host[d] = dry.core:on_host(dry.core, d - 1)
    else
      parts[d], list[d], host[d], rest[d] = taken.parts, math.ceil(taken.bytes), taken.host, 0
    end
  end
  return list, parts, host, rest
end

--- The exact bytes on each device: what the runtime plans for a step, and the moments.
---@param problem gpipe.PlanProblem
---@param row gpipe.PlanRow
---@return integer[] bytes per device
---@return table<string, integer>[] parts that add up to them
---@return integer[] host of the host's memory, in which saved values wait
---@return integer[] rest of the bytes per device: what the step's plan has not, such as moments
function exact.bytes(problem, row)
  local shown = shown_of(problem, row)
  return bytes_of(problem, row, plan(problem, row, nil, shown), shown)
end

-- ---- a policy that fills what memory there is ---------------------------------------------------

---@class gpipe.FoundAgain what the runtime's search has found for each stage, in seconds
---@field policy? string by name, for all stages
---@field recompute number[] of R
---@field input number[] what I or B makes again
---@field weight number[] what W makes again
---@field away number[] of a copy to the host's memory

-- The seconds of an action of a stage, beyond those of the same action without recomputation. They
-- are the cost model's for a device with rates; for one that was measured, F's seconds for as much
-- work as F is.
local function beyond(at, op, plain)
  local flop, moved = at.dry.core:cost(at.dry.core, at.stage, op)
  if plain then
    local less, fewer = at.never.core:cost(at.never.core, at.stage, op)
    flop, moved = math.max(0, flop - less), math.max(0, moved - fewer)
  end
  if at.device.flops then return modelled.seconds({ flop = flop, bytes = moved }, at.device) end
  local all, bytes = at.dry.core:cost(at.dry.core, at.stage, "F")
  return at.forward * (all > 0 and flop / all or bytes > 0 and moved / bytes or 0)
end

local function again_of(problem, row, dry)
  local never = plan(problem, setmetatable({ checkpoint = "never" }, { __index = row }))
  local found = { policy = dry.follows, recompute = {}, input = {}, weight = {}, away = {} }
  for s, range in ipairs(demand.ranges(row.balance)) do
    local d = row.case.on[s][1]
    local device = problem.devices[d]
    local at = { dry = dry, never = never, stage = s - 1, device = device,
      forward = sums.range(row.case.sums[d].forward, range[1], range[2]) }
    found.recompute[s], found.weight[s] = beyond(at, "R"), beyond(at, "W", true)
    found.input[s] = beyond(at, "B", true) + beyond(at, "I", true)
    local bytes = dry.core:stage(dry.core, s - 1, 0).away_bytes
    found.away[s] = bytes > 0 and device.host_latency + bytes / device.host_bandwidth or 0
  end
  return found
end

--- What the runtime's search finds for such a row within the memory of its devices: bytes as
--- exact.bytes has them, and what runs again; nil where nothing fits.
---@param problem gpipe.PlanProblem
---@param row gpipe.PlanRow
---@return integer[]? bytes
---@return table<string, integer>[]? parts
---@return integer[]? host
---@return gpipe.FoundAgain? found
function exact.filled(problem, row)
  local least = setmetatable({ checkpoint = "always" }, { __index = row })
  local _, _, _, rest = exact.bytes(problem, least)
  local caps = {}
  for d, bytes in ipairs(rest) do caps[d] = math.max(1, problem.devices[d].memory - bytes) end
  local dry = plan(problem, row, caps)
  if not dry.fits then return nil end
  local bytes, parts, host = bytes_of(problem, row, dry)
  for d, n in ipairs(bytes) do
    if n - exact.apart(row, d, parts[d]) > problem.devices[d].memory then return nil end
  end
  return bytes, parts, host, again_of(problem, row, dry)
end

return exact
