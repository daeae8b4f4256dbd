-- lua/gpipe/plan/tasks.lua - a case as a task of the partition: what a stage of some layers costs,
-- in seconds or in shares of its device's memory, and whether it fits there.

local cores = require "gpipe.plan.cores"
local device_bytes = require "gpipe.plan.device_bytes"
local devices = require "gpipe.plan.devices"
local sums = require "gpipe.plan.sums"
local way = require "gpipe.plan.way"

local tasks = {}

-- The way to each stage from the one before it; the first one has none.
local function links_of(problem, case)
  if case.links then return case.links end
  local links = { way.new(0, math.huge) }
  for stage = 2, #case.on do
    local a, b = problem.devices[case.on[stage - 1][1]], problem.devices[case.on[stage][1]]
    links[stage] = way.new(devices.between(a, b, problem.link))
  end
  case.links = links
  return links
end

--- The seconds in which the edge before layer i is crossed once, and for how many of them the link
--- of the device that sends is taken up.
---@param stage integer from 1
---@param which "output"|"gradient" values on their way forward, or gradients on their way back
---@return number seconds
---@return number busy
function tasks.hop(problem, case, i, stage, which)
  local link = links_of(problem, case)[stage]
  local bytes = case.sums[case.on[stage][1]][which][i - 1]
  return way.seconds(link, bytes), way.busy(link, bytes)
end

--- The seconds that the devices at the two ends of this edge work to send a value and to receive
--- it. A worker sends itself; another thread receives, which takes from the worker where its host
--- has no core to spare.
---@param stage integer from 1
---@param which "output"|"gradient"
---@return number before of the device with the stage before
---@return number behind of the device with this stage
function tasks.work(problem, case, i, stage, which)
  local link = links_of(problem, case)[stage]
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

--- The seconds from a step's last action until all ranks know that it is over: makers hear from the
--- readers of their values, and then ranks exchange how the step ended. Both cross the slowest way.
---@return number
function tasks.ending(problem, case)
  local most, links = 0, links_of(problem, case)
  for stage = 2, #case.on do
    local from, to = problem.devices[case.on[stage - 1][1]], problem.devices[case.on[stage][1]]
    if from.rank ~= to.rank then most = math.max(most, way.seconds(links[stage], 0)) end
  end
  return 2 * most
end

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
  local rooms, links = tasks.rooms(problem, case, loose), links_of(problem, case)
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
