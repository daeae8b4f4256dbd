-- lua/gpipe/plan/job/sampled.lua - what the sampled runs of a job tell: whether anything varies at
-- all, the mean of the slowest replica, and how sure that is.
--
-- Stragglers may be so rare that no run has met one. Then all runs are alike, which tells nothing
-- about the step: no error and no late step are said.

local noise = require "gpipe.schedule.noise"
local slowest = require "gpipe.schedule.slowest"

local sampled = {}

local ALIKE = 1e-9 -- relative: runs that differ by less have met the same

--- Whether the options let any time vary.
---@param who string
---@param o {jitter: any, stragglers: any}
---@return boolean
function sampled.varies(who, o)
  local made = noise.of(who, { jitter = o.jitter, stragglers = o.stragglers }, 1)
  return made ~= nil and (made.action > 0 or made.travel > 0
    or made.stragglers > 0 and made.slowdown > 1)
end

-- The standard error of the mean of the slowest, from groups of R samples: that of the mean over
-- all subsets, which is what is reported, is no larger.
local function error_of(list, replicas)
  local largest = {}
  for first = 1, #list - replicas + 1, replicas do
    local most = list[first]
    for i = first + 1, first + replicas - 1 do most = math.max(most, list[i]) end
    largest[#largest + 1] = most
  end
  if #largest < 2 then return nil end
  return select(2, slowest.average(largest))
end

local function are_alike(list)
  local least, most = math.huge, 0
  for _, seconds in ipairs(list) do
    least, most = math.min(least, seconds), math.max(most, seconds)
  end
  return #list > 1 and most - least <= ALIKE * most
end

--- Fill in the times of a job from runs that vary.
---@param made gpipe.Job
---@param list number[] seconds of a step
---@param replicas integer of which the slowest counts; 1 where each run is one of all
---@param share number the probability with which a device is a straggler
function sampled.note(made, list, replicas, share)
  made.step = slowest.mean(list, replicas)
  if are_alike(list) then
    made.unmet = share > 0 and share < 1 or nil
  else
    made.error = error_of(list, replicas)
  end
  if not made.unmet then made.late = slowest.quantile(list, replicas, 0.99) end
end

return sampled
