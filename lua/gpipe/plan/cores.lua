-- lua/gpipe/plan/cores.lua - CPU devices that have more threads than their machine has cores.
--
-- Such devices fill each other's bubbles: while one waits, another has its core (sharing.lua).

local cores = {}

--- Whether a device is the processor of a machine that is here.
---@param device gpipe.PlanDevice
---@return boolean
function cores.is_measured(device) return device.kind == "cpu" and not device.flops end

-- The hosts of measured devices, by number: {cores, threads, numbers of the devices}. count: of the
-- first devices (all).
local function hosts_of(devices, count)
  local hosts = {}
  for d = 1, math.min(count or #devices, #devices) do
    local device = devices[d]
    if cores.is_measured(device) then
      local host = hosts[device.host] or { cores = device.cores, threads = 0, numbers = {} }
      hosts[device.host] = host
      host.threads, host.numbers[#host.numbers + 1] = host.threads + device.threads, d
    end
  end
  return hosts
end

-- Those whose devices have more threads than the host has cores.
local function crowded(devices, count)
  local short = {}
  for _, host in pairs(hosts_of(devices, count)) do
    if host.threads > host.cores then short[#short + 1] = host end
  end
  return short
end

--- Whether the devices on the host of this one have a thread for each of its cores, or more.
---@param devices gpipe.PlanDevice[]
---@param device gpipe.PlanDevice of a machine that is here
---@return boolean
function cores.are_taken(devices, device)
  local host = hosts_of(devices)[device.host]
  return host.threads >= host.cores
end

--- Cores and threads of the host that has the fewest cores for its threads, where one has fewer
--- cores than threads; else nil.
---@param devices gpipe.PlanDevice[]
---@param count? integer of the first devices (all)
---@return integer? cores
---@return integer? threads
function cores.shared(devices, count)
  local worst
  for _, host in ipairs(crowded(devices, count)) do
    if not worst or host.threads * worst.cores > worst.threads * host.cores then worst = host end
  end
  if worst then return worst.cores, worst.threads end
end

--- The cores that the devices of one replica have on each host that has too few for all threads;
--- nil where each of its threads has a core.
---@param devices gpipe.PlanDevice[]
---@param count integer devices of a replica
---@param replicas? integer that do the same work on devices of their own (1)
---@param replica? integer of these, from 0 (0)
---@return table<integer, number>? cores by host
function cores.hosts(devices, count, replicas, replica)
  local hosts
  local before = (replica or 0) * count
  for _, host in ipairs(crowded(devices, count * (replicas or 1))) do
    local own = 0
    for _, d in ipairs(host.numbers) do
      own = own + (d > before and d <= before + count and devices[d].threads or 0)
    end
    if own > 0 then
      hosts = hosts or {}
      hosts[devices[host.numbers[1]].host] = host.cores * own / host.threads
    end
  end
  return hosts
end

--- The share of a core that each thread has where equal devices compute all the time; 1 where every
--- thread has a core, or devices differ.
---@param devices gpipe.PlanDevice[]
---@param count? integer of the first devices (all)
---@return number
function cores.share(devices, count)
  local there, threads = cores.shared(devices, count)
  if not there then return 1 end
  for d = 1, count or #devices do
    local device = devices[d]
    if device.kind ~= "cpu" or device.threads ~= devices[1].threads then return 1 end
  end
  return there / threads
end

return cores
