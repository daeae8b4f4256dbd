-- lua/gpipe/profile/times.lua - the measured times of each layer: forward, gradient of the input,
-- gradient of the weights, both gradients in one action, recomputation.
--
-- A layer takes longer where what it makes is kept than where it is dropped, because what is
-- dropped stays in caches that are used again at once. And both gradients in one action read the
-- same values at once. So runs that keep everything, with I and W apart and with a whole B, stand
-- beside one that recomputes.

local core = require "gpipe.core"
local dry_mode = require "gpipe.dry_mode"
local median = require "gpipe.pipeline.median"
local remade = require "gpipe.profile.remade"
local runs = require "gpipe.profile.runs"

local times = {}

local WARM_UP = 3  -- steps: they plan, load libraries and, on GPUs, capture
local AT_LEAST = 3 -- steps that count, however short the time

-- The fields of a layer by action, in a run that recomputes, in one that keeps everything, and in
-- one whose backward is not split. In a stage whose input needs no gradient all of backward is one
-- action B: gradients of weights.
local DROPPED = { F = "forward_dropped", I = "input", W = "weight", B = "weight", R = "recompute" }
local KEPT = { F = "forward", I = "input", W = "weight", B = "weight" }
local WHOLE = { B = "backward" }

-- ---- a run --------------------------------------------------------------------------------------

-- Call `step` as often as the options say; return how often it was. Three runs share a time.
local function repeated(o, step)
  local stop, steps = o.timeout and core.seconds() + o.timeout / 3, 0
  repeat
    step()
    steps = steps + 1
    local enough = stop and steps >= AT_LEAST and core.seconds() >= stop
  until enough or not stop and steps >= o.repeats
  return steps
end

-- For each layer a list of seconds for each field, all of them empty.
local function empty_lists(count, fields)
  local lists = {}
  for i = 1, count do
    lists[i] = {}
    for _, field in pairs(fields) do lists[i][field] = {} end
  end
  return lists
end

-- Add the sums of a step to the lists of each layer; `scales` are of Run:scales.
local function note(entries, scales, lists, layer_of, fields)
  local sums = {}
  for i = 1, #lists do sums[i] = {} end
  for _, e in ipairs(entries) do
    local field = e.action and fields[e.action]
    local layer = field and layer_of(e.what)
    if layer then
      local seconds = e.seconds * (scales[e.action .. e.stage] or 1)
      sums[layer][field] = (sums[layer][field] or 0.0) + seconds
    end
  end
  for i, list in ipairs(lists) do
    for field, seconds in pairs(list) do seconds[#seconds + 1] = sums[i][field] or 0.0 end
  end
end

-- Measure a run and set its fields in each row: medians. Returns how many steps counted, and the
-- instructions of the last one.
local function measure(run, o, rows, layer_of, fields)
  local lists, entries = empty_lists(#rows, fields), nil
  for _ = 2, WARM_UP do run:step() end
  run:entries() -- the first one that is timed is captured anew on GPUs
  local steps = repeated(o, function()
    local actions = run:actions()
    entries = run:entries()
    note(entries, run.scales(entries, actions), lists, layer_of, fields)
  end)
  for i, row in ipairs(rows) do
    for field, list in pairs(lists[i]) do row[field] = median(list) end
  end
  return steps, entries
end

-- Measure with recomputation. Returns how many steps counted, the instructions of the last one,
-- and the device with its way to the host's memory.
local function measure_dropped(wanted, o, rows, layer_of)
  local run <close> = runs.open(wanted, o.device, "always")
  local steps, entries = measure(run, o, rows, layer_of, DROPPED)
  -- What the last layer of the first stage makes lies on an edge here, so it was not made again.
  local edge = run.pipe.stages > 1 and rows[run.pipe.balance[1]]
  if edge then edge.recompute = edge.forward_dropped end
  local device = run.pipe.devices[1]
  return steps, entries,
    { name = device.name, threads = device.threads, host_link = run:host_link() }
end

-- Measure without recomputation.
local function measure_kept(wanted, o, rows, layer_of, fields)
  local run <close> = runs.open(wanted, o.device, "never", { whole = fields == WHOLE })
  measure(run, o, rows, layer_of, fields)
end

-- ---- all of it ----------------------------------------------------------------------------------

--- Whether a device has room for what a micro-batch keeps; half of its memory may have other uses.
---@param o {device: string|table}
---@param rows {saved_bytes: number?}[]
---@return boolean
function times.has_room(o, rows)
  local kept = 0
  for _, row in ipairs(rows) do kept = kept + (row.saved_bytes or 0) end
  return kept <= runs.memory(o.device) / 2
end

-- Where nothing can be kept the passes of a run that recomputes stand for it.
local function set_kept(rows)
  for _, row in ipairs(rows) do
    row.forward, row.backward = row.forward_dropped, row.input + row.weight
  end
end

--- Measure, and set forward, input, weight, backward, forward_dropped and recompute (seconds) of
--- each layer. Without `timeout` `repeats` steps of each run count; with it as many as it takes to
--- fill that time, three at least.
---@param wanted gpipe.ProfileRequest
---@param o {device: string|table, repeats: integer, timeout: number?, selective: boolean?}
--- selective: also what that policy makes again
---@param rows table[] one per layer, with names; without saved_bytes there is room for them
---@return integer steps that counted
---@return table device {name, threads, host_link}
function times.measure(wanted, o, rows)
  local _pause <close> = dry_mode.pause()
  local layer_of = runs.finder(rows, wanted.loss and #rows)
  local steps, entries, device = measure_dropped(wanted, o, rows, layer_of)
  if times.has_room(o, rows) then
    measure_kept(wanted, o, rows, layer_of, KEPT)
    measure_kept(wanted, o, rows, layer_of, WHOLE)
  else
    set_kept(rows)
  end
  if o.selective then remade.measure(wanted, o, rows, layer_of, entries) end
  return steps, device
end

return times
