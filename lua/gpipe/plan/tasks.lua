-- lua/gpipe/plan/tasks.lua - a case as a task of the partition: what a stage of some layers costs,
-- in seconds or in shares of its device's memory, and whether it fits there.

local device_bytes = require "gpipe.plan.device_bytes"
local hops = require "gpipe.plan.hops"
local sums = require "gpipe.plan.sums"
local way = require "gpipe.plan.way"

local tasks = {}

--- The room of each stage, on each of its devices: from `loose` times its even share.
function tasks.rooms(problem, case, loose)
  local rooms = {}
  for stage, list in ipairs(case.on) do
    rooms[stage] = {}
    for copy, d in ipairs(list) do
      local many = #case.shape.holders[d]
      rooms[stage][copy] = math.max(1, problem.devices[d].memory - case.extra[d])
        * math.min(loose / many, 1)
    end
  end
  return rooms
end

local function task_of(problem, case, least, cost)
  return {
    who = problem.who, layers = problem.figures.count, stages = case.shape.schedule.stages,
    together = problem.together, pinned = problem.pinned, least = least, cost = cost,
  }
end

--- The task of a cut by time, with so much room for each stage.
function tasks.by_time(problem, case, loose)
  local rooms, links = tasks.rooms(problem, case, loose), hops.links(problem, case)
  local memory, on, all = case.memory, case.on, case.sums
  local stage_bytes, compute = device_bytes.stage, sums.compute
  local function least(i, j, stage) return compute(all[on[stage][1]], i, j) end
  return task_of(problem, case, least, function(i, j, stage)
    local most = 0
    for copy, d in ipairs(on[stage]) do
      local s, room = all[d], rooms[stage][copy]
      local again, bytes, more = stage_bytes(memory, s, i, j, stage - 1, problem.devices[d].own,
        room)
      if bytes > room then return nil, more > room end
      most = math.max(most, compute(s, i, j) + again)
    end
    return math.max(most, way.seconds(links[stage], all[on[stage][1]].output[i - 1]))
  end)
end

--- What the most expensive stage of a balance costs; nil where one does not fit.
function tasks.cost(task, balance)
  local most, at = 0, 0
  for stage, count in ipairs(balance) do
    local seconds = task.cost(at + 1, at + count, stage)
    if not seconds then return nil end
    most, at = math.max(most, seconds), at + count
  end
  return most
end

--- The task of a cut by memory, whose costs are shares of the stages' room.
function tasks.by_memory(problem, case)
  local rooms = tasks.rooms(problem, case, 1)
  local first, last, at, most, least -- the layers and the stage asked for last, and their shares
  local function shares(i, j, stage)
    if i == first and j == last and stage == at then return most, least end
    first, last, at, most, least = i, j, stage, 0, 0
    for copy, d in ipairs(case.on[stage]) do
      local room = rooms[stage][copy]
      local _, bytes, less = device_bytes.stage(case.memory, case.sums[d], i, j, stage - 1,
        problem.devices[d].own, 0)
      most, least = math.max(most, bytes / room), math.max(least, less / room)
    end
    return most, least
  end
  return task_of(problem, case,
    function(i, j, stage) return select(2, shares(i, j, stage)) end,
    function(i, j, stage) return (shares(i, j, stage)) end)
end

return tasks
