-- lua/gpipe/sweep/report/table.lua - a sweep as text: its goal, its best trials, how the others
-- ended, which parameters mattered.

local columns = require "gpipe.draw.columns"
local facts = require "gpipe.sweep.report.facts"
local terminal = require "gpipe.draw.terminal"
local text = require "gpipe.sweep.text"

local sweep_table = {}

local BEST = 10 -- trials that are shown

local function seconds_text(seconds)
  return seconds and require("gpipe.progress").clock(seconds) or ""
end

local function rows_of(sweep, ranked, names, count)
  local rows = { { "trial", sweep.objective } }
  for _, name in ipairs(names) do table.insert(rows[1], terminal.clean(name)) end
  table.insert(rows[1], "time")
  for i = 1, math.min(count, #ranked) do
    local trial = ranked[i]
    local row = { tostring(trial.number), text.short(trial.value) }
    for _, name in ipairs(names) do
      local value = trial.params[name]
      row[#row + 1] = value == nil and "-" or terminal.clean(text.short(value))
    end
    row[#row + 1] = seconds_text(trial.seconds)
    rows[#rows + 1] = row
  end
  return rows
end

local function importance_line(ranked, names)
  local parts = {}
  for i, entry in ipairs(facts.importance(ranked, names) or {}) do
    parts[i] = ("%s %.2f"):format(terminal.clean(entry.name), entry.share)
  end
  return #parts > 0 and ("importance (%s): %s"):format(facts.METHOD, table.concat(parts, ", "))
    or nil
end

-- The first trial of each kind of failure, at most three.
local function failures(trials)
  local lines, seen = {}, {}
  for _, trial in ipairs(trials) do
    local reason = trial.error and trial.error:match "[^\n]*"
    if reason and not seen[reason] and #lines < 3 then
      seen[reason] = true
      lines[#lines + 1] = ("trial %d %s: %s"):format(trial.number, trial.state,
        terminal.clean(reason))
    end
  end
  return lines
end

--- The table of the best trials alone.
---@param sweep gpipe.Sweep
---@param count integer
---@return string
function sweep_table.best(sweep, count)
  local trials = sweep.trials
  local ranked = facts.ranked(sweep, trials)
  if #ranked == 0 then return "" end
  return columns.text(rows_of(sweep, ranked, facts.varying(trials), count))
end

--- A sweep as text.
---@param sweep gpipe.Sweep
---@return string
function sweep_table.text(sweep)
  local trials = sweep.trials
  local ranked, names = facts.ranked(sweep, trials), facts.varying(trials)
  local lines = {
    ("%s (%s): %s, %s"):format(sweep.name, sweep.path, sweep:goal(), sweep:how()),
    facts.counts(sweep, trials),
  }
  if #ranked > 0 then
    lines[#lines + 1] = columns.text(rows_of(sweep, ranked, names, BEST))
  end
  lines[#lines + 1] = importance_line(facts.settled(sweep, trials), names)
  table.move(failures(trials), 1, 3, #lines + 1, lines)
  return require("gpipe.screen").fold(table.concat(lines, "\n"))
end

return sweep_table
