-- lua/gpipe/plan/hops.lua - what it takes to get values and gradients from one stage to the next:
-- the time on the way, and the work of both devices.

local cores = require "gpipe.plan.cores"
local devices = require "gpipe.plan.devices"
local way = require "gpipe.plan.way"

local hops = {}

local CROSSES = { F = "output", B = "gradient" } -- what is sent behind an action, of LayerSums

--- The way between two devices of a plan.
---@param from integer
---@param to integer
---@return gpipe.PlanWay
function hops.between(problem, from, to)
  return way.new(devices.between(problem.devices[from], problem.devices[to], problem.link))
end

--- The way to each stage from the one before it; the first one has none.
---@return gpipe.PlanWay[]
function hops.links(problem, case)
  if case.links then return case.links end
  local links = { way.new(0, math.huge) }
  for stage = 2, #case.on do
    links[stage] = hops.between(problem, case.on[stage - 1][1], case.on[stage][1])
  end
  case.links = links
  return links
end

-- The seconds in which the edge before layer i is crossed once, and for how many of them the link
-- of the device that sends is taken up. which: "output" for values on their way forward, "gradient"
local function seconds_of(problem, case, i, stage, which)
  local link = hops.links(problem, case)[stage]
  local bytes = case.sums[case.on[stage][1]][which][i - 1]
  return way.seconds(link, bytes), way.busy(link, bytes)
end

-- The seconds that the devices at the two ends of this edge, before and behind it, work to send a
-- value and to receive it. A worker sends itself; another thread receives, which takes from the
-- worker where its host has no core to spare.
local function work_of(problem, case, i, stage, which)
  local link = hops.links(problem, case)[stage]
  local send, receive = way.work(link, case.sums[case.on[stage][1]][which][i - 1])
  if send == 0 and receive == 0 then return 0, 0 end
  local function on(device, sends)
    if not cores.is_measured(device) then return 0 end
    return sends and send or cores.are_taken(problem.devices, device) and receive or 0
  end
  local before, behind = problem.devices[case.on[stage - 1][1]], problem.devices[case.on[stage][1]]
  local forward = which == "output"
  return on(before, forward), on(behind, not forward)
end

-- Let the actions at both ends of an edge take longer by what sending and receiving take.
local function add_work(costs, op, stage, before, behind)
  for _, one in ipairs(op == "F" and { "F" } or { "B", "I" }) do
    costs[one][stage - 1] = costs[one][stage - 1] + before
    costs[one][stage] = costs[one][stage] + behind
  end
end

--- Add the ways before a stage that begins with layer i to the costs of a simulation.
---@param costs table of rate.costs
---@param stage integer from 2
---@return boolean narrow they take time for a value's bytes
function hops.add(problem, case, costs, i, stage)
  local narrow = false
  for op, which in pairs(CROSSES) do
    local hop, busy = seconds_of(problem, case, i, stage, which)
    costs.comm[op][stage - 1], costs.busy[op][stage - 1] = hop, busy
    narrow = narrow or busy > 0
    add_work(costs, op, stage, work_of(problem, case, i, stage, which))
  end
  return narrow
end

--- The seconds from a step's last action until all ranks know that it is over: makers hear from the
--- readers of their values, and then ranks exchange how the step ended. Both cross the slowest way.
---@return number
function hops.ending(problem, case)
  local most, links = 0, hops.links(problem, case)
  for stage = 2, #case.on do
    local from, to = problem.devices[case.on[stage - 1][1]], problem.devices[case.on[stage][1]]
    if from.rank ~= to.rank then most = math.max(most, way.seconds(links[stage], 0)) end
  end
  return 2 * most
end

return hops
