-- lua/gpipe/pipeline/plan/partition/windows.lua - where the stages of a partition may end: with
-- pinned layers, with layers that stay together, and with at least one layer in each stage.

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
  for _, group in ipairs(groups or {}) do
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
local function pins_of(who, pinned, stages, layers)
  local pins = {}
  for layer, stage in pairs(pinned or {}) do
    local number = math.type(stage) and math.tointeger(stage)
    layer = check_layer(who, "pinned:", layer, layers)
    if not number or number < 0 or number >= stages then
      errors.raise("%s: layer %d is pinned to stage %s, expected one of 0..%d", who, layer,
        errors.show(stage), stages - 1)
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

local function impossible(who, stages, layers)
  errors.raise("%s: no cut of %d layers into %d stages keeps the layers together and pinned as "
    .. "asked, expected fewer stages or fewer conditions", who, layers, stages)
end

-- The windows of the stages: stage k ends at a layer in first[k] .. last[k]. They grow strictly
-- with k, so every stage has a layer, and their ends are places where a cut may be.
local function windows_of(who, stages, layers, pins, uncut)
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
    if least > layers then impossible(who, stages, layers) end
    first[k] = behind[least]
  end
  for k = stages, 1, -1 do
    local most = math.min(last[k], k < stages and last[k + 1] - 1 or layers)
    last[k] = most >= 1 and before[most] or 0
  end
  for k = 1, stages do
    if first[k] > last[k] then impossible(who, stages, layers) end
  end
  return { first = first, last = last, before = before, behind = behind }
end

---@class gpipe.PartitionWindows
---@field first integer[] the first layer at which each stage may end
---@field last integer[]
---@field before table<integer, integer> for each number of layers the nearest place of a cut
---@field behind table<integer, integer>
---@field uncut table<integer, true> layers behind which no cut may be

--- The windows of the stages.
--- Errors: layers and stages that are not there; conditions that contradict each other.
---@param who string
---@param stages integer
---@param layers integer
---@param opts gpipe.PartitionOptions
---@return gpipe.PartitionWindows
function windows.of(who, stages, layers, opts)
  local uncut = uncut_of(who, opts.together, layers)
  local made = windows_of(who, stages, layers, pins_of(who, opts.pinned, stages, layers), uncut)
  made.uncut = uncut
  return made
end

return windows
