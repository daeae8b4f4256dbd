-- lua/gpipe/schedule/build/greedy.lua - `gp.schedule.greedy`: whenever a device is free, it runs
-- the ready action with the highest priority.
--
-- Most schedules of the literature are such an event loop with a placement, a priority and a limit
-- of memory. Time passes by the given costs: an action becomes ready when its inputs have arrived,
-- and a device looks for one when it is free or an input arrives. At one time devices look in
-- ascending order, and actions of equal rank go in the order F, B, I, W, micro-batch, stage: so the
-- same call gives the same rows.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local Heap = require "gpipe.schedule.build.heap"

local WHO = "gp.schedule.greedy"

-- ---- options -----------------------------------------------------------------------------------

local SPEC = {
  placement = { type = "table", required = true },
  chunks = { type = "integer", min = 1, required = true },
  costs = { type = "table" },
  priority = { type = "callable" },
  limit = { type = { "integer", "callable" } },
}
local LARGEST = 1 << 22 -- stages x chunks: takes seconds
local COSTS = { F = true, B = true, I = true, W = true, comm = true }

-- The device of each stage, from 0, and how many devices there are.
local function read_placement(given)
  local stages, devices = 0, 0
  while given[stages] ~= nil do
    local device = given[stages]
    local number = type(device) == "number" and math.tointeger(device)
    if not number or number < 0 then
      errors.raise("%s: placement[%d] is %s, expected a device, from 0", WHO, stages,
        errors.show(device))
    end
    devices, stages = math.max(devices, number + 1), stages + 1
  end
  if stages == 0 then
    errors.raise("%s: placement[0] is nil, expected the device of stage 0", WHO)
  end
  for key in pairs(given) do
    if math.type(key) ~= "integer" or key < 0 or key >= stages then
      errors.raise("%s: placement has %s and no stage %d, expected devices of stages 0, 1, ...",
        WHO, errors.show(key), stages)
    end
  end
  if devices > stages then
    errors.raise("%s: placement names device %d and has %d stages, expected devices 0, 1, ... with "
      .. "a stage each", WHO, devices - 1, stages)
  end
  return stages, devices
end

-- Make a function (place, from 0) from a number or from a list with one for each stage or boundary.
local function cost_of(name, given, count)
  local list = type(given) == "table"
  if list and #given ~= count then
    errors.raise("%s: costs.%s has %d numbers, expected %d (one per %s)", WHO, name, #given, count,
      name == "comm" and "boundary" or "stage")
  end
  for i = 1, list and count or 1 do
    local one = list and given[i] or given
    if type(one) ~= "number" or not (one >= 0 and one < math.huge) then
      errors.raise("%s: costs.%s is %s, expected a number >= 0", WHO, name, errors.show(one))
    end
  end
  return function(place) return list and given[place + 1] or given end
end

-- Backward is one action, B, unless costs name I or W.
local function read_costs(given, stages)
  for name in pairs(given) do
    if not COSTS[name] then
      errors.raise("%s: unknown cost '%s' (costs are B, F, I, W, comm)", WHO,
        errors.name(tostring(name)))
    end
  end
  local split = given.I ~= nil or given.W ~= nil
  if split and given.B ~= nil then
    errors.raise("%s: costs has B beside I and W, expected one or the others", WHO)
  end
  local wanted = { F = 1, I = split and 1, W = split and 1, B = not split and 2 }
  local costs = { comm = cost_of("comm", given.comm or 0, stages - 1) }
  for name, usually in pairs(wanted) do
    costs[name] = usually and cost_of(name, given[name] or usually, stages) or nil
  end
  return costs
end

-- ---- what goes first ---------------------------------------------------------------------------

local RANK = { B = 0, I = 0, F = 1, W = 2 }

-- Backwards before forwards, weight gradients last; then lower micro-batches, then later stages.
local function usual(action) return RANK[action.op], action.micro, -action.stage end

local ORDER = { F = 1, B = 2, I = 3, W = 4 }

-- The rank of an action: the numbers that the function returned, then numbers that no two actions
-- share.
local function rank_of(priority, action)
  local rank = table.pack(priority(action))
  for i = 1, rank.n do
    if type(rank[i]) ~= "number" or rank[i] ~= rank[i] then
      errors.raise("%s: priority returned %s for %d%s%d, expected numbers (the lower goes first)",
        WHO, errors.show(rank[i]), action.stage, action.op, action.micro)
    end
  end
  if rank.n == 0 then
    errors.raise("%s: priority returned nothing for %d%s%d, expected numbers (the lower goes "
      .. "first)", WHO, action.stage, action.op, action.micro)
  end
  table.move({ ORDER[action.op], action.micro, action.stage }, 1, 3, rank.n + 1, rank)
  return rank
end

local function goes_first(a, b)
  a, b = a.rank, b.rank
  for i = 1, math.max(#a, #b) do
    if a[i] ~= b[i] then return (a[i] or -math.huge) < (b[i] or -math.huge) end
  end
  return false
end

-- ---- the loop ----------------------------------------------------------------------------------

local Loop = {}
Loop.__index = Loop

local function comes_sooner(a, b)
  if a.ready ~= b.ready then return a.ready < b.ready end
  return goes_first(a, b)
end

local function wakes_sooner(a, b)
  if a.time ~= b.time then return a.time < b.time end
  return a.device < b.device
end

local function limit_of(given, device)
  if type(given) ~= "function" and type(given) ~= "table" then return given or math.huge end
  local limit = given(device)
  if type(limit) ~= "number" or limit < 1 or limit ~= limit then
    errors.raise("%s: limit(%d) is %s, expected a number >= 1", WHO, device, errors.show(limit))
  end
  return limit
end

local function new_loop(o)
  local stages, count = read_placement(o.placement)
  if stages > LARGEST // o.chunks then
    errors.raise("%s: %d stages and %d micro-batches, expected at most %d of both multiplied", WHO,
      stages, o.chunks, LARGEST)
  end
  local loop = setmetatable({ placement = o.placement, stages = stages, chunks = o.chunks,
    costs = read_costs(o.costs or {}, stages), priority = o.priority or usual,
    rows = core.rows(count), wakes = Heap.new(wakes_sooner), devices = {}, left = 0 }, Loop)
  for d = 0, count - 1 do
    loop.devices[d] = { clock = 0, alive = 0, limit = limit_of(o.limit, d),
      coming = Heap.new(comes_sooner), forwards = Heap.new(goes_first),
      others = Heap.new(goes_first) }
  end
  return loop
end

-- Let an action become ready at a time on its device, and the device look then.
function Loop:announce(op, stage, micro, time)
  local device = math.tointeger(self.placement[stage])
  local action = { op = op, stage = stage, micro = micro, device = device, ready = time }
  action.rank = rank_of(self.priority, action)
  self.devices[device].coming:push(action)
  self.wakes:push { time = time, device = device }
  self.left = self.left + 1
end

-- Announce an action on the next stage, later if a message has to travel. Edge e joins stages e and
-- e+1.
function Loop:pass_on(op, action, to, finish)
  local elsewhere = self.placement[to] ~= self.placement[action.stage]
  local hop = elsewhere and self.costs.comm(math.min(action.stage, to)) or 0
  self:announce(op, to, action.micro, finish + hop)
end

-- Announce what the end of an action makes possible. An activation lives until the last part of its
-- backward.
function Loop:follow(action, finish)
  local op, stage, device = action.op, action.stage, self.devices[action.device]
  local back = self.costs.B and "B" or "I"
  if op == "F" then
    if stage + 1 < self.stages then
      self:pass_on("F", action, stage + 1, finish)
    else
      self:announce(back, stage, action.micro, finish)
    end
  elseif op == back and stage > 0 then
    self:pass_on(back, action, stage - 1, finish)
  end
  if op == "I" then self:announce("W", stage, action.micro, finish) end
  if op == "B" or op == "W" then device.alive = device.alive - 1 end
end

-- Take the first action that is ready on a device now and allowed; nil where there is none.
local function take(device, time)
  while device.coming:first() and device.coming:first().ready <= time do
    local action = device.coming:pop()
    local heap = action.op == "F" and device.forwards or device.others
    heap:push(action)
  end
  local forward = device.alive < device.limit and device.forwards:first() or nil
  local other = device.others:first()
  if forward and (not other or goes_first(forward, other)) then return device.forwards:pop() end
  return other and device.others:pop()
end

function Loop:look(d, time)
  local device = self.devices[d]
  if device.clock > time then return end
  local action = take(device, time)
  if not action then return end
  local op = action.op
  self.rows[op](self.rows, d, action.stage, action.micro)
  self.left = self.left - 1
  if op == "F" then device.alive = device.alive + 1 end
  device.clock = time + self.costs[op](action.stage)
  self:follow(action, device.clock)
  self.wakes:push { time = device.clock, device = d }
end

-- Raise if actions are left when no event is to come: only limits can cause that.
function Loop:check_done(time)
  if self.left == 0 then return end
  for d = 0, #self.devices do
    local device = self.devices[d]
    local waiting = device.forwards:first()
    if waiting then
      errors.raise("%s: at time %g nothing can go on: device %d keeps %d activations, its limit, "
        .. "and %dF%d waits; expected a larger limit or another priority", WHO, time, d,
        device.alive, waiting.stage, waiting.micro)
    end
  end
end

--- Make rows by an event loop, for a generator to return: whenever a device is free, it takes the
--- ready action with the lowest rank.
--- `placement`: {[stage] = device}, both from 0. `costs`: F (1), B (2), or I and W (1) where the
--- backward is split, and comm (0) between devices: numbers, or lists with one for each stage
--- (comm: for each boundary). `priority`: a function of an action {op, stage, micro, device, ready}
--- that returns its rank, one number or several, and the lowest goes first. Default: backwards
--- first, then lower micro-batches, then later stages, W last. `limit`: activations of stages that
--- a device may keep, or a function of the device.
--- Errors: raises for unknown options, and where limits leave nothing to do.
--- ```lua
--- -- a wave of two stages on each device, down and up again (Hanayo)
--- gp.schedule.define("wave", function(p, m)
---   local placement = {}
---   for s = 0, 2 * p - 1 do placement[s] = s < p and s or 2 * p - 1 - s end
---   return gp.schedule.greedy {placement = placement, chunks = m}
--- end)
--- assert(gp.schedule.build("wave", {devices = 4, chunks = 4}):verify())
--- ```
---@param opts {placement: table<integer, integer>, chunks: integer, costs?: table,
---  priority?: fun(action: table): number, limit?: integer|fun(device: integer): integer}
---@return {placement: table, rows: userdata}
return function(opts)
  local loop = new_loop(options.check(WHO, opts, SPEC))
  for micro = 0, loop.chunks - 1 do loop:announce("F", 0, micro, 0) end
  local time = 0
  while loop.wakes:first() do
    local wake = loop.wakes:pop()
    time = wake.time
    loop:look(wake.device, time)
  end
  loop:check_done(time)
  return { placement = opts.placement, rows = loop.rows }
end
