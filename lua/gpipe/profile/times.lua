-- lua/gpipe/profile/times.lua - the measured times of each layer: forward, gradient of the input,
-- gradient of the weights, recomputation.
--
-- A copy of the model runs steps of one micro-batch on one device, with recomputation, under a
-- schedule that runs I and W apart; the runtime times every instruction (pipe:profile), and an
-- instruction belongs to the layer that it was traced in. All layers that need the gradient of
-- their input are one stage, so images cross no cut, where they would be copied into another order.

local core = require "gpipe.core"
local dry_mode = require "gpipe.dry_mode"
local median = require "gpipe.pipeline.median"
local object = require "gpipe.pipeline.object"
local pipeline = require "gpipe.pipeline"
local profile = require "gpipe.pipeline.profile"
local request = require "gpipe.profile.request"
local schedule = require "gpipe.schedule"

local times = {}

local WARM_UP = 3  -- steps: they plan, load libraries and, on GPUs, capture
local AT_LEAST = 3 -- steps that count, however short the time

-- ---- the pipeline -------------------------------------------------------------------------------

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

-- The first layers, up to one that is trained, need no gradient of their input: they are a stage,
-- and the others a second one.
local function balance_of(model)
  for i = 1, #model - 1 do
    for _, entry in ipairs(model[i]:parameters()) do
      if not entry.param:is_frozen() then return { i, #model - i } end
    end
  end
  return { #model }
end

local function open(wanted, device, checkpoint)
  local model, loss = request.own(wanted)
  local balance = balance_of(model)
  local pipe = pipeline(model, {
    balance = balance, devices = { device }, schedule = one_device(#balance),
    checkpoint = checkpoint, loss = loss, precision = wanted.precision, finite = "ignore",
  })
  object.inside(pipe).raw = true -- before there is a plan: no stage keeps what it may make again
  return pipe
end

-- ---- a step -------------------------------------------------------------------------------------

local OPTIONS = { eager = false }

-- Run a step and return the time of each of its instructions.
local function entries_of(pipe, wanted)
  local inner = object.inside(pipe)
  profile.begin(inner, OPTIONS)
  local _ <close> = setmetatable({}, { __close = function() profile.drop(inner) end })
  pipe:step(wanted.inputs, wanted.targets)
  inner.core:profile_end()
  return inner.core:profile_entries(0)
end

-- In a stage whose input needs no gradient all of backward is one action B: gradients of weights.
local FIELDS = { F = "forward", I = "input", W = "weight", B = "weight", R = "recompute" }

-- The layer that an instruction was traced in, by the label "3.fc (Linear 4 -> 2)": the last one
-- for a user's loss, nil for what stands for one.
local function layer_of(label, names, loss)
  local first = label:match "^[^.]*"
  local name = first:sub(1, (first:find(" (", 1, true) or #first + 1) - 1)
  return names[name] or loss
end

-- Add the sums of a step to the lists of each layer.
local function note(entries, lists, names, loss)
  local sums = {}
  for i = 1, #lists do sums[i] = { forward = 0.0, input = 0.0, weight = 0.0, recompute = 0.0 } end
  for _, e in ipairs(entries) do
    local field = e.action and FIELDS[e.action]
    local layer = field and layer_of(e.what, names, loss)
    if layer then sums[layer][field] = sums[layer][field] + e.seconds end
  end
  for i, list in ipairs(lists) do
    for field, seconds in pairs(sums[i]) do table.insert(list[field], seconds) end
  end
end

-- ---- what "selective" makes again ---------------------------------------------------------------

local BACKWARD = { I = true, W = true, B = true, R = true }

-- The instructions of backward by what they are: how many there are, and their time. Those of R are
-- all recomputation, so `without_r` leaves them out.
local function kinds_of(entries, without_r)
  local kinds = {}
  for _, e in ipairs(entries) do
    if BACKWARD[e.action] and not (without_r and e.action == "R") then
      local key = e.what .. " " .. e.op
      local kind = kinds[key] or { what = e.what, count = 0, seconds = 0.0 }
      kind.count, kind.seconds = kind.count + 1, kind.seconds + e.seconds
      kinds[key] = kind
    end
  end
  return kinds
end

-- With "selective" values are made again within backward, by instructions that backward has not got
-- otherwise. Some gradients are computed by the op of forward (dropout is one), so they are counted
-- in both runs: what there is more of in this one runs again.
local function remade(entries, plain, names, loss)
  local sums = {}
  for _, i in pairs(names) do sums[i] = 0.0 end
  for key, kind in pairs(kinds_of(entries)) do
    local more = kind.count - (plain[key] and plain[key].count or 0)
    local layer = more > 0 and layer_of(kind.what, names, loss)
    if layer then sums[layer] = sums[layer] + kind.seconds * more / kind.count end
  end
  return sums
end

local SELECTIVE_STEPS = 3

-- Set selective.recompute of each layer. plain: the kinds of a run that makes nothing again there.
local function measure_selective(wanted, o, rows, names, plain)
  local pipe <close> = open(wanted, o.device, "selective")
  local lists, loss = {}, wanted.loss and #rows
  for i = 1, #rows do lists[i] = {} end
  for _ = 1, WARM_UP - 1 do entries_of(pipe, wanted) end
  for _ = 1, math.min(SELECTIVE_STEPS, o.repeats or SELECTIVE_STEPS) do
    for i, seconds in ipairs(remade(entries_of(pipe, wanted), plain, names, loss)) do
      table.insert(lists[i], seconds)
    end
  end
  for i, row in ipairs(rows) do
    row.selective = row.selective or {}
    row.selective.recompute = median(lists[i])
  end
end

-- ---- all of it ----------------------------------------------------------------------------------

-- Call `step` as often as the options say; return how often it was.
local function repeated(o, step)
  local stop, steps = o.timeout and core.seconds() + o.timeout, 0
  repeat
    step()
    steps = steps + 1
    local enough = stop and steps >= AT_LEAST and core.seconds() >= stop
  until enough or not stop and steps >= o.repeats
  return steps
end

--- Measure, and set forward, input, weight and recompute (seconds) of each layer. Without `timeout`
--- `repeats` steps count; with it as many as it takes to fill that time, three at least.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer, timeout: number?, selective: boolean?}
--- selective: also what that policy makes again
---@param rows table[] one per layer, with names
---@return integer steps that counted
---@return table device {name, threads}
function times.measure(wanted, o, rows)
  local _pause <close> = dry_mode.pause()
  local pipe <close> = open(wanted, o.device, "always")
  local lists, names = {}, {}
  for i, row in ipairs(rows) do
    names[row.name], lists[i] = i, { forward = {}, input = {}, weight = {}, recompute = {} }
  end
  for _ = 2, WARM_UP do pipe:step(wanted.inputs, wanted.targets) end
  entries_of(pipe, wanted) -- the first one that is timed is captured anew on GPUs
  local loss = wanted.loss and #rows
  local entries
  local steps = repeated(o, function()
    entries = entries_of(pipe, wanted)
    note(entries, lists, names, loss)
  end)
  for i, row in ipairs(rows) do
    for field, list in pairs(lists[i]) do row[field] = median(list) end
  end
  -- What the last layer of the first stage makes lies on an edge here, so it was not made again.
  local edge = pipe.stages > 1 and rows[pipe.balance[1]]
  if edge then edge.recompute = edge.forward end
  if o.selective then measure_selective(wanted, o, rows, names, kinds_of(entries, true)) end
  return steps, pipe.devices[1]
end

return times
