-- scripts/bench/replay.lua - a step again with the times that its own actions took, and with values
-- that take the ways between two ranks as `gpipe-lua links` has measured them.
--
-- The forecast of a step has two parts: what actions take, which other programs of the machine
-- change from one second to the next, and what the network adds. Here the first part is known.

local gp = require "gpipe"
local json = require "gpipe.io.json"
local way = require "gpipe.plan.way"

local replay = {}

local Replay = {}
Replay.__index = Replay

-- The bytes that cross the cut behind each stage (from 0) with a micro-batch: forward and backward.
local function crossing(model, x, y, row)
  local profile = gp.profile(model, { x, y }, { loss = gp.nn.CrossEntropyLoss(), repeats = 1 })
  local forward, backward, at = {}, {}, 0
  for stage, count in ipairs(row.balance) do
    at = at + count
    local layer = profile.layers[at]
    forward[stage - 1] = layer and layer.output_bytes * row.rows / profile.rows
    backward[stage - 1] = layer and layer.gradient_bytes * row.rows / profile.rows
  end
  return forward, backward
end

--- Get ready, before there is a pipeline: it takes the parameters to their ranks.
---@param model nn.Sequential
---@param row gpipe.PlanRow
---@param path string of a file of `gpipe-lua links`, for two ranks with a device each
function replay.new(model, x, y, row, path)
  local self = setmetatable({ stages = #row.balance, ways = {} }, Replay)
  for _, one in ipairs(assert(json.read(path)).links) do
    self.ways[one.from + 1] = way.new(one.latency, one.bandwidth, one.times)
  end
  self.forward, self.backward = crossing(model, x, y, row)
  return self
end

local function is_forward(e) return e.op == "F" end

local function key_of(forward, stage, micro) return ("%s %d %d"):format(forward, stage, micro) end

-- The stage whose value an action waits for; nil: it waits for none.
function Replay:maker(e)
  local from = is_forward(e) and e.stage - 1 or (e.op == "B" or e.op == "I") and e.stage + 1
  return from and from >= 0 and from < self.stages and from or nil
end

-- When what device d makes at `time` with an action is on each device.
function Replay:sent(e, d, time, free)
  local forward = is_forward(e)
  local bytes = forward and self.forward[e.stage] or not forward and self.backward[e.stage - 1] or 0
  local begin = math.max(time, free[d])
  local there = { [d] = time, [3 - d] = begin + way.seconds(self.ways[d], bytes) }
  local to = e.stage + (forward and 1 or -1)
  if self.place[to] and self.place[to] ~= d then free[d] = begin + way.busy(self.ways[d], bytes) end
  return there
end

-- Run what device d can; true if that was something.
function Replay:advance(d, events, state)
  local moved = false
  for i = state.next[d], #events[d] do
    local e, from = events[d][i], self:maker(events[d][i])
    local value = from and state.made[key_of(is_forward(e), from, e.micro)]
    if from and not value then break end
    state.clock[d] = math.max(state.clock[d], value and value[d] or 0) + e.finish - e.begin
    if is_forward(e) or e.op == "B" or e.op == "I" then
      state.made[key_of(is_forward(e), e.stage, e.micro)] =
        self:sent(e, d, state.clock[d], state.free)
    end
    state.next[d], moved = i + 1, true
  end
  return moved
end

--- The seconds of a step with these events (pipe:timeline()) on two devices.
---@param events table[]
---@return number
function Replay:seconds(events)
  local state = { next = { 1, 1 }, clock = { 0, 0 }, free = { 0, 0 }, made = {} }
  self.place = {}
  for d = 1, 2 do
    for _, e in ipairs(events[d]) do self.place[e.stage] = d end
  end
  repeat
    local first = self:advance(1, events, state)
  until not (self:advance(2, events, state) or first)
  assert(state.next[1] > #events[1] and state.next[2] > #events[2], "an action got no value")
  -- ranks hear that values were read, then how the step ended
  local ending = 2 * math.max(way.seconds(self.ways[1], 0), way.seconds(self.ways[2], 0))
  return math.max(state.clock[1], state.clock[2]) + ending
end

return replay
