-- lua/gpipe/plan/tried.lua - which numbers of devices and micro-batches, and which schedules a plan
-- tries, and in which order.
--
-- A schedule of thousands of devices has millions of actions. To build, verify and simulate one
-- takes seconds, and there are a hundred. So where all of them together are too many, small copies
-- are simulated first: the idle share of a schedule follows from the ratio of micro-batches to
-- devices, and hardly from the numbers. The most promising ones are tried until there have been as
-- many as are allowed, and the plan says how many were not.

local candidates = require "gpipe.plan.candidates"
local rate = require "gpipe.plan.rate"
local schedule = require "gpipe.schedule"

local tried = {
  most = 1 << 20, -- devices x micro-batches of all that are simulated
}

local PROBED = 16 -- devices of a small copy
-- Where there are more than so many devices, numbers between the first ones are tried with so many
-- schedules.
local FEW, LEADERS = 8, 5

---@class gpipe.PlanSpec
---@field wanted string|table a schedule, as candidates name it
---@field devices integer
---@field chunks integer of all replicas
---@field each integer of one replica
---@field stages? integer where a small copy has told

-- All of them with these numbers of devices.
local function all_of(problem, counts)
  local list = {}
  for _, p in ipairs(counts) do
    for _, wanted in ipairs(candidates.schedules(problem.schedules, p, problem.replicas)) do
      for _, m in ipairs(candidates.chunks(problem.chunks, p, problem.pieces)) do
        local chunks = math.min(m, problem.batch)
        local each = candidates.each(wanted, chunks, problem.chunks ~= nil)
        if each and not candidates.is_left_out(wanted, p, each, problem.schedules ~= nil) then
          list[#list + 1] = { wanted = wanted, devices = p, chunks = m, each = each }
        end
      end
    end
  end
  return list
end

-- The idle share of a small copy of one replica, 0 where it cannot be built; it also tells how many
-- stages there will be.
local function idle_of(spec)
  local one, replicas = candidates.apart(spec.wanted)
  local devices = spec.devices // replicas
  local small = math.min(devices, PROBED)
  local chunks = math.max(1, spec.each * small // devices)
  if schedule.is(one) then return 0 end
  local shape = candidates.shape(one, small, chunks)
  if not shape then return 0 end
  spec.stages = shape.schedule.stages // small * devices
  return candidates.bubble(shape.schedule:simulate { F = 1, I = 1, W = 1 })
end

-- The seconds of a step, but for what its memory and its links cost.
local function estimate(problem, spec)
  local chunks = math.min(spec.chunks, problem.batch)
  return rate.bound(problem, chunks, spec.devices) / (1 - idle_of(spec))
end

local function cells_of(list)
  local sum = 0
  for _, spec in ipairs(list) do sum = sum + spec.devices * spec.each end
  return sum
end

-- The most promising first.
local function sort(problem, list)
  for i, spec in ipairs(list) do spec.number, spec.seconds = i, estimate(problem, spec) end
  table.sort(list, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds < b.seconds end
    return a.number < b.number
  end)
end

-- The name of a schedule, whatever the number of its replicas.
local function name_of(spec) return candidates.label((candidates.apart(spec.wanted))) end

-- Whether devices may have the same layers: replicas do, and a script's own schedules may.
local function may_share(problem, spec)
  return problem.schedules ~= nil or select(2, candidates.apart(spec.wanted)) > 1
end

-- The schedules with the best steps so far, as a set; nil where nothing has fitted.
local function leaders_of(seconds)
  local names, leaders = {}, {}
  for name in pairs(seconds) do names[#names + 1] = name end
  table.sort(names, function(a, b)
    if seconds[a] ~= seconds[b] then return seconds[a] < seconds[b] end
    return a < b
  end)
  for _, name in ipairs(table.move(names, 1, LEADERS, 1, {})) do leaders[name] = true end
  return #names > 0 and leaders or nil
end

-- Visit the numbers of devices between the first ones, but for what cannot come below the best step
-- so far; of many devices with the schedules alone that were best there.
local function visit_between(problem, visit, best, seconds)
  local leaders = #problem.devices > FEW and leaders_of(seconds)
  for _, spec in ipairs(all_of(problem, problem.between)) do
    local chunks = math.min(spec.chunks, problem.batch)
    if (not leaders or leaders[name_of(spec)] or spec.devices == 1)
      and rate.work(problem, chunks, spec.devices, may_share(problem, spec)) < best then
      best = math.min(best, select(2, visit(spec)))
    end
  end
end

--- Visit what a plan tries. Where all of it is too much, visiting ends when enough was visited and
--- something has fitted, and no numbers of devices between the first ones are tried.
---@param problem gpipe.PlanProblem
---@param visit fun(spec: gpipe.PlanSpec): integer, number how often it was simulated; seconds of
--- its best step that fits, without end if there is none
---@return integer left how many were not visited
function tried.each(problem, visit)
  local list, cells, best = all_of(problem, problem.counts), 0, math.huge
  local own = {} -- the best seconds of each schedule
  local is_large = cells_of(list) > tried.most
  if is_large then sort(problem, list) end
  for i, spec in ipairs(list) do
    local times, seconds = visit(spec)
    best = math.min(best, seconds)
    if seconds < math.huge then
      local name = name_of(spec)
      own[name] = math.min(own[name] or math.huge, seconds)
    end
    cells = cells + times * spec.devices * spec.each
    if is_large and best < math.huge and cells >= tried.most then return #list - i end
  end
  if not is_large then visit_between(problem, visit, best, own) end
  return 0
end

return tried
