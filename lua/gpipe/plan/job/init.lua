-- lua/gpipe/plan/job/init.lua - `plan:simulate`: the pipeline of a plan as a job of many replicas,
-- whose times vary and whose hosts fail.
--
-- Replicas are alike, so one pipeline is simulated many times, and a step of R replicas takes as
-- long as the slowest of R of these runs. A pipeline is simulated exactly for each draw; the mean
-- of the slowest is an estimate, and its standard error is said.

local demand = require "gpipe.plan.demand"
local errors = require "gpipe.errors"
local devices = require "gpipe.plan.devices"
local goodput = require "gpipe.plan.goodput"
local noise = require "gpipe.schedule.noise"
local object = require "gpipe.plan.job.object"
local options = require "gpipe.options"
local rate = require "gpipe.plan.rate"
local sampled = require "gpipe.plan.job.sampled"
local stream = require "gpipe.plan.job.stream"
local sums = require "gpipe.plan.sums"

local job = {}

local WHO = "plan:simulate"

local above = { type = "number", above = 0, below = math.huge }

local SPEC = {
  row = { type = "table" },
  replicas = { type = "integer", min = 1, max = 1 << 20, default = 1 },
  network = { type = "table" },
  local_steps = { type = "integer", min = 1, max = 1 << 20, default = 1 },
  samples = { type = "integer", min = 1, max = 1 << 20 },
  hosts = { type = "integer", min = 1 },
  failures = above,
  checkpoint = { type = "table" },
}
for key, rule in pairs(noise.SPEC) do SPEC[key] = rule end

local CHECKPOINT = {
  seconds = above, bandwidth = above, interval = above,
  restart = { type = "number", min = 0, below = math.huge, default = 0 },
}

-- ---- what a row of a plan needs -----------------------------------------------------------------

local sources = setmetatable({}, { __mode = "k" }) -- row -> {problem, case}

--- Remember what a row was made of. It is no field of the row, so that printing rows shows figures.
---@param row gpipe.PlanRow
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
function job.remember(row, problem, case) sources[row] = { problem = problem, case = case } end

-- Bytes of the parameters of each device.
local function parameter_bytes(case, balance)
  local bytes, ranges = {}, demand.ranges(balance)
  for d, stages in ipairs(case.shape.holders) do
    bytes[d] = 0
    for _, stage in ipairs(stages) do
      local range = ranges[stage + 1]
      bytes[d] = bytes[d] + sums.range(case.sums[d].parameter_bytes, range[1], range[2])
    end
  end
  return bytes
end

-- Seconds in which the replicas of a device add up what they have: each sends a piece of its
-- gradients to every other and gets the sums back, so two latencies, and twice (R - 1) / R of the
-- bytes over its link, as much as a ring.
local function exchange_of(bytes, network, replicas)
  local list = {}
  for d, n in ipairs(bytes) do
    list[d] = replicas == 1 and 0
      or 2 * network.latency + 2 * (replicas - 1) / replicas * n / network.bandwidth
  end
  return list
end

-- What joins replicas: the option, else the first device's network, else its link.
local function network_of(given, problem)
  if given then return options.check(WHO .. ": network", given, devices.link_spec) end
  local first = problem.devices[1]
  return first.network or first.link or problem.link or { latency = 0, bandwidth = math.huge }
end

-- ---- sampling -----------------------------------------------------------------------------------

local MOST_ACTIONS = 3e7 -- that are simulated unless the option says how many: some seconds
local FEWEST, TIMES = 200, 16

-- How many runs of a replica are simulated: many times the replicas, so that the slowest of them is
-- estimated from within the sample, as far as that takes seconds.
local function samples_of(o, case)
  if o.samples then return o.samples end
  local actions = 3 * case.shape.schedule.stages * case.shape.chunks * o.local_steps
  local wanted = math.max(FEWEST, TIMES * o.replicas)
  return math.max(1, math.min(wanted, math.floor(MOST_ACTIONS / actions)))
end

-- The times of a replica for `local_steps` steps and the exchange behind them, many times.
local function times_of(o, schedule, costs, exchange, count)
  local rest = o.local_steps - 1
  for key in pairs(noise.SPEC) do costs[key] = o[key] end
  costs.count, costs.tails = count, exchange
  local list = schedule:makespans(costs)
  if rest == 0 then return list end
  costs.tails, costs.first, costs.count = nil, count, count * rest
  local more = schedule:makespans(costs)
  for i = 1, count do
    for k = 1, rest do list[i] = list[i] + more[(i - 1) * rest + k] end
  end
  return list
end

-- ---- failures -----------------------------------------------------------------------------------

-- The hosts of the job: those that the replica's devices name, for each replica.
local function hosts_of(o, problem, count)
  if o.hosts then return o.hosts end
  local seen, hosts = {}, 0
  for d = 1, count do
    local host = problem.devices[d].host
    if not seen[host] then seen[host], hosts = true, hosts + 1 end
  end
  return hosts * o.replicas
end

-- How long the job stands still to save: the option, or the parameters and moments of the fullest
-- device through its share of what the file system takes.
local function checkpoint_of(given, problem, bytes)
  local c = options.check(WHO .. ": checkpoint", given or {}, CHECKPOINT)
  if c.seconds then return c end
  local most = 0
  for _, n in ipairs(bytes) do most = math.max(most, (1 + problem.moments) * n) end
  c.seconds = c.bandwidth and most > 0 and most / c.bandwidth
  return c
end

local function goodput_of(o, problem, made, bytes)
  if not o.failures then
    if o.checkpoint then
      errors.raise("%s: checkpoint without failures, expected the mean seconds between failures of "
        .. "a host", WHO)
    end
    return nil
  end
  local c = checkpoint_of(o.checkpoint, problem, bytes)
  if not c.seconds then
    errors.raise("%s: failures without checkpoint, expected checkpoint = {seconds = 30} or "
      .. "{bandwidth = bytes a second of each device}", WHO)
  end
  return goodput { mtbf = o.failures, hosts = made.hosts, checkpoint = c.seconds,
    restart = c.restart, interval = c.interval, step = made.step }
end

-- ---- the call -----------------------------------------------------------------------------------

local function check_row(plan, row)
  local source = sources[row]
  if source then return row, source.problem, source.case end
  errors.raise("%s: option 'row' is %s, expected one of plan.rows (there are %d)", WHO,
    errors.show(row), #plan.rows)
end

local function check_stream(o, row)
  if o.local_steps == 1 then return end
  errors.raise("%s: local_steps is %d, and replicas of schedule '%s' add up their gradients before "
    .. "every update, expected 1", WHO, o.local_steps, row.label)
end

local function fields_of(o, row, problem)
  local count = row.devices
  return {
    label = row.label, chunks = row.chunks, row = row, replicas = o.replicas, devices = count,
    ranks = count * o.replicas, hosts = hosts_of(o, problem, count),
    rows = problem.batch * o.replicas, local_steps = o.local_steps, varies = sampled.varies(WHO, o),
  }
end

-- The step without anything that varies, then with it.
local function add_times(made, o, case, costs, exchange)
  local schedule, quiet = case.lowered.schedule, { seed = o.seed, local_steps = 1, slow = o.slow }
  local per = o.local_steps * rate.steps(case) -- steps of a run
  local last = times_of(quiet, schedule, costs, exchange, 1)[1]
  made.pipeline = times_of(quiet, schedule, costs, nil, 1)[1] / rate.steps(case)
  made.exchange = last / rate.steps(case) - made.pipeline
  made.quiet = made.pipeline + made.exchange / o.local_steps
  made.step, made.samples = made.quiet, 1
  if not made.varies then return end
  made.samples = samples_of(o, case)
  local list = times_of(o, schedule, costs, exchange, made.samples)
  for i, seconds in ipairs(list) do list[i] = seconds / per end
  sampled.note(made, list, o.replicas, o.stragglers and o.stragglers.share or 0)
  made.short = made.samples < o.replicas
end

--- Simulate a job that runs the plan's pipeline in so many replicas, on machines whose times vary
--- and whose hosts fail.
---
--- row: one of plan.rows (the best). replicas: copies of the pipeline, each with a mini-batch of
--- its own; they add up their gradients after every step, or after `local_steps` steps, over
--- `network` ({latency =, bandwidth =}; that of the first device). jitter, stragglers, slow, seed:
--- how times vary, as in schedule:simulate. samples: simulated runs of a replica. failures: mean
--- seconds between failures of one host; hosts: how many there are (those of the devices, for each
--- replica); checkpoint = {seconds = for which the job stands still (or bandwidth = of each
--- device), restart = seconds, interval = seconds (the best one)}.
---
--- Exact: a pipeline's time for given costs, and the share of lost time for failures without
--- memory. Sampled: the mean of the slowest replica; `error` is its standard error. Not in it: the
--- update, work that is shared by several jobs, exchanges that overlap with the backward pass.
--- Replicas of an asynchronous schedule meet at each update of each stage, so they are simulated
--- together: all, or as many as take seconds.
--- Errors: bad options; replicas of a schedule that updates more often than once for the
--- micro-batches of a step, as in gp.pipeline; local_steps in an asynchronous schedule.
--- ```lua
--- local profile = gp.profile {layers = {{forward = 1, weight = 2}, {forward = 1, weight = 2}}}
--- local device = {"sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e12}
--- local plan = assert(gp.plan(profile, nil, {devices = {device, device}, batch = 8}))
--- local job = plan:simulate {replicas = 64, jitter = 0.1, failures = 1e8,
---   checkpoint = {seconds = 30, restart = 120}}
--- assert(job.ranks == 64 * plan.best.devices and job.step > job.quiet)
--- print(job)
--- ```
---@param plan gpipe.Plan
---@param opts? table
---@return gpipe.Job
function job.simulate(plan, opts)
  local o = options.check(WHO, opts or {}, SPEC)
  local row, problem, case = check_row(plan, o.row or plan.best)
  local made = fields_of(o, row, problem)
  local bytes = parameter_bytes(case, row.balance)
  local costs, network = rate.costs(problem, case, row.balance), network_of(o.network, problem)
  if case.shape.schedule.batch > 0 and o.replicas > 1 then
    check_stream(o, row)
    local self = stream.of(row, case)
    local sent = stream.sent(case, row.balance, network, self.own * o.replicas)
    stream.add_times(made, o, self, costs, { sent = sent, latency = network.latency })
  else
    add_times(made, o, case, costs, exchange_of(bytes, network, o.replicas))
  end
  if made.step >= math.huge then
    errors.raise("%s: a step takes more seconds than a number can say, expected smaller factors of "
      .. "jitter, stragglers and slow", WHO)
  end
  made.failures = goodput_of(o, problem, made, bytes)
  made.goodput = made.failures and made.failures.goodput or 1
  made.rate = made.rows / made.step * made.goodput
  return object.new(made)
end

--- Simulate the best row of each schedule in the same way: which one suffers least. Prints a table,
--- and which schedules have no replicas.
--- ```lua
--- local profile = gp.profile {layers = {{forward = 1, weight = 2}, {forward = 1, weight = 2}}}
--- local device = {"sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e12}
--- local plan = assert(gp.plan(profile, nil, {devices = {device, device}, batch = 8}))
--- local jobs = plan:compare {replicas = 16, jitter = 0.1, samples = 100}
--- assert(jobs[1].rate >= jobs[#jobs].rate)
--- ```
---@param plan gpipe.Plan
---@param opts? table those of plan:simulate
---@return gpipe.Job[] the one with the most rows a second first
function job.compare(plan, opts)
  local o = options.check(WHO, opts or {}, SPEC)
  local jobs, seen, left = {}, {}, {}
  for _, row in ipairs(plan.rows) do
    local key = row.label .. " " .. row.devices
    if not seen[key] and row.devices == plan.best.devices then
      seen[key], o.row = true, row
      if stream.refuses(sources[row].case, o.replicas) then
        left[#left + 1] = row.label
      else
        jobs[#jobs + 1] = job.simulate(plan, o)
      end
    end
  end
  table.sort(jobs, function(a, b) return a.rate > b.rate end)
  print(object.table(jobs, left))
  return jobs
end

return job
