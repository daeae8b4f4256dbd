-- lua/gpipe/sweep/report/facts.lua - the facts in reports of a sweep: which trials are best, how
-- many ended in which state, which parameters varied and how much each of them mattered.

local text = require "gpipe.sweep.text"

local facts = {}

--- Complete trials with a finite value, the best first.
---@param sweep gpipe.Sweep
---@param trials gpipe.SweepTrial[]
---@return gpipe.SweepTrial[]
function facts.ranked(sweep, trials)
  local list = {}
  for _, trial in ipairs(trials) do
    if trial.state == "complete" and math.abs(trial.value) < math.huge then
      list[#list + 1] = trial
    end
  end
  table.sort(list, function(a, b)
    local x, y = sweep.sign * a.value, sweep.sign * b.value
    return x < y or x == y and a.number < b.number
  end)
  return list
end

local function further(a, b)
  if a.step ~= b.step then return (a.step or 0) > (b.step or 0) end
end

--- Complete trials from the best on, then those that a rule stopped, ordered by how far they got,
--- then by their values.
---@param sweep gpipe.Sweep
---@param trials gpipe.SweepTrial[]
---@return gpipe.SweepTrial[]
function facts.settled(sweep, trials)
  local list, stopped = facts.ranked(sweep, trials), {}
  for _, trial in ipairs(trials) do
    if trial.state == "stopped" and trial.value and math.abs(trial.value) < math.huge then
      stopped[#stopped + 1] = trial
    end
  end
  table.sort(stopped, function(a, b)
    local first = further(a, b)
    if first ~= nil then return first end
    local x, y = sweep.sign * a.value, sweep.sign * b.value
    return x < y or x == y and a.number < b.number
  end)
  return table.move(stopped, 1, #stopped, #list + 1, list)
end

--- Names of the parameters that differ between trials.
---@param trials gpipe.SweepTrial[]
---@return string[]
function facts.varying(trials)
  local first, varies = {}, {}
  for _, trial in ipairs(trials) do
    for name, value in pairs(trial.params) do
      if first[name] == nil then first[name] = { value, 0 } end
      if first[name][1] ~= value then varies[name] = true end
      first[name][2] = first[name][2] + 1
    end
  end
  for name, seen in pairs(first) do
    if seen[2] < #trials then varies[name] = true end -- some trials do not have it
  end
  return text.names(varies)
end

local STATES = { "complete", "stopped", "failed", "timeout", "killed", "interrupted", "waiting",
  "running" }

--- "48 complete, 2 failed of 50 trials"
---@param sweep gpipe.Sweep
---@param trials gpipe.SweepTrial[]
---@return string
function facts.counts(sweep, trials)
  local counts, parts = {}, {}
  for _, trial in ipairs(trials) do counts[trial.state] = (counts[trial.state] or 0) + 1 end
  for _, state in ipairs(STATES) do
    if counts[state] then parts[#parts + 1] = ("%d %s"):format(counts[state], state) end
  end
  if #parts == 0 then parts[1] = "none run" end
  return ("%s of %d trials"):format(table.concat(parts, ", "), math.max(sweep.most, #trials))
end

-- ---- importance --------------------------------------------------------------------------------

facts.METHOD = "share of the variance of ranks between groups of values (Kelley's epsilon squared)"

local LEAST, MOST_GROUPS = 10, 8 -- trials, and groups of a range

-- The group of every trial: one for each value if there are few, else equal parts of the range.
local function groups_of(ranked, name)
  local values, seen, kinds = {}, {}, 0
  for i, trial in ipairs(ranked) do
    local value = trial.params[name]
    if value ~= nil and not seen[value] then seen[value], kinds = true, kinds + 1 end
    if type(value) == "number" then values[#values + 1] = { value, i } end
  end
  local groups, count = {}, math.min(MOST_GROUPS, math.floor(math.sqrt(#ranked)))
  for i, trial in ipairs(ranked) do groups[i] = tostring(trial.params[name]) end
  if kinds <= count then return groups end
  table.sort(values, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
  for k, entry in ipairs(values) do groups[entry[2]] = (k - 1) * count // #values end
  return groups
end

-- Epsilon squared of ranks 1 .. n in these groups: eta squared, corrected for chance.
local function epsilon_squared(groups)
  local n, sums, counts, kinds = #groups, {}, {}, 0
  for rank, group in ipairs(groups) do
    if not sums[group] then sums[group], counts[group], kinds = 0, 0, kinds + 1 end
    sums[group], counts[group] = sums[group] + rank, counts[group] + 1
  end
  if kinds < 2 or kinds >= n then return 0 end
  local mean, between = (n + 1) / 2, 0
  for group, sum in pairs(sums) do
    between = between + counts[group] * (sum / counts[group] - mean) ^ 2
  end
  local total = n * (n * n - 1) / 12
  local within = (total - between) / (n - kinds)
  return math.max(0, (between - (kinds - 1) * within) / total)
end

--- How much of the order of the trials each parameter explains alone, 0 to 1, the largest first;
--- nil with fewer than ten trials.
--- Source: T. Kelley, An unbiased correlation ratio measure, PNAS 21, 1935.
---@param ranked gpipe.SweepTrial[] as ranked or settled returns them
---@param names string[]
---@return {name: string, share: number}[]?
function facts.importance(ranked, names)
  if #ranked < LEAST then return nil end
  local list = {}
  for i, name in ipairs(names) do
    list[i] = { name = name, share = epsilon_squared(groups_of(ranked, name)) }
  end
  table.sort(list, function(a, b)
    return a.share > b.share or a.share == b.share and a.name < b.name
  end)
  return list
end

return facts
