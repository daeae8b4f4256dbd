-- lua/gpipe/plan/told.lua - what is measured in a job: one rank of each host measures on a device
-- of its own, at the same time on all hosts, and all ranks plan with what these have told.

local devices = require "gpipe.plan.devices"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"

-- The first rank of each host that has a device of this sort, by host; and the device of each.
local function measurers(list, sort)
  local first = {}
  for _, d in ipairs(list) do
    local other = first[d.host]
    if d.rank and devices.sort(d) == sort and (not other or d.rank < other.rank) then
      first[d.host] = d
    end
  end
  return first
end

--- What a device like this one measures. Every rank has to call, and gets what the device's own
--- host has measured; nothing is measured twice.
---@param self {devices: gpipe.PlanDevice[], told: table}
---@param key string what is measured
---@param device gpipe.PlanDevice
---@param measure fun(device: gpipe.PlanDevice): any
---@return any
return function(self, key, device, measure)
  if ranks.ranks() == 1 then return measure(device) end
  local sort = devices.sort(device)
  local first = measurers(self.devices, sort)
  key = key .. " " .. sort
  self.told[key] = self.told[key] or share.by_rank("gp.plan", function()
    for _, d in pairs(first) do
      if d.rank == ranks.rank() then return measure(d) end
    end
  end)
  return self.told[key][first[device.host].rank + 1]
end
