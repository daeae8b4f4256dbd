-- lua/gpipe/run_reader/table.lua - runs as a table of text: one line a run.
--
-- In a narrow terminal the less important columns are dropped first, then long names are cut; in a
-- pipe nothing is left out. Names come from outside: control characters in them are replaced.

local columns = require "gpipe.draw.columns"
local terminal = require "gpipe.draw.terminal"
local progress = require "gpipe.progress"
local screen = require "gpipe.screen"

local runs_table = {}

local UNBOUNDED = 10000 -- characters of a line that goes to no terminal

-- ---- words -------------------------------------------------------------------------------------

local AGES = { { 86400, "d" }, { 3600, "h" }, { 60, "min" } }

--- How long ago, in one unit: "3 min ago", "12 d ago". A time in the future (clocks differ) is
--- "now".
---@param time number? seconds since 1970
---@param now number
---@return string
function runs_table.age(time, now)
  if not time then return "" end
  local seconds = now - time
  for _, unit in ipairs(AGES) do
    if seconds >= unit[1] then return ("%d %s ago"):format(seconds // unit[1], unit[2]) end
  end
  return seconds < 5 and "now" or ("%d s ago"):format(seconds // 1)
end

local function step_text(run)
  if not run.step then return "" end
  return run.steps and ("%d/%d"):format(run.step, run.steps) or ("%d"):format(run.step)
end

local function best_text(run)
  local best = run.best
  return best and ("%s %s"):format(terminal.clean(best.name), columns.number(best.value)) or ""
end

local function rate_text(run)
  local unit = terminal.clean(run.unit or "/s")
  return run.rate and ("%s %s"):format(progress.short(run.rate), unit) or ""
end

-- In the order of the table. Where there is no room, the column with drop = 1 is dropped first, and
-- so on; columns without `drop` stay.
local COLUMNS = {
  { title = "name", text = function(run) return terminal.clean(run.name) end },
  { title = "state", text = function(run) return run.state end },
  { title = "step", drop = 5, text = step_text },
  { title = "loss", drop = 4, text = function(run)
    return run.loss and columns.number(run.loss) or ""
  end },
  { title = "best", drop = 2, text = best_text },
  { title = "rate", drop = 1, text = rate_text },
  { title = "when", drop = 3, text = function(run, now)
    return runs_table.age(run.updated, now)
  end },
}

-- ---- fitting -----------------------------------------------------------------------------------

local LEAST_NAME = 8 -- characters of names that are kept before columns go

local function rows_of(runs, chosen, now)
  local rows = { {} }
  for i, column in ipairs(chosen) do rows[1][i] = column.title end
  for r, run in ipairs(runs) do
    rows[r + 1] = {}
    for i, column in ipairs(chosen) do rows[r + 1][i] = column.text(run, now) end
  end
  return rows
end

local function width_of(rows)
  local sum = 0
  for i = 1, #rows[1] do
    local most = 0
    for _, row in ipairs(rows) do most = math.max(most, utf8.len(row[i])) end
    sum = sum + (i == 1 and math.min(most, LEAST_NAME) or most + 2)
  end
  return sum
end

-- All columns except the first `dropped` ones to be dropped.
local function choose(dropped)
  local chosen = {}
  for _, column in ipairs(COLUMNS) do
    if not (column.drop and column.drop <= dropped) then chosen[#chosen + 1] = column end
  end
  return chosen
end

-- ---- colours -----------------------------------------------------------------------------------

local COLOURS = { running = "\27[32m", finished = "\27[36m", stopped = "\27[33m",
  killed = "\27[31m", failed = "\27[31m" }

-- Colour the states. They end in the same column of all lines, below the header's "state".
local function paint(text)
  local stop = select(2, text:find "^name%s+state")
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    local byte = stop and utf8.offset(line, stop + 1)
    local word = byte and line:sub(1, byte - 1):match "%a+$"
    if word and COLOURS[word] then
      line = line:sub(1, byte - 1 - #word) .. COLOURS[word] .. word .. "\27[0m" .. line:sub(byte)
    end
    lines[#lines + 1] = line
  end
  return table.concat(lines, "\n")
end

--- The table of a list of runs.
---@param runs gpipe.RunFolder[]
---@param opts? {width?: integer, colour?: boolean, now?: number} as wide as the terminal by default
---@return string
function runs_table.text(runs, opts)
  opts = opts or {}
  if #runs == 0 then return "no runs" end
  local width = opts.width or screen.is_bounded() and screen.columns() or UNBOUNDED
  local now, dropped = opts.now or os.time(), 0
  local rows = rows_of(runs, COLUMNS, now)
  while width_of(rows) > width and dropped < #COLUMNS do
    dropped = dropped + 1
    rows = rows_of(runs, choose(dropped), now)
  end
  local text = columns.text(rows, "", width)
  return opts.colour and paint(text) or text
end

-- ---- groups ------------------------------------------------------------------------------------

local function numbers_of(runs, value_of)
  local list = {}
  for _, run in ipairs(runs) do list[#list + 1] = value_of(run) end
  return list
end

-- "0.2048 (0.1558 to 0.2673)": the mean, and the range where values differ.
local function spread_text(list)
  if #list == 0 then return "" end
  local words = columns.number(columns.mean(list))
  table.sort(list)
  if list[1] == list[#list] then return words end
  return ("%s (%s to %s)"):format(words, columns.number(list[1]), columns.number(list[#list]))
end

-- The best values of a group; "" where they are values of different names.
local function group_best(runs)
  local name
  for _, run in ipairs(runs) do
    if run.best and name and run.best.name ~= name then return "" end
    name = name or run.best and run.best.name
  end
  local words = spread_text(numbers_of(runs, function(run) return run.best and run.best.value end))
  return words == "" and "" or terminal.clean(name) .. " " .. words
end

local function states_text(runs)
  local count, list = {}, {}
  for _, run in ipairs(runs) do count[run.state] = (count[run.state] or 0) + 1 end
  for state, n in pairs(count) do list[#list + 1] = ("%d %s"):format(n, state) end
  table.sort(list)
  return table.concat(list, ", ")
end

--- The table of groups of runs: how many runs they have, and the means of their last values.
---@param list gpipe.RunGroup[]
---@param opts? {width?: integer}
---@return string
function runs_table.groups(list, opts)
  local rows = { { "settings", "runs", "loss", "best" } }
  for i, group in ipairs(list) do
    rows[i + 1] = { terminal.clean(group.label), states_text(group.runs),
      spread_text(numbers_of(group.runs, function(run) return run.loss end)),
      group_best(group.runs) }
  end
  local width = opts and opts.width or screen.is_bounded() and screen.columns() or UNBOUNDED
  return columns.text(rows, "", width)
end

return runs_table
