-- lua/gpipe/plan/partition.lua - the exact minimax cut under memory: contiguous stages, each within
-- its device's memory, so that the most expensive stage is as cheap as possible.
--
-- A dynamic programme over the ends of stages: best[s][j] is the smallest maximum of stages 1 .. s
-- with the first j layers. What a stage takes depends on which it is, because in-flight
-- micro-batches and devices do. The first layer of a stage is moved back from its last, and that
-- ends as soon as the seconds, or the bytes, that grow with every further layer are too many.
-- Source: PipeDream's and Alpa's inner programmes, with the memory of verified lifetimes.
--
-- Where no costs depend on the stage and there are no caps, pipeline/plan/partition is faster.

local windows = require "gpipe.pipeline.plan.partition.windows"

local partition = {}

---@class gpipe.PartitionTask
---@field who string
---@field layers integer
---@field stages integer
---@field together? integer[][]
---@field pinned? table<integer, integer>
---@field least fun(i: integer, j: integer, stage: integer): number seconds of layers i .. j at least;
--- they grow as i falls
---@field upper? number the cost of a cut that is known
---@field cost fun(i: integer, j: integer, stage: integer): number?, boolean? seconds; or nil where
--- they do not fit, and whether they would not with further layers either

-- The best stage that ends at layer j, after the stages before it, if it costs `limit` at most.
local function best_stage(task, stage, j, earlier, lowest, limit)
  local best, first = limit, nil
  for i = j, lowest, -1 do
    local least = task.least(i, j, stage)
    if least > best or first and least == best then break end
    local before = earlier[i - 1]
    if before and (before < best or not first) then
      local seconds, over = task.cost(i, j, stage)
      if over then break end
      local most = seconds and math.max(before, seconds)
      if most and (most < best or not first and most == best) then best, first = most, i end
    end
  end
  return first and best, first
end

-- The ends of all stages, from the first layers that each one's best has.
local function ends_of(task, firsts)
  local ends, j = {}, task.layers
  for stage = task.stages, 1, -1 do
    ends[stage] = j
    j = firsts[stage][j] - 1
  end
  return ends
end

-- Fill in the best of one stage for every end that it may have. `reach` says between which ends of
-- the stage before this one there are cuts: layers too far behind them cost more than the limit.
local function fill(task, window, stage, earlier, reach, limit)
  local now, firsts, lowest, highest = {}, {}, nil, nil
  for j = math.max(window.first[stage], reach.lowest + 1), window.last[stage] do
    if j > reach.highest and task.least(reach.highest + 1, j, stage) > limit then break end
    if not window.uncut[j] then
      now[j], firsts[j] = best_stage(task, stage, j, earlier, reach.lowest + 1, limit)
      if now[j] then lowest, highest = lowest or j, j end
    end
  end
  reach.lowest, reach.highest = lowest, highest
  return now, firsts
end

-- The programme for cuts that cost `limit` at most: the ends of the stages and the cost, or nil.
local function within(task, window, limit)
  local earlier, firsts, reach = { [0] = 0 }, {}, { lowest = 0, highest = 0 }
  for stage = 1, task.stages do
    earlier, firsts[stage] = fill(task, window, stage, earlier, reach, limit)
    if not reach.lowest then return nil end
  end
  if not earlier[task.layers] then return nil end
  return ends_of(task, firsts), earlier[task.layers]
end

-- The least that layers i .. j take in any stage; stages are alike but for where they lie.
local function least_of(task, i, j)
  local least = math.huge
  for stage = 1, task.stages do least = math.min(least, task.least(i, j, stage)) end
  return least
end

--- What no cut can be cheaper than: an even share of the work on stages that are all like the one
--- where it takes least, and the largest layer.
---@param task gpipe.PartitionTask
---@return number
function partition.floor(task)
  local floor = least_of(task, 1, task.layers) / task.stages
  for i = 1, task.layers do
    if task.least(i, i, 1) > floor then floor = math.max(floor, least_of(task, i, i)) end
  end
  return floor
end

local STEP, PASSES = 1.25, 3 -- the limit grows by this factor, so often, and then there is none

--- The number of layers of each stage, and what the most expensive one costs; nil where no cut
--- fits. Limits near the least possible cost are tried first: there few stages are possible, so
--- most of the programme is never looked at. The first limit with a cut has the best one.
--- Errors: more stages than layers; conditions that contradict each other.
--- Cost: O(stages x layers x layers of a stage) calls of `cost`, for a few limits.
---@param task gpipe.PartitionTask
---@return integer[]? balance
---@return number? largest
function partition.solve(task)
  local window = windows.of(task.who, task.stages, task.layers, task)
  local limit, ends, largest = task.upper or partition.floor(task) * 1.01, nil, nil
  for _ = 1, PASSES do
    ends, largest = within(task, window, limit)
    if ends then break end
    limit = limit * STEP
  end
  if not ends then ends, largest = within(task, window, math.huge) end
  if not ends then return nil end
  local balance, at = {}, 0
  for stage, stop in ipairs(ends) do
    balance[stage], at = stop - at, stop
  end
  return balance, largest
end

return partition
