-- lua/gpipe/profile/cut.lua - the measured times of whole stages: what a cut makes of its layers.
--
-- A machine is not as fast now as it was when the layers were measured. So steps of the model that
-- is cut and of the one that is not take turns, and the stages are shares of the second.

local dry_mode = require "gpipe.dry_mode"
local runs = require "gpipe.profile.runs"

local cut = {}

local WARM_UP, AT_LEAST = 3, 5 -- steps

-- The seconds of each action, such as "F0", in one step.
local function actions_of(run)
  local seconds = run:actions()
  if seconds then return seconds end
  seconds = {}
  for _, e in ipairs(run:entries()) do
    local key = e.action and e.action .. e.stage
    if key then seconds[key] = (seconds[key] or 0) + e.seconds end
  end
  return seconds
end

-- Run a step and keep the least seconds of each action so far.
local function note(run, least)
  for key, seconds in pairs(actions_of(run)) do
    least[key] = math.min(least[key] or seconds, seconds)
  end
end

-- The seconds of F or of B in all stages.
local function sum_of(seconds, op)
  local sum = 0
  for key, one in pairs(seconds) do sum = sum + (key:sub(1, 1) == op and one or 0) end
  return sum
end

--- What F and B of each stage take, as parts of F and B of the model without cuts, with one
--- micro-batch through all stages on one device that keeps everything. Disturbances only make a
--- step slower, so the least of a few counts.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer}
---@param balance integer[]
---@return {F: number[], B: number[]}
function cut.measure(wanted, o, balance)
  local _pause <close> = dry_mode.pause()
  local run <close> = runs.open(wanted, o.device, "never", { whole = true, balance = balance })
  local whole <close> = runs.open(wanted, o.device, "never", { whole = true })
  local mine, theirs, stages = {}, {}, { F = {}, B = {} }
  for _ = 1, WARM_UP do
    actions_of(run)
    actions_of(whole)
  end
  for _ = 1, math.max(AT_LEAST, o.repeats) do
    note(run, mine)
    note(whole, theirs)
  end
  for op, list in pairs(stages) do
    local all = sum_of(theirs, op)
    for s = 1, #balance do list[s] = all > 0 and (mine[op .. s - 1] or 0) / all or 0 end
  end
  return stages
end

return cut
