-- lua/gpipe/pipeline/plan/partition/probe.lua - whether a cut exists whose stages all stay under a
-- maximum, if cuts cost nothing.
--
-- The pass is greedy: a stage that takes more layers leaves fewer to those behind it, and the sum
-- of a stage, from left to right, never falls when a layer is added, in floating point too.
-- Source: "probe" of Pinar and Aykanat, Fast optimal load balancing algorithms for 1D partitioning
-- (2004), section 2.

local probe = {}

--- Whether a sum stays under a maximum: at most that, or less where `strict`.
function probe.fits(sum, most, strict)
  return sum < most or not strict and sum == most
end

--- The ends of the stages if each takes as many layers as its window and the maximum allow; nil if
-- some stage cannot reach its window.
function probe.plain(task, most, strict)
  local costs, windows, ends, at = task.costs, task.windows, {}, 0
  for k = 1, task.stages do
    local sum, i, limit = 0, at, windows.last[k]
    while i < limit and probe.fits(sum + costs[i + 1], most, strict) do
      i = i + 1
      sum = sum + costs[i]
    end
    i = windows.before[i]
    if i < windows.first[k] or i <= at then return nil end
    ends[k], at = i, i
  end
  return ends
end

return probe
