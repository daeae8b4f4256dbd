-- lua/gpipe/pipeline/plan/partition.lua - cuts a list of layers with costs into stages so that the
-- most expensive stage is as cheap as possible (minimax).
--
-- Stages are contiguous and have at least one layer each. The result is exact: no other cut has a
-- smaller largest stage. The method is a parametric search: a maximum is guessed, a pass over the
-- layers says whether a cut with that maximum exists, and the search ends when no cut is cheaper
-- than the best one found. The cost of a stage is the sum of its layers from left to right, which
-- never falls when a layer is added, in floating point too; so the pass may be greedy.
--
-- Ties: from the first stage on, each takes as many layers as the smallest maximum allows.
-- Source: the linear partitioning problem; the pass without cut costs is "probe" of Pinar and
-- Aykanat, Fast optimal load balancing algorithms for 1D partitioning (2004), section 2.

local errors = require "gpipe.errors"

local partition = {}

-- ---- checks -------------------------------------------------------------------------------------

local function is_cost(v) return type(v) == "number" and v >= 0 and v < math.huge end

-- A list of costs as floats: sums of large integers must not wrap around. whose: "layer", "a cut
-- after layer".
local function floats(who, whose, list)
  if type(list) ~= "table" then
    errors.raise("%s: the costs are %s, expected a list of numbers", who, errors.show(list))
  end
  local copy = {}
  for i = 1, #list do
    if not is_cost(list[i]) then
      errors.raise("%s: the cost of %s %d is %s, expected a finite number >= 0", who, whose, i,
        errors.show(list[i]))
    end
    copy[i] = list[i] + 0.0
  end
  return copy
end

local function check_layer(who, what, layer, layers)
  local number = math.type(layer) and math.tointeger(layer)
  if number and number >= 1 and number <= layers then return number end
  errors.raise("%s: %s layer %s, expected one of 1..%d", who, what, errors.show(layer), layers)
end

local function check_stages(who, stages, layers)
  local number = math.type(stages) and math.tointeger(stages)
  if not number or number < 1 then
    errors.raise("%s: the number of stages is %s, expected an integer >= 1", who,
      errors.show(stages))
  end
  if number > layers then
    errors.raise("%s: %d stages and %d layers, expected at least a layer per stage", who, number,
      layers)
  end
  return number
end

-- ---- where stages may end -----------------------------------------------------------------------

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

-- ---- without costs of cuts ----------------------------------------------------------------------

-- Whether a sum stays under a maximum: at most that, or less where `strict`.
local function fits(sum, most, strict)
  return sum < most or not strict and sum == most
end

-- The ends of the stages if each takes as many layers as its window and the maximum allow; nil if
-- some stage cannot reach its window.
local function probe(task, most, strict)
  local costs, windows, ends, at = task.costs, task.windows, {}, 0
  for k = 1, task.stages do
    local sum, i, limit = 0, at, windows.last[k]
    while i < limit and fits(sum + costs[i + 1], most, strict) do
      i = i + 1
      sum = sum + costs[i]
    end
    i = windows.before[i]
    if i < windows.first[k] or i <= at then return nil end
    ends[k], at = i, i
  end
  return ends
end

-- ---- with costs of cuts -------------------------------------------------------------------------

-- How far stages can reach under a maximum if cuts cost nothing: the earliest and latest ends.
-- Cuts that cost something only narrow them, and near the optimum they are narrow.
local function reach(task, most)
  local costs, windows = task.costs, task.windows
  local latest = probe(task, most, false)
  if not latest then return nil end
  local earliest, at = {}, task.layers
  for k = task.stages, 1, -1 do
    earliest[k] = at
    local sum, i = 0, at
    while i > 0 and fits(sum + costs[i], most, false) do
      sum = sum + costs[i]
      i = i - 1
    end
    at = math.max(i, k > 1 and windows.first[k - 1] or 0)
    at = windows.behind[at]
  end
  return earliest, latest
end

-- For each stage k but the last, the ends from which the stages behind it can be completed, and
-- for the last the end itself. A stage from i to j costs sums[j] + cut[j] - (sums[i] - cut[i]), so
-- the cheapest completion of i is the smallest sums[j] + cut[j] behind it.
local function completions(task, most, strict)
  local earliest, latest = reach(task, most)
  if not latest then return nil end
  local sums, cut, uncut = task.sums, task.cut, task.uncut
  local possible = { [task.stages] = { [task.layers] = true } }
  for k = task.stages - 1, 1, -1 do
    local behind, here, least, any = possible[k + 1], {}, math.huge, false
    local j = latest[k + 1]
    for i = latest[k], earliest[k], -1 do
      while j > i do
        if behind[j] then least = math.min(least, sums[j] + cut[j]) end
        j = j - 1
      end
      if not uncut[i] and fits(least - (sums[i] - cut[i]), most, strict) then
        here[i], any = true, true
      end
    end
    if not any then return nil end
    possible[k] = here
  end
  return possible, latest
end

-- The ends of the stages under a maximum, each the latest possible; nil if there are none.
local function probe_with_cuts(task, most, strict)
  local possible, latest = completions(task, most, strict)
  if not possible then return nil end
  local sums, cut, ends, at = task.sums, task.cut, {}, 0
  for k = 1, task.stages do
    local from, j = sums[at] - cut[at], latest[k]
    while j > at and not (possible[k][j] and fits(sums[j] + cut[j] - from, most, strict)) do
      j = j - 1
    end
    if j <= at then return nil end
    ends[k], at = j, j
  end
  return ends
end

-- ---- the search ---------------------------------------------------------------------------------

-- The cost of the most expensive stage, added up as the passes do.
local function largest_of(task, ends)
  local costs, sums, cut, most, at = task.costs, task.sums, task.cut, 0.0, 0
  for _, stop in ipairs(ends) do
    local sum = 0.0
    if cut then
      sum = sums[stop] + cut[stop] - (sums[at] - cut[at])
    else
      for i = at + 1, stop do sum = sum + costs[i] end
    end
    most, at = math.max(most, sum), stop
  end
  return most
end

-- The cheapest cut. `low` is less than or equal to its cost; each round halves the rest, and the
-- last asks for anything cheaper than the best.
local function search(task, pass, low, best)
  local cost = largest_of(task, best)
  while low < cost do
    local middle = low + (cost - low) / 2
    local strict = middle <= low or middle >= cost or cost - low <= 1e-9 * cost
    local found = pass(task, strict and cost or middle, strict)
    local cheaper = found and largest_of(task, found)
    if found and cheaper < cost then
      best, cost = found, cheaper
    elseif strict then
      break
    else
      low = middle
    end
  end
  return pass(task, cost, false) or best, cost
end

local function sum_of(list)
  local sum = 0.0
  for _, v in ipairs(list) do sum = sum + v end
  return sum
end

-- Costs before each layer, and the cost of a cut at each place: none at the two ends.
local function add_cuts(task, comm)
  task.sums, task.cut = { [0] = 0.0 }, { [0] = 0.0 }
  for i = 1, task.layers do
    task.sums[i] = task.sums[i - 1] + task.costs[i]
    task.cut[i] = comm[i] or 0.0
  end
end

local function counts_of(ends)
  local counts, at = {}, 0
  for k, stop in ipairs(ends) do counts[k], at = stop - at, stop end
  return counts
end

---@class gpipe.PartitionOptions
---@field comm? number[] the cost of a cut after each layer but the last; both stages beside the cut
--- bear it
---@field pinned? table<integer, integer> layer (from 1) -> the stage (from 0) that has to have it
---@field together? integer[][] groups of layers that one stage has to have, with all between them

--- Cut layers into contiguous stages so that the most expensive stage is as cheap as possible.
---
--- Ties: from the first stage on, each takes as many layers as the result allows. With costs of
--- cuts, sums are differences of running sums: exact for integers, to rounding for fractions.
--- Errors: more stages than layers; costs that are negative, infinite or NaN; conditions that
--- contradict each other.
--- Cost: O(layers) for each of some fifty guesses; with costs of cuts up to O(layers x stages).
--- ```lua
--- local partition = require "gpipe.pipeline.plan.partition"
--- local balance, largest = partition.minimax("mine", {10, 1, 1, 1, 1, 6}, 3)
--- assert(table.concat(balance, ",") == "1,4,1" and largest == 10)
--- ```
---@param who string for errors
---@param costs number[] one per layer
---@param stages integer
---@param opts? gpipe.PartitionOptions
---@return integer[] balance layers per stage
---@return number largest the cost of the most expensive stage
function partition.minimax(who, costs, stages, opts)
  opts = opts or {}
  costs = floats(who, "layer", costs)
  local layers = #costs
  stages = check_stages(who, stages, layers)
  local comm = opts.comm and floats(who, "a cut after layer", opts.comm)
  if comm and #comm ~= layers - 1 then
    errors.raise("%s: there are %d costs of cuts, expected %d: one between two layers each", who,
      #comm, layers - 1)
  end
  local uncut = uncut_of(who, opts.together, layers)
  local pins = pins_of(who, opts.pinned, stages, layers)
  local task = { costs = costs, stages = stages, layers = layers, uncut = uncut,
    windows = windows_of(who, stages, layers, pins, uncut) }
  local low = sum_of(costs) / stages * (1 - 1e-9) -- no cut is better than an even one
  for _, cost in ipairs(costs) do low = math.max(low, cost) end
  local ends, largest = search(task, probe, low, assert(probe(task, math.huge, false)))
  if comm and stages > 1 then
    add_cuts(task, comm)
    low = largest * (1 - 1e-9) -- cuts that cost something are never cheaper
    ends, largest = search(task, probe_with_cuts, low, ends)
  end
  return counts_of(ends), largest
end

return partition
