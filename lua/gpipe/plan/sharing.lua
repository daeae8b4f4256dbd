-- lua/gpipe/plan/sharing.lua - how long a simulated step takes where devices have more threads than
-- their machine has cores.
--
-- As many threads as there are cores run at full speed; more than that share the cores evenly, as
-- an operating system shares them. So a device runs faster while others wait, and filling and
-- emptying a pipeline costs less than with a core for each device, and more than if all work were
-- spread over the cores without a gap. The schedule's own simulation says in which order and for
-- how long actions run; here they run again, at the speed that there is.

local sharing = {
  most = 1 << 19, -- devices times actions; beyond that the work is spread without gaps
}

local AFTER = { F = "F", B = "B", I = "B" } -- the actions that wait for a neighbour, and its kind

local function key_of(kind, stage, micro) return ("%s %d %d"):format(kind, stage, micro) end

---@class gpipe.SharingDevice
---@field list table[] actions: {seconds, needs, makes, hop}
---@field next integer
---@field left number seconds of the action at work; nil: it waits
---@field host integer
---@field threads integer

-- What an action waits for and makes, and how long that is on its way.
local function links_of(event, comm)
  local kind = AFTER[event.op]
  if not kind then return nil end
  local forward = kind == "F"
  local from = event.stage + (forward and -1 or 1)
  local hop = comm and comm[kind][forward and event.stage or event.stage + 1] or 0
  return key_of(kind, from, event.micro), key_of(kind, event.stage, event.micro), hop
end

-- The actions of each device; those that make something are noted in `made`, as not there yet.
local function read(timelines, devices, comm, made)
  local list = {}
  for d, events in ipairs(timelines) do
    local threads = devices[d].threads or 1
    local device = { list = {}, next = 1, host = devices[d].host, threads = threads }
    for i, event in ipairs(events) do
      local joined = i > 1 and events[i - 1].joined -- joined actions take one time together
      local needs, makes, hop = links_of(event, comm)
      device.list[i] = { seconds = joined and 0 or event.finish - event.begin, needs = needs,
        makes = makes, hop = hop }
      if makes then made[makes] = math.huge end
    end
    list[d] = device
  end
  return list
end

-- When what an action needs is there; what no action makes is there from the start.
local function ready_at(device, made)
  local action = device.list[device.next]
  local at = action.needs and made[action.needs]
  return at and at + action.hop or 0
end

-- Let devices begin whose next action has what it needs. Returns when the next value arrives.
local function begin(list, made, now)
  local arrival = math.huge
  for _, device in ipairs(list) do
    if not device.left and device.list[device.next] then
      local at = ready_at(device, made)
      if at <= now then
        device.left = device.list[device.next].seconds
      else
        arrival = math.min(arrival, at)
      end
    end
  end
  return arrival
end

-- The speed of the threads of each host.
local function speeds_of(list, hosts)
  local running, speeds = {}, {}
  for _, device in ipairs(list) do
    if device.left then running[device.host] = (running[device.host] or 0) + device.threads end
  end
  for host, threads in pairs(running) do
    speeds[host] = hosts[host] and math.min(1, hosts[host] / threads) or 1
  end
  return speeds
end

-- Run until an action is over or a value arrives. Returns the time then; nil where nothing runs.
local function advance(list, made, now, arrival, hosts)
  local speeds, over = speeds_of(list, hosts), arrival
  for _, device in ipairs(list) do
    if device.left then over = math.min(over, now + device.left / speeds[device.host]) end
  end
  if over == math.huge then return nil end
  for _, device in ipairs(list) do
    if device.left then
      local finish = now + device.left / speeds[device.host]
      device.left = device.left - (over - now) * speeds[device.host]
      if finish <= over then
        local makes = device.list[device.next].makes
        if makes then made[makes] = over end
        device.next, device.left = device.next + 1, nil
      end
    end
  end
  return over
end

-- The seconds of a step without gaps: all work of a host over its cores, or the schedule's own.
local function without_gaps(simulation, devices, hosts)
  local work, most = {}, simulation.makespan
  for d, seconds in ipairs(simulation.work) do
    local host = devices[d].host
    work[host] = (work[host] or 0) + seconds * (devices[d].threads or 1)
  end
  for host, seconds in pairs(work) do
    if hosts[host] then most = math.max(most, seconds / hosts[host]) end
  end
  return most
end

local function count_of(events)
  local count = 0
  for _, list in ipairs(events) do count = count + #list end
  return count
end

--- Seconds of a simulated step whose devices share cores.
---@param simulation gpipe.Simulation
---@param devices gpipe.PlanDevice[]
---@param hosts table<integer, number> host -> cores for these devices, where there are too few
---@param comm? {F: number[], B: number[]} seconds on the edge behind each stage, from 1
---@return number
function sharing.seconds(simulation, devices, hosts, comm)
  local made, events = {}, {}
  for d = 1, #simulation.work do events[d] = simulation:timeline(d - 1) end
  if #events * count_of(events) > sharing.most then
    return without_gaps(simulation, devices, hosts)
  end
  local list, now = read(events, devices, comm, made), 0
  while true do
    local later = advance(list, made, now, begin(list, made, now), hosts)
    if not later then return now end
    now = later
  end
end

return sharing
