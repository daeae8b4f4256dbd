-- tests/support/published_rows.lua - write all published schedules as text that C tests read:
--   gpipe-lua tests/support/published_rows.lua > published_rows.txt
--
-- A schedule is one line of numbers and its name (devices, stages, copies of a stage, micro-batches
-- per update, micro-batches), a line with the placement (stage after stage, a device for each
-- copy), and a line for each device. Sizes for which a schedule is not defined are left out.
local gp = require "gpipe"

local DEVICES, MICROS = { 1, 2, 3, 4, 8 }, 8

local function placement_of(schedule)
  local list = {}
  for stage = 0, schedule.stages - 1 do
    local at = schedule.placement[stage]
    for _, device in ipairs(type(at) == "table" and at or { at }) do list[#list + 1] = device end
  end
  return table.concat(list, " ")
end

for _, name in ipairs(gp.schedule.names()) do
  for _, devices in ipairs(DEVICES) do
    for micros = 1, MICROS do
      local good, schedule = pcall(gp.schedule.build, name, { devices = devices, chunks = micros })
      if good then
        local copies = type(schedule.placement[0]) == "table" and 2 or 1
        print(schedule.devices, schedule.stages, copies, schedule.batch, micros, name)
        print(placement_of(schedule))
        for _, row in ipairs(schedule:rows()) do print(row) end
      end
    end
  end
end
