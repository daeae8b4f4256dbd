-- lua/gpipe/schedule/known.lua - published schedules that are in use: built and verified once.
--
-- A dry run and a plan ask for the same schedule several times, and one of a thousand devices has
-- millions of actions. A schedule is kept as long as something uses it; those of scripts are built
-- anew, because their functions may return another one.

local catalog = require "gpipe.schedule.catalog"
local schedule = require "gpipe.schedule"

local known = {}

local made = setmetatable({}, { __mode = "v" }) ---@type table<string, gpipe.Schedule>

--- Build the schedule that a name stands for, and verify it.
--- Errors: those of schedule.build.
---@param wanted string|table as schedule.resolve takes it
---@param devices integer
---@param chunks integer
---@return gpipe.Schedule? nil where it does not verify
---@return gpipe.Report? report
function known.verified(wanted, devices, chunks)
  local key = type(wanted) == "string" and catalog.is_published(wanted)
    and ("%s %d %d"):format(wanted, devices, chunks)
  local found = key and made[key]
  if found then return found end
  local built = schedule.resolve(wanted, devices, chunks)
  local good, report = built:verify()
  if not good then return nil, report end
  if key then made[key] = built end
  return built
end

return known
