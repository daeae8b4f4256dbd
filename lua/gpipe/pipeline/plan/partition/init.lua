-- lua/gpipe/pipeline/plan/partition/init.lua - cuts a list of layers with costs into stages so that
-- the most expensive stage is as cheap as possible (minimax).
--
-- Stages are contiguous and have at least one layer each. The result is exact: no other cut has a
-- smaller largest stage. The method is a parametric search: a maximum is guessed, a pass over the
-- layers says whether a cut with that maximum exists, and the search ends when no cut is cheaper
-- than the best one found.
--
-- Ties: from the first stage on, each takes as many layers as the smallest maximum allows.

local counted = require "gpipe.counted"
local cuts = require "gpipe.pipeline.plan.partition.cuts"
local errors = require "gpipe.errors"
local probe = require "gpipe.pipeline.plan.partition.probe"
local windows = require "gpipe.pipeline.plan.partition.windows"

local partition = {}

local NEAR = 1e-9 -- relative: closer than this the search asks for anything cheaper at all

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

local function check_stages(who, stages, layers)
  local number = math.type(stages) and math.tointeger(stages)
  if not number or number < 1 then
    errors.raise("%s: the number of stages is %s, expected an integer >= 1", who,
      errors.show(stages))
  end
  if number > layers then
    errors.raise("%s: %s and %s, expected at least a layer per stage", who,
      counted(number, "stage"), counted(layers, "layer"))
  end
  return number
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
    local strict = middle <= low or middle >= cost or cost - low <= NEAR * cost
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

-- The cheapest cut where cuts cost something, which are never cheaper than those that cost nothing.
local function search_with_cuts(task, ends, largest)
  local low = largest * (1 - NEAR)
  if task.stages * task.stages > task.layers then
    local high
    low, high = cuts.narrow(task, low, largest_of(task, ends), NEAR)
    ends = cuts.probe(task, high, false) or ends
  end
  return search(task, cuts.probe, low, ends)
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
--- Cost: O(layers) for each of some fifty guesses; with costs of cuts up to O(layers x stages) for
--- a few. 10,000 layers over 1,024 stages: 0.05 s; with costs of cuts 1 to 5 s.
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
  local task = { costs = costs, stages = stages, layers = layers,
    windows = windows.of(who, stages, layers, opts) }
  local low = sum_of(costs) / stages * (1 - NEAR) -- no cut is better than an even one
  for _, cost in ipairs(costs) do low = math.max(low, cost) end
  local ends, largest = search(task, probe.plain, low, assert(probe.plain(task, math.huge, false)))
  if comm and stages > 1 then
    cuts.add(task, comm)
    ends, largest = search_with_cuts(task, ends, largest)
  end
  return counts_of(ends), largest
end

return partition
