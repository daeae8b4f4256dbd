-- lua/gpipe/pipeline/areas/init.lua - pipe:memory(), dry:memory(): what a pipeline takes of
-- each device's memory, by what it is for.
--
-- Every byte was planned before it was allocated. The work area, which holds what micro-batches
-- keep and the temporaries, is shared by the plans of a pipeline; everything else of a plan is its
-- own.

local held_areas = require("gpipe.pipeline.areas.held").areas
local report = require "gpipe.pipeline.areas.report"
local share = require "gpipe.ranks.share"
local sizes = require "gpipe.sizes"

local areas = {}

local WORK = { saved = true, recomputed = true, carried = true, transient = true, waste = true }

-- Add the areas of a plan; the work area counts once, for the plan that needs most of it.
local function add_plan(sum, own)
  for name, bytes in pairs(own) do
    if name ~= "shared" and not (WORK[name] and own.shared > 0) then
      sum[name] = (sum[name] or 0) + bytes
    end
  end
end

local function largest_work(pipe, d)
  local most
  for _, plan in pairs(pipe.plans) do
    local own = pipe.core:areas(plan.handle, d)
    if own.shared > (most and most.shared or 0) then most = own end
  end
  return most
end

-- The areas of a device, without those that are empty.
local function areas_of(pipe, d, held)
  local sum = held_areas(held)
  for _, plan in pairs(pipe.plans) do add_plan(sum, pipe.core:areas(plan.handle, d)) end
  local most = largest_work(pipe, d)
  for name in pairs(WORK) do
    sum[name] = (sum[name] or 0) + (most and most[name] or 0)
  end
  -- a plan that was dropped may have needed more than those that are left
  if most and held.shared then sum.waste = sum.waste + held.shared - most.shared end
  for name, bytes in pairs(sum) do
    if bytes == 0 then sum[name] = nil end
  end
  return sum
end

-- The host's memory for what a device saves; nil if nothing goes there.
local function host_of(pipe, d, held)
  local planned = 0
  for _, plan in pairs(pipe.plans) do planned = planned + pipe.core:on_host(plan.handle, d) end
  if planned == 0 and (held.host or 0) == 0 then return nil end
  return { planned = planned, measured = held.host, cap = pipe.devices[d + 1].host_memory }
end

-- A dry run may have planned the share of some devices only.
local function is_planned(pipe, d) return not pipe.share or pipe.share[d] or false end

local function device_of(pipe, d)
  local held = pipe.core:held(d)
  local own = is_planned(pipe, d) and areas_of(pipe, d, held) or {}
  local planned = sizes.sum(own)
  return {
    name = pipe.devices[d + 1].name, planned = planned, measured = held.measured,
    lower_bound = planned - (own.waste or 0), cap = pipe.devices[d + 1].cap, areas = own,
    host = is_planned(pipe, d) and host_of(pipe, d, held) or nil,
  }
end

-- The plan that trained last, or that ran last where none trained.
local function shown(pipe)
  local best
  for _, plan in pairs(pipe.plans) do
    local trains = plan.kind == "step" or plan.kind == "split"
    local later = best and trains == best.trains and plan.used > best.used
    if not best or trains and not best.trains or later then
      best = { handle = plan.handle, used = plan.used, trains = trains }
    end
  end
  return best and best.handle
end

--- The report of a pipeline or a dry run: a list with an element per device. Over ranks every rank
--- has to call, and each says what its own devices have.
---@param pipe table
---@return gpipe.Memory
function areas.of(pipe)
  local list = share.by_device(pipe, "memory", function(d) return device_of(pipe, d - 1) end)
  return report.new(list, pipe.core, shown(pipe))
end

--- What the only plan of a dry run takes on each device, as the search for budgets reads it.
---@param pipe table
---@param timed boolean simulate a step, too
---@return gpipe.PlanNeed[] without `time` if not timed
function areas.needs(pipe, timed)
  local needs, time = {}, timed and pipe.core:step_time(pipe.core) or nil
  for d = 1, #pipe.devices do
    local one, work = device_of(pipe, d - 1), 0
    for name in pairs(WORK) do work = work + (one.areas[name] or 0) end
    needs[d] = { bytes = one.planned, work = work, grown = 0,
      host = pipe.core:on_host(pipe.core, d - 1), time = time }
  end
  return needs
end

return areas
