-- lua/gpipe/plan/cores.lua - CPU devices that have more threads than their machine has cores.
--
-- Such devices fill each other's bubbles: while one waits, another has its core. So a step takes
-- what its schedule takes, or all work over all cores, whichever is more.

local cores = {}

local function is_measured_cpu(device) return device.kind == "cpu" and not device.flops end

-- The hosts whose devices have more threads than the host has cores: {cores, threads, numbers of
-- the devices}. count: of the first devices (all).
local function crowded(devices, count)
  local of, short = {}, {}
  for d = 1, math.min(count or #devices, #devices) do
    local device = devices[d]
    if is_measured_cpu(device) then
      local host = of[device.host] or { cores = device.cores, threads = 0, numbers = {} }
      of[device.host] = host
      host.threads, host.numbers[#host.numbers + 1] = host.threads + device.threads, d
    end
  end
  for _, host in pairs(of) do
    if host.threads > host.cores then short[#short + 1] = host end
  end
  return short
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

--- Seconds that the cores of a host need for what was simulated; 0 where every thread has a core.
---@param devices gpipe.PlanDevice[]
---@param work number[] seconds per device
---@param replicas? integer that do the same work on devices of their own (1)
---@return number
function cores.seconds(devices, work, replicas)
  local most = 0
  for _, host in ipairs(crowded(devices, (replicas or 1) * #work)) do
    local sum = 0
    for _, d in ipairs(host.numbers) do
      sum = sum + work[(d - 1) % #work + 1] * devices[d].threads
    end
    most = math.max(most, sum / host.cores)
  end
  return most
end

--- The share of a core that each thread has where equal devices compute all the time; 1 where every
--- thread has a core, or devices differ.
---@param devices gpipe.PlanDevice[]
---@return number
function cores.share(devices)
  local count, threads = cores.shared(devices)
  if not count then return 1 end
  for _, device in ipairs(devices) do
    if device.kind ~= "cpu" or device.threads ~= devices[1].threads then return 1 end
  end
  return count / threads
end

return cores
