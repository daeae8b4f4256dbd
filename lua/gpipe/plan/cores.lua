-- lua/gpipe/plan/cores.lua - CPU devices that have more threads than the machine has cores.
--
-- Such devices fill each other's bubbles: while one waits, another has its core. So a step takes
-- what its schedule takes, or all work over all cores, whichever is more.

local core = require "gpipe.core"

local cores = {}

local there -- cores of this machine: asked once, as a plan simulates hundreds of steps

local function is_measured_cpu(device) return device.kind == "cpu" and not device.flops end

--- Cores and threads, where the devices have more threads than there are cores; else nil.
---@param devices gpipe.PlanDevice[]
---@param count? integer of the first devices (all)
---@return integer? cores
---@return integer? threads
function cores.shared(devices, count)
  local threads = 0
  for d = 1, math.min(count or #devices, #devices) do
    if is_measured_cpu(devices[d]) then threads = threads + devices[d].threads end
  end
  there = there or core.machine().cores
  if threads > there then return there, threads end
end

--- Seconds that the cores need for what was simulated; 0 where every thread has a core.
---@param devices gpipe.PlanDevice[]
---@param work number[] seconds per device
---@param replicas? integer that do the same work on devices of their own (1)
---@return number
function cores.seconds(devices, work, replicas)
  replicas = replicas or 1
  local count = cores.shared(devices, replicas * #work)
  if not count then return 0 end
  local sum = 0
  for d, seconds in ipairs(work) do
    if is_measured_cpu(devices[d]) then sum = sum + seconds * devices[d].threads end
  end
  return replicas * sum / count
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
