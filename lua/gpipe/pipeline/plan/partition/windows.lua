-- lua/gpipe/pipeline/plan/partition/windows.lua - where the stages of a partition may end: with
-- pinned layers, with layers that stay together, and with at least one layer in each stage.

local counted = require "gpipe.counted"
local errors = require "gpipe.errors"

local windows = {}

local function check_layer(who, what, layer, layers)
  local number = math.type(layer) and math.tointeger(layer)
  if number and number >= 1 and number <= layers then return number end
  errors.raise("%s: %s layer %s, expected one of 1..%d", who, what, errors.show(layer), layers)
end

-- The places where no cut may be, as a set: a cut after layer i. Layers that stay together also
-- keep together those between them.
local function uncut_of(who, groups, layers)
  local uncut = {}
  for k, group in ipairs(groups or {}) do
    if type(group) ~= "table" or #group == 0 then
      errors.raise("%s: together: group %d is %s, expected a list of layers such as {1, 4}", who, k,
        type(group) == "table" and "empty" or errors.show(group))
    end
    local first, last = layers, 1
    for _, layer in ipairs(group) do
      layer = check_layer(who, "together:", layer, layers)
      first, last = math.min(first, layer), math.max(last, layer)
    end
    for i = first, last - 1 do uncut[i] = true end
  end
  return uncut
end

-- The pinned layers in order: {layer, stage from 1}.
local function pins_of(who, pinned, layers)
  local pins = {}
  for layer, stage in pairs(pinned or {}) do
    local number = math.type(stage) and math.tointeger(stage)
    layer = check_layer(who, "pinned:", layer, layers)
    if not number or number < 0 then
      errors.raise("%s: layer %d is pinned to stage %s, expected an integer >= 0", who, layer,
        errors.show(stage))
    end
    pins[#pins + 1] = { layer = layer, stage = number + 1 }
  end
  table.sort(pins, function(a, b) return a.layer < b.layer end)
  for i = 2, #pins do
    local a, b = pins[i - 1], pins[i]
    if b.stage < a.stage then
      errors.raise("%s: layer %d is pinned to stage %d and layer %d to stage %d, expected stages "
        .. "in the order of layers", who, a.layer, a.stage - 1, b.layer, b.stage - 1)
    end
  end
  return pins
end

-- For every number of layers, the nearest place at or before it where a cut may be, and at or
-- behind it.
local function places_of(uncut, layers)
  local before, behind = {}, {}
  local last = 0
  for i = 1, layers do
    if not uncut[i] then last = i end
    before[i] = last
  end
  for i = layers, 1, -1 do
    if not uncut[i] then last = i end
    behind[i] = last
  end
  before[0], behind[0] = 0, 0
  return before, behind
end

-- The windows of the stages: stage k ends at a layer in first[k] .. last[k]. They grow strictly
-- with k, so every stage has a layer, and their ends are places where a cut may be. nil where there
-- are none; every pin has its stage.
local function windows_of(stages, layers, pins, uncut)
  local before, behind = places_of(uncut, layers)
  local first, last = {}, {}
  for k = 1, stages do first[k], last[k] = 1, layers end
  first[stages] = layers
  for _, pin in ipairs(pins) do
    first[pin.stage] = math.max(first[pin.stage], pin.layer)
    local earlier = pin.stage - 1
    if earlier >= 1 then last[earlier] = math.min(last[earlier], pin.layer - 1) end
  end
  for k = 1, stages do
    local least = math.max(first[k], k > 1 and first[k - 1] + 1 or 1)
    if least > layers then return nil end
    first[k] = behind[least]
  end
  for k = stages, 1, -1 do
    local most = math.min(last[k], k < stages and last[k + 1] - 1 or layers)
    last[k] = most >= 1 and before[most] or 0
  end
  for k = 1, stages do
    if first[k] > last[k] then return nil end
  end
  return { first = first, last = last, before = before, behind = behind }
end

---@class gpipe.PartitionConditions
---@field layers integer
---@field uncut table<integer, true> layers behind which no cut may be
---@field pins {layer: integer, stage: integer}[] in the order of layers; stages from 1

---@class gpipe.PartitionWindows
---@field first integer[] the first layer at which each stage may end
---@field last integer[]
---@field before table<integer, integer> for each number of layers the nearest place of a cut
---@field behind table<integer, integer>
---@field uncut table<integer, true> layers behind which no cut may be

--- Read conditions, whatever the number of stages.
--- Errors: layers that are not there, stages that are none or not in the order of layers.
---@param who string
---@param layers integer
---@param opts gpipe.PartitionOptions
---@return gpipe.PartitionConditions
function windows.conditions(who, layers, opts)
  return { layers = layers, uncut = uncut_of(who, opts.together, layers),
    pins = pins_of(who, opts.pinned, layers) }
end

-- The windows, or nil and why so many stages cannot keep the conditions.
local function within(conditions, stages)
  local pins, layers = conditions.pins, conditions.layers
  local last = pins[#pins]
  if last and last.stage > stages then
    return nil, ("layer %d is pinned to stage %d, and there are %s"):format(last.layer,
      last.stage - 1, counted(stages, "stage"))
  end
  local made = windows_of(stages, layers, pins, conditions.uncut)
  if made then return made end
  return nil, ("no cut of %s into %s keeps the layers together and pinned as asked"):format(
    counted(layers, "layer"), counted(stages, "stage"))
end

--- Why so many stages cannot keep the conditions, or nil.
---@param conditions gpipe.PartitionConditions
---@param stages integer
---@return string?
function windows.fault(conditions, stages) return (select(2, within(conditions, stages))) end

--- The windows of the stages.
--- Errors: layers and stages that are not there; conditions that contradict each other.
---@param who string
---@param stages integer
---@param layers integer
---@param opts gpipe.PartitionOptions
---@return gpipe.PartitionWindows
function windows.of(who, stages, layers, opts)
  local conditions = windows.conditions(who, layers, opts)
  local made, why = within(conditions, stages)
  if not made then
    errors.raise("%s: %s, expected %s stages or fewer conditions", who, why,
      #conditions.pins > 0 and conditions.pins[#conditions.pins].stage > stages and "more"
      or "fewer")
  end
  made.uncut = conditions.uncut
  return made
end

return windows
