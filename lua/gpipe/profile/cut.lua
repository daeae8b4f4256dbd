-- lua/gpipe/profile/cut.lua - the measured times of whole stages: what a cut makes of its layers.

local dry_mode = require "gpipe.dry_mode"
local median = require "gpipe.pipeline.median"
local runs = require "gpipe.profile.runs"

local cut = {}

local WARM_UP = 3 -- steps

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

--- The seconds of F and B of each stage, medians: one micro-batch through all stages on one device
--- that keeps everything.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer}
---@param balance integer[]
---@return {F: number[], B: number[]}
function cut.measure(wanted, o, balance)
  local _pause <close> = dry_mode.pause()
  local run <close> = runs.open(wanted, o.device, "never", { whole = true, balance = balance })
  local lists, stages = { F = {}, B = {} }, { F = {}, B = {} }
  for _ = 1, WARM_UP do actions_of(run) end
  for step = 1, o.repeats do
    local seconds = actions_of(run)
    for op, list in pairs(lists) do
      for s = 1, #balance do
        list[s] = list[s] or {}
        list[s][step] = seconds[op .. s - 1] or 0
      end
    end
  end
  for op, list in pairs(lists) do
    for s = 1, #balance do stages[op][s] = median(list[s]) end
  end
  return stages
end

return cut
