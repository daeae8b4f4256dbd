-- lua/gpipe/plan/job/stream.lua - `plan:simulate` of an asynchronous schedule: its replicas add up
-- their gradients before every update, so that they are simulated together.
--
-- In a synchronous schedule replicas meet at the end of a step, and draws of one stand for all. In
-- a stream they meet at every update of every stage, and who is late there changes what follows.
-- So the schedule of several replicas is simulated as a pipeline runs it: the gradients of a mini-
-- batch travel when the last backward pass has added to them, while the device runs the next
-- forward pass. It waits for those of the others in REDUCE_GRAD, behind that. New values travel
-- while it goes on with the version before.

local candidates = require "gpipe.plan.candidates"
local demand = require "gpipe.plan.demand"
local errors = require "gpipe.errors"
local noise = require "gpipe.schedule.noise"
local replicate = require "gpipe.schedule.replicate"
local sampled = require "gpipe.plan.job.sampled"
local schedule = require "gpipe.schedule"
local stage_cost = require "gpipe.plan.stage_cost"
local sums = require "gpipe.plan.sums"

local stream = {}

-- ---- the schedule of several replicas -----------------------------------------------------------

--- Whether so many replicas of a row cannot run, because they would update more often than once for
--- the micro-batches of a step.
---@param case gpipe.PlanCase
---@param replicas integer
function stream.refuses(case, replicas)
  local shape = case.shape
  return shape.schedule.batch > 0 and replicas > 1
    and shape.schedule.batch ~= shape.asked * shape.replicas
end

--- What is known of a row whose replicas are simulated together.
---@param row gpipe.PlanRow
---@param case gpipe.PlanCase
---@return table
function stream.of(row, case)
  local wanted, own = candidates.apart(row.schedule)
  local m, p = case.shape.asked, row.devices // own
  local one = schedule.resolve(wanted, p, m)
  return { one = one:verify(), own = own, m = m, p = p,
    checkpoint = stage_cost.policies[case.policy].lowered }
end

--- The schedule of so many replicas with what lowering adds, as pipe:lowered() of such a pipeline
--- has it.
--- Errors: a schedule that updates more often than once for a replica's micro-batches.
---@param self table of stream.of
---@param replicas integer
---@return gpipe.Schedule
function stream.all(self, replicas)
  local all = self.one
  if replicas > 1 then
    all = replicate(function() return self.one end, replicas, self.m, replicas * self.m)
  end
  return all:lower { checkpoint = self.checkpoint, comms = false, update = "none" }
end

-- ---- costs --------------------------------------------------------------------------------------

--- Seconds for which a device sends the gradients of a stage, or its new values, to the others of
--- so many replicas: (R - 1) / R of them, to each its share.
---@param case gpipe.PlanCase
---@param balance integer[]
---@param network {latency: number, bandwidth: number}
---@param replicas integer
---@return number[] per stage
function stream.sent(case, balance, network, replicas)
  local list = {}
  for stage, range in ipairs(demand.ranges(balance)) do
    local bytes = sums.range(case.sums[case.on[stage][1]].parameter_bytes, range[1], range[2])
    list[stage] = (replicas - 1) / replicas * bytes / network.bandwidth
  end
  return list
end

-- The devices that always take longer: those of the pipeline, in every replica.
local function slow_of(self, given, replicas)
  if not given then return nil end
  local slow, row = {}, self.p * self.own
  for device, factor in pairs(given) do
    if math.type(device) ~= "integer" or device < 0 or device >= row then
      errors.raise("plan:simulate: slow[%s], expected devices from 0 to %d", errors.show(device),
        row - 1)
    end
    for first = 0, replicas * self.p - 1, row do slow[first + device] = factor end
  end
  return slow
end

-- Seconds of a step, many times.
local function times_of(self, replicas, costs, varying, count)
  local all, own = stream.all(self, replicas), {}
  for key, value in pairs(costs) do own[key] = value end
  for key in pairs(noise.SPEC) do own[key] = varying[key] end
  own.slow, own.count = slow_of(self, varying.slow, replicas), count
  local list = all:makespans(own)
  local steps = all.checked:micros() / (self.m * replicas)
  for i, seconds in ipairs(list) do list[i] = seconds / steps end
  return list
end

-- ---- times --------------------------------------------------------------------------------------

local MOST_ACTIONS = 1e7 -- that are simulated in all runs: a second or two
local SAMPLES = 100

-- How many replicas are simulated together: all, as far as that takes seconds.
local function together_of(self, o, samples)
  local each = 3 * self.one.stages * self.one.checked:micros()
  local most = math.floor(MOST_ACTIONS / each / samples / self.own)
  return math.max(math.min(2, o.replicas), math.min(o.replicas, most))
end

--- Fill in the times of a job: without anything that varies, then with it. Replicas are alike, so
--- that two of them say what all take where nothing varies.
---@param made gpipe.Job
---@param o table options of plan:simulate
---@param self table of stream.of
---@param costs table of rate.costs
---@param exchange {sent: number[], latency: number} seconds of stream.sent, and on the way
function stream.add_times(made, o, self, costs, exchange)
  local quiet = { seed = o.seed, slow = o.slow }
  local few = self.own * math.min(2, o.replicas)
  costs.sums, costs.values, costs.exchange = nil, nil, nil
  made.pipeline = times_of(self, few, costs, quiet, 1)[1]
  costs.sums, costs.values, costs.exchange = exchange.sent, exchange.sent, exchange.latency
  made.quiet = times_of(self, few, costs, quiet, 1)[1]
  made.exchange = made.quiet - made.pipeline
  made.step, made.samples = made.quiet, 1
  if not made.varies then return end
  made.samples = o.samples or SAMPLES
  local together = together_of(self, o, made.samples)
  local list = times_of(self, self.own * together, costs, o, made.samples)
  sampled.note(made, list, 1, o.stragglers and o.stragglers.share or 0)
  made.together, made.short = self.own * together, together < o.replicas
end

return stream
