-- lua/gpipe/plan/fastest.lua - the same problem on the fastest of its devices alone.
--
-- A plan with fewer devices than given uses the first of the list. Where they differ in speed, that
-- may leave out the fast ones, and a slow device at the front stays in every plan. So lists without
-- the slowest are planned as well, in the order of the script, where they may be faster.

local candidates = require "gpipe.plan.candidates"
local rate = require "gpipe.plan.rate"

local fastest = {}

local NEAR = 1.25 -- devices that differ by less in speed are taken to be alike
local MOST = 3    -- lists: each is a search of its own

-- Seconds that all layers take on each device, for as many rows on all.
local function seconds_of(problem)
  local rows, list = math.max(1, problem.batch // problem.pieces), {}
  for d, device in ipairs(problem.devices) do
    list[d] = 0
    for _, layer in ipairs(problem.figures:layers(rows, device)) do
      list[d] = list[d] + layer.forward + layer.input + layer.weight
    end
  end
  return list
end

-- The seconds up to which devices are as fast as others, the fastest first: the last is that of the
-- slowest.
local function limits_of(seconds)
  local sorted, limits = table.move(seconds, 1, #seconds, 1, {}), {}
  table.sort(sorted)
  for d, one in ipairs(sorted) do
    if not sorted[d + 1] or sorted[d + 1] > NEAR * one then limits[#limits + 1] = one end
  end
  return limits
end

-- Whether a list is one of those that all plans try: the first ones of the problem's.
local function is_tried(problem, list)
  for d, device in ipairs(list) do
    if device ~= problem.devices[d] then return false end
  end
  for _, numbers in ipairs { problem.counts, problem.between } do
    for _, count in ipairs(numbers) do
      if count == #list then return true end
    end
  end
  return false
end

-- The problem on the devices that take so many seconds at most, and the names of the others.
local function within(problem, seconds, limit)
  local list, without = {}, {}
  for d, device in ipairs(problem.devices) do
    if seconds[d] <= limit then
      list[#list + 1] = device
    else
      without[#without + 1] = device.name
    end
  end
  local counts, between = candidates.devices(#list, problem.figures.count,
    problem.replicas or problem.schedules ~= nil)
  return setmetatable({ devices = list, counts = counts, between = between, without = without },
    { __index = problem })
end

-- Seconds below which no step on these devices comes, whatever the number of micro-batches.
local function bound_of(problem)
  local least = math.huge
  for _, m in ipairs(candidates.chunks(problem.chunks, #problem.devices, problem.pieces)) do
    least = math.min(least,
      rate.work(problem, math.min(m, problem.batch), #problem.devices, true))
  end
  return least
end

--- The problem on fewer devices, without the slowest: at most three, those of the fastest first.
---@param problem gpipe.PlanProblem
---@return gpipe.PlanProblem[]
function fastest.problems(problem)
  local seconds, list = seconds_of(problem), {}
  local limits = limits_of(seconds)
  local step = math.max(1, (#limits - 1) / MOST)
  local at = 1
  while at < #limits do
    local one = within(problem, seconds, limits[math.floor(at)])
    if not is_tried(problem, one.devices) then list[#list + 1] = one end
    at = at + step
  end
  return list
end

--- Whether a plan on the problem's devices may take fewer seconds than one that is known.
---@param problem gpipe.PlanProblem
---@param best? number
---@return boolean
function fastest.may_win(problem, best) return best == nil or bound_of(problem) < best end

return fastest
