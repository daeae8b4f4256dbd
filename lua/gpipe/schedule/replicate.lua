-- lua/gpipe/schedule/replicate.lua - one schedule repeated for several replicas of a pipeline.
--
-- Replica r has devices of its own, r * p .. (r + 1) * p - 1, with copies of all stages, and runs
-- micro-batches r * m .. (r + 1) * m - 1 of the whole mini-batch. Gradients are added when all are
-- there (REDUCE_GRAD), which lowering adds.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local Schedule = require "gpipe.schedule.object"

-- The devices of a stage in all replicas.
local function placed(entry, replicas, p)
  local list = {}
  for r = 0, replicas - 1 do
    for _, device in ipairs(type(entry) == "table" and entry or { entry }) do
      list[#list + 1] = r * p + device
    end
  end
  return list
end

-- The limits that a replica states, for the devices of all.
local function limits_of(first, replicas)
  local limits = {}
  for key, value in pairs(first.limits or {}) do limits[key] = value end
  if type(limits.peak_live) ~= "table" then return first.limits and limits end
  local list = {}
  for _ = 1, replicas do table.move(limits.peak_live, 1, first.devices, #list + 1, list) end
  limits.peak_live = list
  return limits
end

--- Repeat a schedule. `of(count)` makes that of one replica with so many micro-batches; the last
--- replicas have fewer of them, or none, where there are fewer than replicas * m in all.
---@param of fun(count: integer): gpipe.Schedule
---@param replicas integer
---@param m integer micro-batches of a replica
---@param total integer micro-batches of all
---@return gpipe.Schedule
return function(of, replicas, m, total)
  local first = of(math.min(m, total))
  if first.batch > 0 then
    errors.raise("gp.schedule.build: schedule '%s' is asynchronous, expected a synchronous one for "
      .. "%d replicas", first.name, replicas)
  end
  local rows, made = core.rows(replicas * first.devices), { [math.min(m, total)] = first }
  for r = 0, replicas - 1 do
    local count = math.max(0, math.min(m, total - r * m))
    if count > 0 then
      made[count] = made[count] or of(count)
      local own, report = made[count]:parsed()
      if not own then errors.raise("replicas: %s", report) end
      rows:take(own, r * first.devices, r * m)
    end
  end
  local placement = {}
  for stage = 0, first.stages - 1 do
    placement[stage] = placed(first.placement[stage], replicas, first.devices)
  end
  local all = Schedule.new(first.name, {
    placement = placement, rows = rows, replicas = replicas, replica_chunks = m,
    limits = limits_of(first, replicas),
  }, total)
  all.asked = first.asked and replicas * first.asked
  return all
end
