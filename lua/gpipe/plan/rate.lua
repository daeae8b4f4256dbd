-- lua/gpipe/plan/rate.lua - simulates a cut under its schedule: seconds of a step, bubble, what
-- recomputation costs, critical path; and improves the cut on the simulated schedule.
--
-- The most even cut is not always the fastest: stages beside a slow link, or with another share of
-- recomputation, wait in other places. So single layers are moved over each boundary as long as a
-- step becomes shorter.

local candidates = require "gpipe.plan.candidates"
local columns = require "gpipe.draw.columns"
local cores = require "gpipe.plan.cores"
local crossing = require "gpipe.plan.crossing"
local demand = require "gpipe.plan.demand"
local device_bytes = require "gpipe.plan.device_bytes"
local devices = require "gpipe.plan.devices"
local hops = require "gpipe.plan.hops"
local norms = require "gpipe.plan.norms"
local sharing = require "gpipe.plan.sharing"
local stage_cost = require "gpipe.plan.stage_cost"
local sums = require "gpipe.plan.sums"
local way = require "gpipe.plan.way"

local rate = {}

-- ---- costs --------------------------------------------------------------------------------------

-- The seconds of a copy of what a stage saves to the host's memory; 0 where nothing goes there.
local function copied(case, stage, device, bytes)
  if not stage_cost.goes(case.memory.live[stage - 1]) then return 0 end
  return device.host_latency + bytes / device.host_bandwidth
end

-- Put in the place of estimates what the runtime's search has found.
local function set_found(costs, found)
  for stage in ipairs(costs.F) do
    costs.R[stage] = found.recompute[stage]
    costs.I[stage] = costs.I[stage] + found.input[stage]
    costs.W[stage] = costs.W[stage] + found.weight[stage]
    costs.B[stage] = costs.B[stage] + found.input[stage] + found.weight[stage]
  end
  costs.away = columns.largest(found.away) > 0 and found.away or nil
end

-- The seconds of F in the mean: micro-batches that run again keep nothing.
local function forward_of(case, s, i, j, share)
  local kept = sums.range(s.forward, i, j)
  if not stage_cost.policies[case.policy].drops then return kept end
  return kept + share * (sums.range(s.forward_dropped, i, j) - kept)
end

-- Add what the cuts around a stage cost; no more than half of a time is ever gained by a cut.
local function add_crossing(costs, s, i, j, stage)
  local forward, backward = crossing.of(s.crossing, i, j, s.count)
  local function add(op, seconds)
    costs[op][stage] = math.max(costs[op][stage] / 2, costs[op][stage] + seconds)
  end
  add("F", forward)
  add("B", backward)
  add("I", backward)
end

-- Do replicas exchange what they have before every update?
local function streams(case)
  return case.shape.schedule.batch > 0 and case.shape.replicas > 1
end

-- The seconds in which the gradients of each stage get from its replicas to each other, and its
-- values likewise: each device receives the gradients that it owns from all others, and the values
-- that it does not own. Also for how long a device sends them, and the longest way behind that.
local function exchanges(problem, case, ranges)
  local r, list, sent, latency = case.shape.replicas, {}, {}, 0
  for stage, range in ipairs(ranges) do
    local on = case.on[stage]
    local bytes = sums.range(case.sums[on[1]].parameter_bytes, range[1], range[2])
    local link = hops.between(problem, on[1], on[#on])
    list[stage] = way.seconds(link, (r - 1) / r * bytes)
    sent[stage] = way.busy(link, (r - 1) / r * bytes)
    latency = math.max(latency, list[stage] - sent[stage])
  end
  return list, sent, latency
end

--- The seconds of each action of each stage, on its device, as schedule:simulate takes them.
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
---@param balance integer[]
---@return table
function rate.costs(problem, case, balance)
  local costs = { F = {}, I = {}, W = {}, B = {}, R = {}, comm = { F = {}, B = {} }, unit = "s",
    memory = false, busy = { F = {}, B = {} } }
  local narrow = false -- some link takes time for a value's bytes
  local offloads = stage_cost.policies[case.policy].offloads
  costs.away = offloads and {} or nil
  local ranges = demand.ranges(balance)
  for stage, range in ipairs(ranges) do
    local i, j, d = range[1], range[2], case.on[stage][1]
    local s, share, device = case.sums[d], case.lowered.share[stage], problem.devices[d]
    local room = (device.memory - case.extra[d]) / #case.shape.holders[d]
    local again = device_bytes.stage(case.memory, s, i, j, stage - 1, device.own, room)
    costs.F[stage] = forward_of(case, s, i, j, share)
    costs.I[stage], costs.W[stage] = sums.range(s.input, i, j), sums.range(s.weight, i, j)
    costs.B[stage] = sums.range(s.backward, i, j)
    add_crossing(costs, s, i, j, stage)
    costs.R[stage] = share > 0 and again / share or 0
    if offloads then costs.away[stage] = copied(case, stage, device, sums.saved(s, i, j)) end
    if stage > 1 then
      narrow = hops.add(problem, case, costs, i, stage) or narrow
    end
  end
  if streams(case) then
    local _, sent, latency = exchanges(problem, case, ranges)
    costs.sums, costs.values, costs.exchange = sent, sent, latency
  end
  if #balance == 1 then costs.comm = nil end
  if not narrow then costs.busy = nil end
  if case.found then set_found(costs, case.found) end
  norms.add(problem, case, costs, ranges)
  return costs
end

-- The micro-batches of a run, of all replicas: those of a step, but for asynchronous schedules,
-- which run as a stream.
local function micros_of(case)
  local made = case.shape.schedule
  return made.batch > 0 and made.checked:micros() or case.shape.chunks
end

-- The most that a device spends with recomputation in a run.
local function recomputed(case, costs)
  local most = 0
  for _, stages in ipairs(case.shape.holders) do
    local sum = 0
    for _, stage in ipairs(stages) do
      local found = case.found
      sum = sum + case.lowered.share[stage + 1] * costs.R[stage + 1]
        + (found and found.input[stage + 1] + found.weight[stage + 1] or 0)
    end
    most = math.max(most, sum * micros_of(case) / case.shape.schedule.copies)
  end
  return most
end

--- The steps of a run: one, but for asynchronous schedules, which run as a stream.
---@param case gpipe.PlanCase
---@return number
function rate.steps(case)
  if case.shape.schedule.batch == 0 then return 1 end
  return micros_of(case) / (case.shape.asked * case.shape.replicas)
end

-- When the last device is through: it exchanges gradients and values behind its last action, while
-- others may compute. Where a device has several stages, the largest exchange counts: the others
-- began before. In a stream the simulation has the exchanges.
local function last_of(problem, case, balance, ran)
  if case.shape.replicas == 1 or streams(case) then return ran.makespan end
  local last, list = 0, exchanges(problem, case, demand.ranges(balance))
  for d, stages in ipairs(case.shape.holders) do
    local most = 0
    for _, stage in ipairs(stages) do most = math.max(most, list[stage + 1]) end
    last = math.max(last, ran.finish[d] + 2 * most)
  end
  return last
end

-- The seconds of the slowest replica where threads share cores; 0 where every thread has one.
local function on_shared_cores(problem, case, ran, comm)
  local most, count, replicas = 0, #ran.work, case.shape.replicas
  for k = 0, replicas - 1 do
    local hosts = cores.hosts(problem.devices, count, replicas, k)
    if hosts then
      local own = table.move(problem.devices, k * count + 1, (k + 1) * count, 1, {})
      most = math.max(most, sharing.seconds(ran, own, hosts, comm))
    end
  end
  return most
end

--- Simulate a step.
---@return {seconds: number, bubble: number, recompute: number, simulation: gpipe.Simulation}
function rate.run(problem, case, balance)
  local costs = rate.costs(problem, case, balance)
  local ran = case.lowered.schedule:simulate(costs)
  local steps = rate.steps(case)
  local seconds = math.max(last_of(problem, case, balance, ran),
    on_shared_cores(problem, case, ran, costs.comm))
  ran.run:shed() -- of hundreds of rows that fit these would be gigabytes
  -- a stream goes on meanwhile
  local ending = case.shape.schedule.batch > 0 and 0 or hops.ending(problem, case)
  return {
    seconds = seconds / steps + ending,
    bubble = candidates.bubble(ran), simulation = ran,
    recompute = recomputed(case, costs) / steps,
  }
end

-- ---- better cuts --------------------------------------------------------------------------------

local MOST_STAGES = 32 -- of cuts that are improved: each move is a simulation

local function moved(balance, from, to)
  local list = table.move(balance, 1, #balance, 1, {})
  list[from], list[to] = list[from] - 1, list[to] + 1
  return list
end

-- The cut is one that the conditions allow.
local function allowed(problem, balance)
  local at = 0
  for s, count in ipairs(balance) do
    if count < 1 then return false end
    at = at + count
    for _, group in ipairs(problem.together or {}) do
      if s < #balance and at >= math.min(table.unpack(group))
        and at < math.max(table.unpack(group)) then return false end
    end
  end
  return problem.pinned == nil
end

local function tried(problem, case, balance, best)
  if not allowed(problem, balance) then return nil end
  local taken = demand.devices(problem, case, balance)
  if demand.short(problem, taken) then return nil end
  local ran = rate.run(problem, case, balance)
  return ran.seconds < best.seconds * (1 - 1e-6) and ran or nil, taken
end

--- Move layers over boundaries while that makes the step shorter.
---@return integer[] balance
---@return table ran
---@return table taken
function rate.improve(problem, case, balance, ran, taken)
  if #balance > MOST_STAGES then return balance, ran, taken end
  for _ = 1, 4 do
    local before = ran.seconds
    for s = 1, #balance - 1 do
      for _, move in ipairs { { s, s + 1 }, { s + 1, s } } do
        local other = moved(balance, move[1], move[2])
        local better, now = tried(problem, case, other, ran)
        if better then balance, ran, taken = other, better, now end
      end
    end
    if ran.seconds == before then break end
  end
  return balance, ran, taken
end

-- ---- the least that any plan takes --------------------------------------------------------------

-- The bounds of a step on the first devices: by all work, by the largest layer, and by the way of
-- one micro-batch.
local function bounds(problem, chunks, count)
  local rows = math.ceil(problem.batch / chunks)
  local speed, largest, through = 0, math.huge, math.huge
  local seen = {}
  for d = 1, count do
    local device = problem.devices[d]
    local class = devices.class(device)
    if not seen[class] then
      local all, most, once = 0, 0, 0
      for _, layer in ipairs(problem.figures:layers(rows, device)) do
        local forward = math.min(layer.forward, layer.forward_dropped)
        local both = forward + math.min(layer.input, layer.backward)
        local seconds = forward + math.min(layer.input + layer.weight, layer.backward)
        all, most, once = all + seconds, math.max(most, seconds), once + both
      end
      seen[class], largest, through = all, math.min(largest, most), math.min(through, once)
    end
    speed = speed + (seen[class] > 0 and 1 / seen[class] or math.huge)
  end
  local full = problem.batch / rows -- micro-batches, if all had the rows of the larger ones
  return full / (speed * cores.share(problem.devices, count)), full * largest, through
end

--- Seconds below which no plan can come: all work without recomputation, spread over all devices
--- (or cores) without a bubble; the largest layer for every micro-batch; one micro-batch forward
--- and back through all layers, whose weight gradients other devices may make meanwhile.
---@param problem gpipe.PlanProblem
---@param chunks integer
---@param count? integer of the first devices of the list alone
---@return number
function rate.bound(problem, chunks, count)
  return math.max(bounds(problem, chunks, count or #problem.devices))
end

--- The bound by the work alone, for streams too, which wait for no micro-batch: all of it spread
--- evenly; and the largest layer, unless devices may share it out.
---@param problem gpipe.PlanProblem
---@param chunks integer
---@param count integer of the first devices of the list alone
---@param shared boolean several devices have the same layers: replicas, copies of a stage
---@return number
function rate.work(problem, chunks, count, shared)
  local even, largest = bounds(problem, chunks, count)
  return shared and even or math.max(even, largest)
end

return rate
