-- lua/gpipe/plan/fit.lua - cuts the layers for one schedule and one policy: as even in time as the
-- devices' memory allows, and if no cut fits, how far the best one is from fitting.

local demand = require "gpipe.plan.demand"
local device_bytes = require "gpipe.plan.device_bytes"
local even = require "gpipe.pipeline.plan.partition.even"
local minimax = require("gpipe.pipeline.plan.partition").minimax
local partition = require "gpipe.plan.partition"
local stage_cost = require "gpipe.plan.stage_cost"
local tasks = require "gpipe.plan.tasks"

local fit = {}

-- Layers x stages; for policies that fill the memory each look at a stage goes over its layers.
local LARGE, LARGE_FILLED = 16384, 1024
local NEAR = 1.01 -- a cut this near to the least possible cost has nothing to gain

-- ---- cuts -------------------------------------------------------------------------------------

-- The cut whose fullest stage is least above its room; nil where the conditions allow none.
local function by_memory(problem, case)
  if case.smallest == nil then
    case.smallest = partition.solve(tasks.by_memory(problem, case)) or false
  end
  return case.smallest or nil
end

--- Whether a case is so large that what does not fit is only estimated.
function fit.is_large(problem, case)
  local fills = stage_cost.policies[case.policy].fills
  return problem.figures.count * #case.on > (fills and LARGE_FILLED or LARGE)
end

-- A cut that is even in bytes, for large cases.
local function by_bytes(problem, case)
  local bytes = {}
  for i = 1, problem.figures.count do
    bytes[i] = device_bytes.least(case.memory, case.sums[1], i, i, 0) + 1
  end
  local stages = case.shape.schedule.stages
  if problem.conditions then return (minimax(problem.who, bytes, stages, problem)) end
  return even.cut(problem.who, bytes, stages, LARGE)
end

-- The even cut of layers with a share of recomputation. Schedules with as many stages have the same
-- one, so it is kept with the sums.
local function even_cut(problem, s, share, stages)
  local key = share .. " " .. stages
  s.cuts = s.cuts or {}
  if not s.cuts[key] then
    local costs = {}
    for i, layer in ipairs(s.layers) do
      costs[i] = layer.forward + layer.input + layer.weight + share * layer.recompute
    end
    s.cuts[key] = even.cut(problem.who, costs, stages, LARGE)
  end
  return s.cuts[key]
end

-- The most even cut by the time of layers alone, and whether no stage differs in more than its
-- layers: then it is the best.
local function evenly(problem, case)
  local first, share, alike = case.sums[1], case.memory.share, true
  if problem.together or problem.pinned then return nil end
  for d = 2, #case.sums do alike = alike and case.sums[d] == first end
  for stage = 2, #share do alike = alike and share[stage] == share[1] end
  local balance = even_cut(problem, first, share[1], case.shape.schedule.stages)
  return balance, alike and stage_cost.policies[case.policy].linear
end

-- ---- faults ------------------------------------------------------------------------------------

---@class gpipe.PlanFault why no cut fits
---@field device gpipe.PlanDevice the fullest of the best cut
---@field bytes number that it would need
---@field parts table<string, number>
---@field share number bytes / memory of that device
---@field host? number bytes of the host's memory, if that is what is short

--- The cut of a case whose fullest stage is least above its room; nil where the conditions allow
--- none.
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
---@return integer[]?
function fit.nearest(problem, case)
  return fit.is_large(problem, case) and by_bytes(problem, case) or by_memory(problem, case)
end

--- What a balance lacks on the device that is fullest with it.
---@param problem gpipe.PlanProblem
---@param balance integer[]
---@param taken {parts: table<string, number>, bytes: number, host: number}[] per device
---@return gpipe.PlanFault
function fit.fault_of(problem, balance, taken)
  local worst, at, there = -1, nil, false
  for d, one in ipairs(taken) do
    local share, host = demand.share(problem.devices[d], one)
    if share > worst then worst, at, there = share, d, host end
  end
  return { device = problem.devices[at], bytes = taken[at].bytes, parts = taken[at].parts,
    share = worst, balance = balance, host = there and taken[at].host or nil }
end

--- How far the nearest cut of a case is from fitting, by the estimate.
---@return gpipe.PlanFault? nil where the conditions allow no cut
function fit.fault(problem, case)
  local balance = fit.nearest(problem, case)
  return balance and fit.fault_of(problem, balance, demand.devices(problem, case, balance))
end

-- How much more than its even share of a device a stage may take: all first, then less.
local function looseness(case)
  local most = 1
  for _, stages in ipairs(case.shape.holders) do most = math.max(most, #stages) end
  return most == 1 and { 1 } or { most, (most + 1) / 2, 1 }
end

-- Whether even the least that stages can take is too much: each takes as many layers as its room
-- allows, from the last stage on, without edges and workspace.
local function is_hopeless(problem, case, loose)
  local rooms, at = tasks.rooms(problem, case, loose), problem.figures.count
  for stage = #case.on, 1, -1 do
    local d, room = case.on[stage][1], rooms[stage][1]
    local first = at + 1
    while first > 1
      and device_bytes.least(case.memory, case.sums[d], first - 1, at, stage - 1) <= room do
      first = first - 1
    end
    at = first - 1
  end
  return at > 0
end

-- For thousands of layers on hundreds of stages the programme would take minutes: there the cut
-- that is even in bytes stands for all that are not even in time.
local function cut_large(problem, case)
  local balance = by_bytes(problem, case)
  local taken = demand.devices(problem, case, balance)
  if not demand.short(problem, taken) then return balance, taken end
end

-- The fastest balance whose stages keep within their rooms.
local function within_rooms(problem, case, guess)
  for _, loose in ipairs(looseness(case)) do
    if is_hopeless(problem, case, loose) then return nil end
    local task = tasks.by_time(problem, case, loose)
    task.upper = guess and tasks.cost(task, guess)
    local balance = partition.solve(task)
    local taken = balance and demand.devices(problem, case, balance)
    if taken and not demand.short(problem, taken) then return balance, taken end
    if not balance then return nil end
  end
end

-- Whether a cut may be more expensive than it would be with memory without end: it is, if it is
-- not the most even one although no other would be cheaper, and it is not, if it comes near what
-- no cut can be cheaper than.
local function is_bent(problem, case, balance, best)
  if best then return true end
  local task = tasks.by_time(problem, case, 1)
  return (tasks.cost(task, balance) or math.huge) > NEAR * partition.floor(task)
end

--- The fastest balance that fits, and what it takes on each device; nil where none fits. Devices
--- with several stages share their memory among them, so where no cut keeps every stage within its
--- room the one that takes least memory may still fit.
---@param problem gpipe.PlanProblem
---@param case gpipe.PlanCase
---@return integer[]? balance
---@return {parts: table<string, number>, bytes: number}[]? taken
---@return boolean? bent memory keeps the layers from being cut as evenly in time as they could be
function fit.cut(problem, case)
  local guess, best = evenly(problem, case)
  local taken = guess and demand.devices(problem, case, guess)
  if taken and best and not demand.short(problem, taken) then return guess, taken, false end
  local balance
  if fit.is_large(problem, case) then
    balance, taken = cut_large(problem, case)
    return balance, taken, true
  end
  balance, taken = within_rooms(problem, case, guess)
  if balance then return balance, taken, is_bent(problem, case, balance, best) end
  if #case.shape.holders[1] == 1 or is_hopeless(problem, case, #case.shape.holders[1]) then
    return nil
  end
  balance = by_memory(problem, case)
  taken = balance and demand.devices(problem, case, balance)
  if taken and not demand.short(problem, taken) then return balance, taken, true end
end

return fit
