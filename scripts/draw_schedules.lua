-- scripts/draw_schedules.lua - the pictures of docs/schedules.md: gpipe-lua
-- scripts/draw_schedules.lua [folder]
--
-- One SVG per schedule, of 4 devices and 8 micro-batches with F = I = W = 1 of a device's share.
-- Written to docs/schedules; tests/spec/docs/documentation_spec.lua checks that those there are
-- what this script draws.
local gp = require "gpipe"

local folder = arg[1] or (arg[0]:match("^(.*/)[^/]*$") or "./") .. "../docs/schedules"

-- The pictures that show more than the bare name with eight micro-batches.
local special = {
  { "1f1b", warmup = 2, picture = "eager_1f1b" },
  { "pipedream", vertical_sync = true, picture = "vertical_sync" },
  { "pipedream_2bw", chunks = 4, picture = "pipedream_2bw" }, -- per mini-batch: the rows show three
  { "zb_auto", memory = 6, picture = "zb_auto" },
}

-- Draw a schedule {name, option = ...} into <picture>.svg; returns its path.
local function draw(case)
  local picture, chunks, options = case.picture or case[1], case.chunks or 8, {}
  for key, value in pairs(case) do
    if key ~= "picture" and key ~= "chunks" then options[key] = value end
  end
  local s = gp.schedule.resolve(options, 4, chunks)
  local share = s.devices / s.stages -- a stage's share of what its device holds
  s:simulate { F = share, I = share, W = share, U = s.batch > 0 and 0.25 or nil }
  local path = ("%s/%s.svg"):format(folder, picture)
  assert(s:svg(path, { title = picture, width = 900 }))
  return path
end

local cases, given = special, {}
for _, case in ipairs(special) do given[case.picture] = true end
for _, name in ipairs(gp.schedule.names()) do
  if not given[name] then cases[#cases + 1] = { name } end
end
for _, case in ipairs(cases) do print(draw(case)) end
