-- lua/gpipe/plan/demand.lua - what a balance takes on each device, by the planner's estimate, and
-- which device has too little.

local candidates = require "gpipe.plan.candidates"
local device_bytes = require "gpipe.plan.device_bytes"
local stage_cost = require "gpipe.plan.stage_cost"

local demand = {}

--- The ranges of layers of a balance.
---@param balance integer[]
---@return {[1]: integer, [2]: integer}[]
function demand.ranges(balance)
  local ranges, at = {}, 0
  for s, count in ipairs(balance) do
    ranges[s], at = { at + 1, at + count }, at + count
  end
  return ranges
end

-- Bytes of the host's memory in which a device's micro-batches wait.
local function host_bytes(case, d, ranges, stages)
  local sum = 0
  if not stage_cost.policies[case.policy].offloads then return 0 end
  for _, stage in ipairs(stages) do
    local range = ranges[stage + 1]
    sum = sum + stage_cost.on_host(case.sums[d], range[1], range[2], case.memory.live[stage])
  end
  return sum
end

--- How full a device is, as a share of its memory or of what it may have of the host's; and whether
-- that is the host's.
function demand.share(device, one)
  local share = one.bytes / device.memory
  local there = device.host_memory and one.host / device.host_memory or 0
  return math.max(share, there), there > share
end

--- What a balance takes on each device.
---@return {parts: table<string, number>, bytes: number, host: number}[]
function demand.devices(problem, case, balance)
  local ranges, list = demand.ranges(balance), {}
  for d, stages in ipairs(case.shape.holders) do
    local device = problem.devices[d]
    local parts, bytes = device_bytes.device(case.memory, case.sums[d], ranges, stages, {
      own = device.own, room = device.memory - case.extra[d], first = case.first[d],
      moments = case.lowered.moments[d],
      plain = case.memory.plain and candidates.lowered(case.shape, "never").moments[d],
    })
    parts.workspace = parts.workspace + case.extra[d]
    list[d] = { parts = parts, bytes = bytes + case.extra[d],
      host = host_bytes(case, d, ranges, stages) }
  end
  return list
end

--- The device that lacks most; nil where all fit.
function demand.short(problem, taken)
  local worst, at = 1, nil
  for d, one in ipairs(taken) do
    local share = demand.share(problem.devices[d], one)
    if share > worst then worst, at = share, d end
  end
  return at
end

return demand
