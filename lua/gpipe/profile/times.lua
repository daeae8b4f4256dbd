-- lua/gpipe/profile/times.lua - the measured times of each layer: forward, gradient of the input,
-- gradient of the weights.
--
-- A copy of the model is cut into a stage for each layer, all on one device, and runs steps of one
-- micro-batch under a schedule that runs I and W apart. So a layer's times are those of its
-- actions, with chains and shared hand-outs as in training. The first steps plan, load libraries
-- and capture, so they do not count.

local core = require "gpipe.core"
local pipeline = require "gpipe.pipeline"
local request = require "gpipe.profile.request"
local schedule = require "gpipe.schedule"

local times = {}

local WARM_UP = 3  -- steps; GPUs capture in the second
local AT_LEAST = 3 -- steps that count, however short the time

-- One micro-batch through all stages on one device and back.
local function one_device(stages)
  local actions, placement = {}, {}
  for s = 0, stages - 1 do
    placement[s], actions[#actions + 1] = 0, { op = "F", stage = s, micro = 0 }
  end
  for s = stages - 1, 0, -1 do
    actions[#actions + 1] = { op = "I", stage = s, micro = 0 }
    actions[#actions + 1] = { op = "W", stage = s, micro = 0 }
  end
  return schedule.wrap("profile", { placement = placement, rows = { actions } }, 1)
end

local function open(wanted, device)
  local model, loss = request.own(wanted)
  local balance = {}
  for s = 1, #model do balance[s] = 1 end
  return pipeline(model, {
    balance = balance, devices = { device }, schedule = one_device(#model), checkpoint = "never",
    loss = loss, precision = wanted.precision, finite = "ignore",
    sample = { wanted.inputs, wanted.targets },
  })
end

-- A stage whose input needs no gradient runs one action B, which computes those of the weights.
local FIELDS = { F = "forward", I = "input", W = "weight", B = "weight" }

-- Note the times of the last step.
local function note(pipe, lists)
  for _, event in ipairs(pipe:timeline()[1]) do
    local of, field = lists[event.stage + 1], FIELDS[event.op]
    if of and field then table.insert(of[field], event.finish - event.begin) end
  end
end

local function median(list)
  if #list == 0 then return 0.0 end
  table.sort(list)
  local middle = #list // 2
  return #list % 2 == 1 and list[middle + 1] or (list[middle] + list[middle + 1]) / 2
end

--- Measure, and set forward, input and weight (seconds) of each layer. Without `timeout` `repeats`
--- steps count; with it as many as it takes to fill that time, three at least.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer, timeout: number?}
---@param rows table[] one per layer
---@return integer steps that counted
---@return table device {name, threads}
function times.measure(wanted, o, rows)
  local pipe <close> = open(wanted, o.device)
  local lists, steps = {}, 0
  for i = 1, #rows do lists[i] = { forward = {}, input = {}, weight = {} } end
  for _ = 1, WARM_UP do pipe:step(wanted.inputs, wanted.targets) end
  local stop = o.timeout and core.seconds() + o.timeout
  repeat
    pipe:step(wanted.inputs, wanted.targets)
    note(pipe, lists)
    steps = steps + 1
    local enough = stop and steps >= AT_LEAST and core.seconds() >= stop
  until enough or not stop and steps >= o.repeats
  for i, row in ipairs(rows) do
    for field, list in pairs(lists[i]) do row[field] = median(list) end
  end
  return steps, pipe.devices[1]
end

return times
