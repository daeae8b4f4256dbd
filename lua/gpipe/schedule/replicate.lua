-- lua/gpipe/schedule/replicate.lua - one schedule repeated for several replicas of a pipeline.
--
-- Replica r has devices of its own, r * p .. (r + 1) * p - 1, with copies of all stages, and runs
-- micro-batches r * m .. (r + 1) * m - 1 of the whole mini-batch, in a stream of each mini-batch.
-- Gradients are added when all are there (REDUCE_GRAD), which lowering adds. So a stream needs
-- mini-batches of several micro-batches: those of all replicas between two updates.

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

-- The replicas of a stream update together, so a replica's mini-batch is what it runs between two
-- updates.
local function check_batch(made, replicas, count)
  if made.batch == 0 or made.batch == count then return end
  errors.raise("replicas: schedule '%s' updates after every %s, and %d replicas add up the "
    .. "gradients of a whole mini-batch before its one update: expected an update after %d "
    .. "micro-batches of a replica (chunks), as in 'pipedream_2bw'", made.name,
    made.batch == 1 and "micro-batch" or made.batch .. " micro-batches", replicas, count)
end

local function parsed(made)
  local rows, report = made:parsed()
  return rows or errors.raise("replicas: %s", report)
end

--- Repeat a schedule. `of(count)` makes that of one replica with so many micro-batches, those of a
--- mini-batch in a stream; the last replicas have fewer of them, or none, where there are fewer
--- than replicas * m in all. Those without any update what they own all the same.
--- Errors: a stream that updates more often than once for `count` micro-batches.
---@param of fun(count: integer): gpipe.Schedule
---@param replicas integer
---@param m integer micro-batches of a replica
---@param total integer micro-batches of all
---@return gpipe.Schedule
return function(of, replicas, m, total)
  local first = of(math.min(m, total))
  local streams = first.batch > 0
  local rows, made = core.rows(replicas * first.devices), { [math.min(m, total)] = first }
  for r = 0, replicas - 1 do
    local count = math.max(0, math.min(m, total - r * m))
    if count > 0 then
      made[count] = made[count] or of(count)
      check_batch(made[count], replicas, count)
      rows:take(parsed(made[count]), r * first.devices, r * m, streams and count or 0,
        streams and total or 0)
    elseif streams then
      rows:take_updates(parsed(first), r * first.devices)
    end
  end
  local placement = {}
  for stage = 0, first.stages - 1 do
    placement[stage] = placed(first.placement[stage], replicas, first.devices)
  end
  local all = Schedule.new(first.name, {
    placement = placement, rows = rows, replicas = replicas, replica_chunks = m,
    limits = limits_of(first, replicas), batch = streams and total or nil,
  }, total)
  all.asked = first.asked and replicas * first.asked
  return all
end
