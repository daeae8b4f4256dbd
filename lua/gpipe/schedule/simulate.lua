-- lua/gpipe/schedule/simulate.lua - `schedule:simulate{F = 1, B = 2}`: predict the time and the
-- memory of a schedule; `schedule:makespans`: the times of many runs that vary.
--
-- This file turns costs into one list per op with a number per stage; the simulation itself is in
-- runtime/schedule/simulate/run.c.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local noise = require "gpipe.schedule.noise"
local options = require "gpipe.options"
local per_stage = require "gpipe.schedule.per_stage"
local Simulation = require "gpipe.schedule.simulation"

local WHO = "schedule:simulate"

local function list_of(key, value, count, what) return per_stage(WHO, key, value, count, what) end

-- ---- options ------------------------------------------------------------------------------------

local number_or_list = { type = { "number", "table" } }

local spec = {
  comm = number_or_list,
  link = { type = "table" },
  bytes = number_or_list,
  busy = number_or_list,
  contention = { type = "boolean", default = false },
  overlap = { type = "boolean", default = true },
  capacity = { type = "integer", min = 0, max = 999999 },
  credit = number_or_list,
  barrier = { type = "boolean", default = false },
  joined = { type = "number", min = 0, below = math.huge, default = 1 },
  away = number_or_list,
  sums = number_or_list,
  values = number_or_list,
  gathers = { type = "table" },
  exchange = { type = "number", min = 0, below = math.huge },
  memory = { type = { "table", "boolean" } },
  unit = { type = "string", default = "" },
}
local OPS = { "F", "B", "I", "W", "R", "U", "P", "NORM", "CLIP" }
for _, op in ipairs { "REDUCE", "TIE", "SEND", "RECV", table.unpack(OPS) } do
  spec[op] = number_or_list
end

for key, rule in pairs(noise.SPEC) do spec[key] = rule end

local memory_spec = {
  activation = number_or_list, after_input = number_or_list, resident = number_or_list,
  version = number_or_list,
}

local gathers_spec = { F = number_or_list, B = number_or_list, I = number_or_list,
  W = number_or_list }

local link_spec = {
  latency = { type = "number", min = 0, below = math.huge, default = 0 },
  bandwidth = { type = "number", above = 0, default = math.huge },
}

-- ---- lists --------------------------------------------------------------------------------------

-- a[i] - b[i], which must not be negative.
local function rest(all, part, name)
  local list = {}
  for i = 1, #all do
    list[i] = all[i] - part[i]
    if list[i] < 0 then
      errors.raise("%s: %s of stage %d is %s, expected at most B = %s", WHO, name, i - 1,
        errors.show(part[i]), errors.show(all[i]))
    end
  end
  return list
end

local function half(all)
  local list = {}
  for i = 1, #all do list[i] = all[i] / 2 end
  return list
end

-- Fill in the costs that were not given: B = I + W; a B alone is split evenly.
local function complete(costs, stages)
  local ones = list_of("", 1, stages)
  local B, I, W = costs.B, costs.I, costs.W
  costs.F = costs.F or ones
  if B and not I and not W then I, W = half(B), half(B) end
  if B and not I then I = rest(B, W, "W") end
  if B and not W then W = rest(B, I, "I") end
  costs.I, costs.W = I or ones, W or ones
end

-- ---- transfers ----------------------------------------------------------------------------------

-- The delays of activations and of gradients per edge, from a number, a list, or {F = ..., B = ...}
-- of these.
local function both_ways(key, value, edges)
  if type(value) == "table" and (value.F or value.B) then
    options.check(WHO .. ": " .. key, value, { F = number_or_list, B = number_or_list })
    return list_of(key .. ".F", value.F or 0, edges, "edge between stages"),
      list_of(key .. ".B", value.B or 0, edges, "edge between stages")
  end
  local list = list_of(key, value, edges, "edge between stages")
  return list, list
end

local function times(bytes, latency, bandwidth)
  local list = {}
  for i = 1, #bytes do list[i] = latency + bytes[i] / bandwidth end
  return list
end

-- For how long values take up the link of the device that sends them; nil: any number travel at
-- once.
local function add_busy(costs, given, edges, forward, backward)
  if given.busy then
    forward, backward = both_ways("busy", given.busy, edges)
  elseif not given.contention then
    return
  end
  if not forward then
    errors.raise("%s: contention without transfers, expected link and bytes, or comm", WHO)
  end
  costs.busy_forward, costs.busy_backward = forward, backward
end

-- How long senders wait for the news that a place is free: the latency of the link, unless it is
-- given.
local function add_credits(costs, given, edges)
  local credit = given.credit or given.link and given.link.latency
  if not credit then return end
  costs.credit_forward, costs.credit_backward = both_ways("credit", credit, edges)
end

local function add_transfers(costs, given, edges)
  if given.link and given.comm then
    errors.raise("%s: both comm and link are given, expected one of them", WHO)
  end
  if given.bytes and not given.link then
    errors.raise("%s: bytes are given without a link, expected link = {latency =, bandwidth =}",
      WHO)
  end
  if not given.link then
    costs.hop_forward, costs.hop_backward = both_ways("comm", given.comm, edges)
    return add_busy(costs, given, edges, costs.hop_forward, costs.hop_backward)
  end
  local link = options.check(WHO .. ": link", given.link, link_spec)
  if link.bandwidth < math.huge and not given.bytes then
    errors.raise("%s: link.bandwidth is given without bytes, expected bytes = of a value", WHO)
  end
  local forward, backward = both_ways("bytes", given.bytes or 0, edges)
  local latency, bandwidth = link.latency, link.bandwidth
  costs.hop_forward = times(forward, latency, bandwidth)
  costs.hop_backward = times(backward, latency, bandwidth)
  add_busy(costs, given, edges, times(forward, 0, bandwidth), times(backward, 0, bandwidth))
end

-- ---- the call -----------------------------------------------------------------------------------

local function add_memory(costs, given, stages)
  for key in pairs(memory_spec) do
    costs[key] = list_of("memory." .. key, (given.memory or {})[key], stages, "stage")
  end
end

-- How often actions gather from the other replicas; an exchange takes the latency of the link if
-- its time is not given.
local function add_gathers(costs, given, stages)
  costs.exchange = given.exchange or given.link and given.link.latency or 0
  if not given.gathers then return end
  options.check(WHO .. ": gathers", given.gathers, gathers_spec)
  costs.gathers = {}
  for op, value in pairs(given.gathers) do
    costs.gathers[op] = list_of("gathers." .. op, value, stages, "stage")
  end
end

-- Lists per stage, as core.simulate wants them.
local function costs_of(given, stages, devices)
  local costs = {
    noise = noise.of(WHO, given, devices),
    stages = stages, joined = given.joined, blocking = not given.overlap, capacity = given.capacity,
    barrier = given.barrier, times_only = given.memory == false,
  }
  for _, op in ipairs(OPS) do
    costs[op] = list_of(op, given[op], stages, "stage")
  end
  for _, key in ipairs { "away", "sums", "values" } do
    costs[key] = list_of(key, given[key], stages, "stage")
  end
  costs.REDUCE_GRAD = list_of("REDUCE", given.REDUCE, stages, "stage")
  costs.REDUCE_TIED = list_of("TIE", given.TIE, stages, "stage")
  for _, op in ipairs { "SEND", "RECV" } do
    local list = list_of(op, given[op], stages, "stage")
    costs[op .. "_F"], costs[op .. "_B"] = list, list
  end
  complete(costs, stages)
  add_transfers(costs, given, stages - 1)
  add_credits(costs, given, stages - 1)
  add_memory(costs, given, stages)
  add_gathers(costs, given, stages)
  return costs
end

-- The checked options, and the costs of a verified schedule.
local function prepare(self, opts, own_spec)
  local given = options.check(WHO, opts, own_spec)
  if given.memory == true then
    errors.raise("%s: memory is true, expected bytes, or false: what devices hold is left out", WHO)
  end
  if given.memory then options.check(WHO .. ": memory", given.memory, memory_spec) end
  local good, report = self:verify()
  if not good then errors.raise("%s: this is no schedule: %s", WHO, tostring(report)) end
  return given, costs_of(given, self.stages, self.devices)
end

local simulate = {}

--- Run the schedule with costs instead of devices: each device runs its list in order, and an
--- action begins when the device is free and its inputs have arrived.
---
--- A cost is that of one action of a stage: a number for all stages or a list (element 1 is stage
--- 0). `F`, `I`, `W` (default 1), `B` (default I + W; alone it is split evenly), `R`, `U`,
--- `REDUCE`, `TIE` (REDUCE_TIED), `NORM`, `CLIP`, `SEND`, `RECV` (default 0, for actions that are
--- in the rows); `P`: the preparation of a stage before its device's first action (default 0).
--- `comm` is the delay of a value that crosses devices: a number, a list with one for each edge
--- (element 1: between stages 0 and 1), or {F =, B =} with one of these for each direction. Or give
--- `link = {latency =, bandwidth =}`, and `bytes` in the same forms. `contention = true`: what a
--- device sends passes its link one by one (`busy`: for how long each takes it up, in the forms of
--- `comm`); without it any number travel at once. `overlap = false`: the sender's device is busy
--- meanwhile. `capacity`: how many values a channel (an edge in one direction) holds before its
--- sender must wait; 0 is rendezvous; default: any number. `credit`: how long it takes until the
--- sender hears that a place is free, in the forms of `comm` (default: the link's latency, or 0).
--- `barrier = true`: updates wait until every gradient of the step is there. `joined`: an
--- overlapped pair takes this factor times the sum of its parts (default 1). `away`: the time of a
--- copy of what a micro-batch of a stage saves to the host's memory, and of one back: copies run
--- beside the device's work, one at a time each way, and it waits where they are not over in time.
--- `sums` and `values`, in an asynchronous schedule with replicas: how long a device sends the
--- gradients of a mini-batch to the other replicas, behind the last action that adds to them, and
--- new values behind an update, one after another; they travel for `exchange`. REDUCE_GRAD waits
--- for the one, the first F of a version for the other.
--- `memory = {activation =, after_input =, resident =, version =}` in bytes of a stage: held per
--- micro-batch from F (or R) on; the part of it that W still reads after I; always held (weights,
--- gradients); each further version of the weights; false: what devices hold is not counted, which
--- saves time. `gathers = {F =, B =, I =, W =}`: how often an
--- action waits in its middle for the same action of the other replicas, in a schedule with
--- replicas (sync_batch_norm; pipe:costs() has it): they end together, `exchange` times that number
--- later (default: the link's latency, or 0).
---
--- Times that vary: `jitter` is the relative standard deviation of an action's time (log-normal,
--- the costs are the means), or {action =, travel =}; `stragglers = {share =, slowdown =}`: the
--- probability with which a device takes so many times longer in a run; `slow = {[device] =
--- factor}`: a device, from 0, that always does; `seed`.
--- Errors: a schedule that does not verify; a cost that is no number from 0 on; channels that are
--- too small to go on.
--- ```lua
--- local s = gp.schedule.build("1f1b", {devices = 4, chunks = 8})
--- local r = s:simulate{F = 1, B = 2, comm = 0}
--- assert(r.makespan == 33 and r.bubble[1] == 9 / 33 and r.peak_live[1] == 4)
--- print(r)
--- ```
---@param self gpipe.Schedule
---@param opts? table
---@return gpipe.Simulation
function simulate.simulate(self, opts)
  local given, costs = prepare(self, opts, spec)
  local run = core.simulate(self.checked, costs)
  self.last_simulation = Simulation.new(self, run, given.unit)
  return self.last_simulation
end

local many_spec = { count = { type = "integer", min = 1, max = 1 << 24, default = 100 },
  first = { type = "integer", min = 0, max = 1 << 30, default = 0 }, tails = { type = "table" } }
for key, rule in pairs(spec) do many_spec[key] = rule end

--- The makespans of `count` (100) runs with the options of `simulate`, which say how times vary: a
--- list in the order of the draws, `first` (0) and the following ones. The same draws of another
--- schedule of this size meet the same stragglers. `tails`: what each device (element 1 is device
--- 0) does behind its list.
--- Errors: as `simulate`.
--- ```lua
--- local s = gp.schedule.build("1f1b", {devices = 4, chunks = 8})
--- local quiet = s:simulate({F = 1, B = 2}).makespan
--- local list = s:makespans {F = 1, B = 2, jitter = 0.2, count = 50}
--- assert(#list == 50 and list[1] > quiet * 0.8)
--- ```
---@param self gpipe.Schedule
---@param opts? table
---@return number[]
function simulate.makespans(self, opts)
  local given, costs = prepare(self, opts, many_spec)
  costs.tails = list_of("tails", given.tails, self.devices, "device")
  if costs.noise then costs.noise.draw = given.first end
  return core.simulate_ends(self.checked, costs, given.count)
end

return simulate
