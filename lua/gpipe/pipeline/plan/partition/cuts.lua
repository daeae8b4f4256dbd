-- lua/gpipe/pipeline/plan/partition/cuts.lua - whether a cut exists whose stages all stay under a
-- maximum, if cuts cost something themselves.
--
-- A stage with more layers may then be cheaper, so the pass is no longer greedy: it walks over the
-- ends of each stage from which the stages behind it can be completed. The sum of a stage is a
-- difference of running sums.

local probe = require "gpipe.pipeline.plan.partition.probe"

local cuts = {}

local fits = probe.fits

--- Set the costs before each layer, and the cost of a cut at each place: none at the two ends.
function cuts.add(task, comm)
  task.sums, task.cut = { [0] = 0.0 }, { [0] = 0.0 }
  for i = 1, task.layers do
    task.sums[i] = task.sums[i - 1] + task.costs[i]
    task.cut[i] = comm[i] or 0.0
  end
end

-- How far stages can reach under a maximum if cuts cost nothing: the earliest and latest ends.
-- Cuts that cost something only narrow them, and near the optimum they are narrow.
local function reach(task, most)
  local costs, windows = task.costs, task.windows
  local latest = probe.plain(task, most, false)
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
  local sums, cut, uncut = task.sums, task.cut, task.windows.uncut
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

--- The ends of the stages under a maximum, each the latest possible; nil if there are none.
function cuts.probe(task, most, strict)
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

-- Whether the fewest and the most stages that a maximum allows leave room for the number wanted.
-- If not, no cut has that maximum; if so, one almost always does. Pinned layers are left out here.
local function could(task, most)
  local sums, cut, uncut = task.sums, task.cut, task.windows.uncut
  local fewest, greatest = { [0] = 0 }, { [0] = 0 }
  for j = 1, task.layers do
    local i, few, many = uncut[j] and -1 or j - 1, math.huge, -1
    while i >= 0 and sums[j] - sums[i] <= most do
      if greatest[i] and sums[j] + cut[j] - (sums[i] - cut[i]) <= most then
        few, many = math.min(few, fewest[i] + 1), math.max(many, greatest[i] + 1)
      end
      i = i - 1
    end
    if many > 0 then fewest[j], greatest[j] = few, many end
  end
  local last = task.layers
  return greatest[last] ~= nil and fewest[last] <= task.stages and task.stages <= greatest[last]
end

--- Bring two bounds together, of which the upper one could be and the lower one could not: for many
--- stages this is a hundred times cheaper than a pass.
---@param near number how near, relative to the upper one
function cuts.narrow(task, low, high, near)
  while high - low > near * high do
    local middle = low + (high - low) / 2
    if middle <= low or middle >= high then break end
    if could(task, middle) then high = middle else low = middle end
  end
  return low, high
end

return cuts
