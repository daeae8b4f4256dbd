-- lua/gpipe/pipeline/plan/caps.lua - the memory that a device may take: option `memory` of a
-- device, and what checkpoint = "auto" spends of it. gp.dry_run finds its budgets here too.
--
-- Both ask the runtime what a plan would take, without allocating it (budgets.lua). Over ranks each
-- says what its own devices hold and need, so that all of them decide alike.

local budgets = require "gpipe.pipeline.plan.budgets"
local checkpoint = require "gpipe.pipeline.plan.checkpoint"
local core = require "gpipe.core"
local held_areas = require("gpipe.pipeline.areas.held").areas
local host = require "gpipe.plan.host"
local keeps = require "gpipe.pipeline.plan.keeps"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"
local sizes = require "gpipe.sizes"

local caps = {}

-- What a device may still take for plans, shared work areas not counted; false if there is no
-- limit. memory: that it takes from, with other devices without a cap. Ranks that drive the same
-- GPU get an equal part of what it has left.
local function room_of(pipe, d)
  local held, device = pipe.core:held(d - 1), pipe.devices[d]
  if device.cap then return { bytes = device.cap - held.measured, own = held.shared } end
  local free = pipe.core:free_bytes(d)
  if not free then return false end
  local memory = ("%d %s"):format(device.rank or 0, tostring(device.memory))
  return { bytes = free // (device.drivers or 1), own = held.shared, memory = memory }
end

-- The rooms in bytes: parts of a GPU share what it has free.
local function share_gpus(list)
  local count = {}
  for _, one in ipairs(list) do
    if one and one.memory then count[one.memory] = (count[one.memory] or 0) + 1 end
  end
  for d, one in ipairs(list) do
    list[d] = one and one.bytes // (one.memory and count[one.memory] or 1) + one.own
  end
end

-- What a machine's CPU devices without a limit may take together; of each rank, where all ranks of
-- a host say the least that any of them has seen.
local function machines(pipe)
  if not pipe.spread then return { { host = "", available = core.machine().available } } end
  local all, least = share.by_rank("machine", function()
    return { host = ranks.machine(), available = core.machine().available }
  end), {}
  for _, one in ipairs(all) do
    least[one.host] = math.min(least[one.host] or one.available, one.available)
  end
  for _, one in ipairs(all) do one.available = least[one.host] end
  return all
end

-- Share what each machine has left among its devices without a limit.
local function share_machines(pipe, list)
  local all, open = machines(pipe), {}
  local function of(d) return all[(pipe.spread and pipe.devices[d].rank or 0) + 1] end
  for d = 1, #list do
    if not list[d] then open[of(d).host] = (open[of(d).host] or 0) + 1 end
  end
  for d = 1, #list do
    list[d] = list[d] or of(d).available * 9 // 10 // open[of(d).host]
  end
end

-- What each device may still have in the host's memory; nil where none says a limit.
local function host_rooms(pipe)
  local capped = false
  for _, device in ipairs(pipe.devices) do capped = capped or device.host_memory end
  return capped and share.by_device(pipe, "host rooms", function(d)
    local most = pipe.devices[d].host_memory
    return most and math.max(0, most - pipe.core:held(d - 1).host) or false
  end) or nil
end

-- The room of each device, and field `host`. For "auto" CPU devices without a cap share what the
-- machine has left.
local function rooms(pipe, with_machine)
  local list = share.by_device(pipe, "rooms", function(d) return room_of(pipe, d) end)
  share_gpus(list)
  if with_machine then share_machines(pipe, list) end
  list.host = host_rooms(pipe)
  return list
end

local function has_cap(pipe)
  for _, device in ipairs(pipe.devices) do
    if device.cap or device.host_memory then return true end
  end
  return false
end

-- Does a plan use the work area that plans share? The backward pass of a forward pass is still to
-- come when other plans run, and a stream never ends, so these have one of their own.
local function shares(pipe, kind)
  local streams = pipe.asynchronous or pipe.apart and pipe.free
  return kind ~= "split" and not (streams and kind == "step")
end

-- What a plan would take on each device, from its specification. Nothing is allocated.
local function needs_of(pipe, spec)
  local needs
  return share.by_device(pipe, "measure", function(d)
    needs = needs or pipe.core:measure(spec)
    return needs[d]
  end)
end

-- What plans share on each device.
local function shared_of(pipe)
  return share.by_device(pipe, "shared", function(d) return pipe.core:held(d - 1).shared end)
end

-- A function that says what the plan would take on each device with given budgets, with stages that
-- keep everything, and with or without what "auto" sends to the host's memory. That is in addition
-- to all that is held but the shared work area, which never becomes smaller while plans use it.
local function measurer(pipe, specify, mode)
  local held = shared_of(pipe)
  return function(list, keep)
    local spec = specify()
    spec.checkpoint, spec.keeps = mode, keep
    budgets.specify(spec, list)
    local kind, needs = spec.kind, needs_of(pipe, spec)
    for d, need in ipairs(needs) do
      local shared = held[d]
      if shares(pipe, kind) then shared = math.max(0, shared - need.work) end
      need.bytes = need.bytes + shared
    end
    return needs
  end
end

-- ---- caps -------------------------------------------------------------------------------------

local CALLS = { step = "step", split = "forward", evaluate = "evaluate", forward = "forward" }

local function refuse(pipe, kind, d, need, room)
  local at_host = pipe.devices[d].host_memory
  if at_host and need.host > at_host then
    return host.short(CALLS[kind], pipe.devices[d], need.host)
  end
  local held = share.by_device(pipe, "held", function(i) return pipe.core:held(i - 1) end)[d]
  local largest, bytes = "", 0
  for name, one in pairs(held_areas(held)) do
    local more = one > bytes or one == bytes and name < largest
    if more then largest, bytes = name, one end
  end
  return ("%s: device %s may take %s (option 'memory'): %s are taken already (largest: %s, %s), "
    .. "and the plan needs %s more, %s of them for what micro-batches keep and temporaries"):format(
    CALLS[kind], pipe.devices[d].name, sizes.text(pipe.devices[d].cap or room),
    sizes.text(held.measured), largest, sizes.text(bytes), sizes.text(budgets.total(need)),
    sizes.text(need.work))
end

--- Why the moments of the optimizer in use do not fit: they take a device over its cap.
---@param pipe table
---@return string? why
function caps.moments(pipe)
  if not has_cap(pipe) then return nil end
  local all = share.by_device(pipe, "held", function(d) return pipe.core:held(d - 1) end)
  for d, held in ipairs(all) do
    local device, taken = pipe.devices[d], held.measured - held.shared -- work areas may shrink
    if device.cap and taken > device.cap then
      return ("device %s may take %s (option 'memory'), and takes %s with the optimizer's moments, "
        .. "%s: expected more stages, or an optimizer that keeps less"):format(device.name,
        sizes.text(device.cap), sizes.text(taken), sizes.text(held.optimizer or 0))
    end
  end
end

-- Whether stages may have to keep everything although the option says less.
local function asks_keeps(pipe, training, mode)
  local offloads = checkpoint.offloads(mode) and not pipe.asynchronous
  return training and not pipe.raw and (mode == "selective" or offloads), offloads
end

local function find_keeps(pipe, measure, offloads)
  return keeps.find(function(flags) return measure(nil, flags) end,
    keeps.stages(pipe.placement, pipe.copies, #pipe.devices), pipe.stages, offloads)
end

--- What a plan would take at least under some option `checkpoint`, and what there is room for.
---@param pipe table
---@param specify fun(): table a fresh specification of the plan
---@param training boolean
---@param mode string|string[]
---@return gpipe.PlanNeed[]
---@return table room per device, and field `host`
function caps.try(pipe, specify, training, mode)
  local measure, room = measurer(pipe, specify, mode), rooms(pipe, true)
  local asks, offloads = asks_keeps(pipe, training, mode)
  local needs = measure(nil, asks and find_keeps(pipe, measure, offloads) or nil)
  if training and mode == "auto" and budgets.short_of(needs, room) then
    local _
    _, needs = budgets.least(measure, room, budgets.links(pipe.devices), needs)
  end
  return needs, room
end

--- Settle how much a plan may keep, and whether it fits.
---@param pipe table
---@param specify fun(): table a fresh specification of the plan
---@param kind string of the plan: "step"
---@param training boolean
---@return table? budgets for the specification
---@return boolean[]? keep for the specification: the stages that keep everything
---@return string? refused why the plan does not fit
function caps.settle(pipe, specify, kind, training)
  local auto = training and pipe.checkpoint == "auto"
  local asks, offloads = asks_keeps(pipe, training, pipe.checkpoint)
  if not auto and not asks and not has_cap(pipe) then return nil end
  local measure = measurer(pipe, specify, pipe.checkpoint)
  local found = auto and budgets.find(measure, rooms(pipe, true), budgets.links(pipe.devices),
    keeps.stages(pipe.placement, pipe.copies, #pipe.devices)) or nil
  local keep = asks and find_keeps(pipe, measure, offloads) or nil
  if not has_cap(pipe) then return found, keep end
  local room, needs = rooms(pipe, false), measure(found, keep)
  local d = budgets.short_of(needs, room)
  return found, keep, d and refuse(pipe, kind, d, needs[d], room[d])
end

return caps
