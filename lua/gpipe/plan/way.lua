-- lua/gpipe/plan/way.lua - how long a value is on its way from one device to another, by its bytes.
--
-- A described way has a latency and a bandwidth. One that `gpipe-lua links` has measured also has
-- the mean times of messages of some sizes: where packets are lost, or where a connection has to
-- find its speed, a value takes longer than its bytes at the full rate. And it has the work of both
-- ends: a core that sends and receives packets does nothing else meanwhile.

local way = {}

---@class gpipe.PlanWay
---@field latency number seconds
---@field bandwidth number bytes per second
---@field times? number[][] measured: {bytes, seconds, send, receive} of messages, smallest first

--- A way of what devices.between returns.
---@param latency number
---@param bandwidth number
---@param times? number[][]
---@return gpipe.PlanWay
function way.new(latency, bandwidth, times)
  return { latency = latency, bandwidth = bandwidth, times = times }
end

-- A figure of a message, by its place: on the straight line through two sizes.
local function figure(times, place, bytes)
  if bytes <= times[1][1] then return times[1][place] or 0 end
  local last = 2
  while times[last + 1] and times[last][1] < bytes do last = last + 1 end
  local a, b = times[last - 1], times[last]
  local low, high = a[place] or 0, b[place] or 0
  return low + (high - low) * (bytes - a[1]) / (b[1] - a[1])
end

--- Seconds from the end of the action that makes a value until it is there.
---@param self gpipe.PlanWay
---@param bytes number
---@return number
function way.seconds(self, bytes)
  if not self.times then return self.latency + bytes / self.bandwidth end
  return figure(self.times, 2, bytes)
end

--- For how many of these seconds the next value has to wait for this one.
---@param self gpipe.PlanWay
---@param bytes number
---@return number
function way.busy(self, bytes)
  if not self.times then return bytes / self.bandwidth end
  return way.seconds(self, bytes) - self.times[1][2]
end

--- Seconds that cores of the two ends work for a value; 0 where that was not measured.
---@param self gpipe.PlanWay
---@param bytes number
---@return number send
---@return number receive
function way.work(self, bytes)
  if not self.times then return 0, 0 end
  return figure(self.times, 3, bytes), figure(self.times, 4, bytes)
end

return way
