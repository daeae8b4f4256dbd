-- lua/gpipe/plan/way.lua - how long a value is on its way from one device to another, by its bytes.
--
-- A described way has a latency and a bandwidth. One that `gpipe-lua links` has measured also has
-- the mean times of messages of some sizes: where packets are lost, or where a connection has to
-- find its speed, a value takes longer than its bytes at the full rate.

local way = {}

---@class gpipe.PlanWay
---@field latency number seconds
---@field bandwidth number bytes per second
---@field times? number[][] measured: {bytes, seconds} of messages, smallest first

--- A way of what devices.between returns.
---@param latency number
---@param bandwidth number
---@param times? number[][]
---@return gpipe.PlanWay
function way.new(latency, bandwidth, times)
  return { latency = latency, bandwidth = bandwidth, times = times }
end

-- On the straight line through two sizes.
local function between(a, b, bytes)
  return a[2] + (b[2] - a[2]) * (bytes - a[1]) / (b[1] - a[1])
end

--- Seconds from the end of the action that makes a value until it is there.
---@param self gpipe.PlanWay
---@param bytes number
---@return number
function way.seconds(self, bytes)
  local times = self.times
  if not times then return self.latency + bytes / self.bandwidth end
  if bytes <= times[1][1] then return times[1][2] end
  local last = 2
  while times[last + 1] and times[last][1] < bytes do last = last + 1 end
  return between(times[last - 1], times[last], bytes)
end

--- For how many of these seconds the next value has to wait for this one.
---@param self gpipe.PlanWay
---@param bytes number
---@return number
function way.busy(self, bytes)
  if not self.times then return bytes / self.bandwidth end
  return way.seconds(self, bytes) - self.times[1][2]
end

return way
