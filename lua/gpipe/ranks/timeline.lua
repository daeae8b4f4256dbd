-- lua/gpipe/ranks/timeline.lua - what the devices of all ranks did, on one axis of time.
--
-- Each rank records its own devices, in seconds from the begin of its run. Brought together, time
-- begins where the first rank's run does, by the clock of rank 0.

local clock = require "gpipe.ranks.clock"
local passes = require "gpipe.pipeline.passes"
local share = require "gpipe.ranks.share"

local timeline = {}

local function moved(events, shift)
  for _, event in ipairs(events) do
    event.wait, event.begin = event.wait + shift, event.begin + shift
    event.finish = event.finish + shift
  end
  return events
end

-- Where each rank's run begins, in seconds after the first one.
local function shifts_of(clocks, began)
  local first, shifts = math.huge, {}
  for r, own in ipairs(clocks) do
    shifts[r] = began[r] - own.offset
    first = math.min(first, shifts[r])
  end
  for r = 1, #shifts do shifts[r] = shifts[r] - first end
  return shifts
end

--- The events of all devices of a pipeline over ranks, element 1 for device 0. Every rank has to
--- call, and gets the same.
---@param pipe table
---@return table[] events
---@return number error seconds: how far the clocks of two ranks may be apart; 0 on one host
function timeline.of(pipe)
  local clocks = clock.of_ranks()
  local began = share.by_rank("timeline", function() return passes.began(pipe) end)
  local events = share.by_device(pipe, "timeline", function(d) return passes.events(pipe, d) end)
  local shifts, most = shifts_of(clocks, began), 0
  for d, device in ipairs(pipe.devices) do events[d] = moved(events[d], shifts[device.rank + 1]) end
  for _, own in ipairs(clocks) do most = math.max(most, own.error) end
  return events, most
end

return timeline
