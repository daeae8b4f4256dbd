-- scripts/draw_schedules.lua - the pictures of docs/schedules.md: gpipe-lua scripts/draw_schedules.lua [folder]
--
-- One SVG per schedule, of 4 devices and 8 micro-batches with F = I = W = 1 of a device's share. Written to
-- docs/schedules; tests/spec/documentation_spec.lua checks that those there are what this script draws.
local gp = require "gpipe"

local folder = arg[1] or (arg[0]:match("^(.*/)[^/]*$") or "./") .. "../docs/schedules"

-- A schedule, the name of its picture where it is not the schedule's, and the width in pixels.
local function draw(case, name)
  local s = gp.schedule.resolve(case, 4, 8)
  local share = 1 / (s.stages / s.devices) -- of a stage in what the device holds
  s:simulate { F = share, I = share, W = share, U = s.batch > 0 and 0.25 or nil }
  local path = ("%s/%s.svg"):format(folder, name or s.name)
  assert(s:svg(path, { title = name or s.name, width = 900 }))
  return path
end

for _, name in ipairs(gp.schedule.names()) do print(draw(name)) end
print(draw({ "1f1b", warmup = 2 }, "eager_1f1b"))
print(draw({ "pipedream", vertical_sync = true }, "vertical_sync"))
