-- lua/gpipe/plan/case.lua - a case: a shape (schedule, devices, micro-batches) with a policy of
-- recomputation, and what its cuts are judged by.

local candidates = require "gpipe.plan.candidates"
local device_bytes = require "gpipe.plan.device_bytes"
local devices = require "gpipe.plan.devices"
local moments = require "gpipe.plan.moments"
local stage_cost = require "gpipe.plan.stage_cost"
local sums = require "gpipe.plan.sums"

---@class gpipe.PlanProblem what does not change from one candidate to the next
---@field who string
---@field figures table
---@field devices gpipe.PlanDevice[]
---@field batch integer rows
---@field pieces integer into how many micro-batches they can be cut
---@field moments integer
---@field halves boolean
---@field link? {latency: number, bandwidth: number}
---@field together? integer[][]
---@field pinned? table<integer, integer>
---@field conditions? gpipe.PartitionConditions these two, read

---@class gpipe.PlanCase a candidate: a shape with a policy
---@field shape gpipe.PlanShape
---@field lowered gpipe.Lowered
---@field policy string
---@field rows integer of a micro-batch
---@field memory gpipe.StageMemory
---@field on integer[][] element s + 1: the devices (from 1) of stage s
---@field first table<integer, boolean>[] per device: the stages (from 0) of which it has the first copy
---@field sums gpipe.LayerSums[] per device
---@field extra number[] per device: bytes that the estimate lacks

-- Layers with running sums, once for devices on which they take the same time.
local function sums_of(problem, rows, device)
  local key = rows .. " " .. devices.class(device)
  local made = problem.sums[key]
  if not made then
    made = sums.of(problem.figures:layers(rows, device))
    problem.sums[key] = made
  end
  return made
end

local function devices_of(shape)
  local on, copies = {}, shape.schedule.copies
  for stage = 0, shape.schedule.stages - 1 do
    on[stage + 1] = {}
    for copy = 1, copies do
      on[stage + 1][copy] = shape.schedule.device_list[stage * copies + copy] + 1
    end
  end
  return on
end

-- The gradients that a device holds, as multiples of its parameters: its own, and the partial sums
-- of the tree; and what it receives of the gradients that it owns from replicas or from the other
-- copies of its stages.
local function gradients_of(shape)
  local r = shape.replicas
  if r == 1 then return 1, shape.schedule.copies - 1 end
  local partials = 0
  while 1 << partials + 1 <= shape.asked do partials = partials + 1 end
  return 1 + partials, (r - 1) / r
end

-- The stages of which each device has the first copy.
local function first_of(shape, on)
  local first = {}
  for d = 1, shape.devices do first[d] = {} end
  for stage, list in ipairs(on) do
    for copy, d in ipairs(list) do
      first[d][stage - 1] = first[d][stage - 1] or (copy - 1) % (#list // shape.replicas) == 0
    end
  end
  return first
end

-- The seconds of a byte on its way to the host's memory, for each stage; false where its device
-- does not say it.
local function away_of(problem, on)
  local away = {}
  for stage, list in ipairs(on) do
    local bandwidth = problem.devices[list[1]].host_bandwidth
    away[stage] = bandwidth and 1 / bandwidth or false
  end
  return away
end

--- Put a case together.
---@param problem gpipe.PlanProblem
---@param shape gpipe.PlanShape
---@param lowered gpipe.Lowered
---@param policy string
---@return gpipe.PlanCase
return function(problem, shape, lowered, policy)
  local rows = math.ceil(problem.batch / math.min(shape.asked * shape.replicas, problem.batch))
  local case = { shape = shape, lowered = lowered, policy = policy, rows = rows, sums = {},
    on = devices_of(shape), extra = {} }
  for d = 1, shape.devices do
    local device = problem.devices[d]
    case.sums[d] = sums_of(problem, rows, device)
    case.extra[d] = device.own and 0 or (device.threads or 1) * case.sums[d].scratch
  end
  local own, received = gradients_of(shape)
  case.first = first_of(shape, case.on)
  case.memory = {
    live = shape.live, held = lowered.held, share = lowered.share, versions = shape.versions,
    copies = shape.schedule.copies // shape.replicas,
    moments_kept = problem.moments / shape.replicas,
    gradients = own, received = received, halves = problem.halves,
    policy = policy, chunks = shape.chunks, input_bytes = rows * problem.figures.row_bytes,
    at = { times = {} }, carried = lowered.carried, away = away_of(problem, case.on),
    streamed = shape.replicas > 1 and shape.schedule.batch > 0,
    turns = device_bytes.turns(case.on), moments = moments.of_stages(case, lowered),
    plain = stage_cost.policies[policy].plainly
      and moments.of_stages(case, candidates.lowered(shape, "never")) or nil,
  }
  return case
end
