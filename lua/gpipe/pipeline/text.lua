-- lua/gpipe/pipeline/text.lua - the printed form of a pipeline: its options, and a line for each
-- stage.

local checkpoint = require "gpipe.pipeline.plan.checkpoint"
local counted = require "gpipe.counted"

-- "stage 0 on cpu:0 (1 thread): layers 1-3, 1,234 parameters"
local function stage_line(pipe, stage, first)
  local count = 0
  for i = first, first + pipe.balance[stage] - 1 do
    for _, entry in ipairs(pipe.model[i]:parameters()) do count = count + entry.param:numel() end
  end
  local places = {}
  for r = 0, pipe.replicas - 1 do -- its first copy in each replica
    local at = (stage - 1) * pipe.copies + r * pipe.copies // pipe.replicas + 1
    local device = pipe.devices[pipe.placement[at] + 1]
    places[r + 1] = ("%s (%s)"):format(device.name, counted(device.threads, "thread"))
  end
  return ("  stage %d on %s: layers %d-%d, %s"):format(stage - 1,
    table.concat(places, ", "), first, first + pipe.balance[stage] - 1,
    counted(count, "parameter"))
end

--- The printed form of a pipeline.
---@param pipe table its fields
---@return string
local function text_of(pipe)
  local name = type(pipe.schedule) == "table" and (pipe.schedule.name or pipe.schedule[1])
    or pipe.schedule
  local lines, first = {
    ("pipeline%s: %s, chunks %d, schedule %s, checkpoint %s%s"):format(
      pipe.core and "" or " (closed)", counted(pipe.stages, "stage"), pipe.chunks, name,
      checkpoint.text(pipe.checkpoint),
      pipe.replicas > 1 and (", %d replicas"):format(pipe.replicas) or ""),
  }, 1
  for stage = 1, pipe.stages do
    lines[#lines + 1] = stage_line(pipe, stage, first)
    first = first + pipe.balance[stage]
  end
  return table.concat(lines, "\n")
end

return text_of
