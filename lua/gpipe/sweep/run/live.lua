-- lua/gpipe/sweep/run/live.lua - show on standard error how a sweep goes.
--
-- A script gets a line for each trial that ended, between the lines that trials print. At the
-- prompt, and where trials run in child processes, a terminal shows a table of the best trials that
-- is redrawn in place.

local core = require "gpipe.core"
local facts = require "gpipe.sweep.report.facts"
local progress = require "gpipe.progress"
local screen = require "gpipe.screen"
local text = require "gpipe.sweep.text"

local live = {}

local PAUSE = 0.2 -- seconds between two drawings
local BEST = 5    -- trials of the table

---@class gpipe.SweepLive
---@field sweep gpipe.Sweep
---@field quiet boolean
---@field table boolean a table is redrawn in place
---@field lines integer of the table drawn last
local Live = {}
Live.__index = Live

-- ---- lines -------------------------------------------------------------------------------------

-- How a trial ended; of an error the first line, the file has all of it.
local function outcome(row, objective)
  if row.error then return row.state .. ": " .. row.error:match "[^\n]*" end
  if not row.value then return row.state end
  return ("%s, %s %s"):format(row.state, objective, text.short(row.value))
end

local function say(self, row)
  io.stderr:write(("trial %d/%d %s (best %s) %s\n"):format(row.number, self.sweep.most,
    outcome(row, self.sweep.objective), self.best and text.short(self.best.value) or "none yet",
    text.params(row.params)))
end

-- ---- the table ---------------------------------------------------------------------------------

local function status_line(self)
  local spent, left = core.seconds() - self.started, self.sweep.most - self.ended
  local eta = self.since > 0 and left > 0
    and (", %s left"):format(progress.clock(spent / self.since * left)) or ""
  return ("%s: %s, %s spent%s"):format(self.sweep.name, facts.counts(self.sweep, self.sweep.trials),
    progress.clock(spent), eta)
end

-- Keep as many lines as fit the window, each cut to its width: a line that wraps could not be
-- redrawn in place.
local function fitting(all)
  local width, lines = screen.columns(io.stderr) - 1, {}
  for line in all:gmatch "[^\n]+" do
    if #lines < screen.rows() - 2 then
      lines[#lines + 1] = line:sub(1, (utf8.offset(line, width + 1) or #line + 1) - 1)
    end
  end
  return lines
end

local function draw(self)
  local now = core.seconds()
  if now - self.drawn < PAUSE then return end
  self.drawn = now
  local table_text = require "gpipe.sweep.report.table"
  local lines = fitting(status_line(self) .. "\n" .. table_text.best(self.sweep, BEST))
  local up = self.lines > 0 and ("\27[%dA\r\27[J"):format(self.lines) or ""
  io.stderr:write(up, table.concat(lines, "\n"), "\n")
  io.stderr:flush()
  self.lines = #lines
end

-- ---- the view ----------------------------------------------------------------------------------

--- Show a trial that ended; without one, redraw while other processes are waited for.
---@param row table?
function Live:see(row)
  if self.quiet then return end
  local sweep = self.sweep
  if row and row.state ~= "waiting" then
    self.since, self.ended = self.since + 1, self.ended + 1
    local better = row.state == "complete"
      and (not self.best or sweep.sign * row.value < sweep.sign * self.best.value)
    if better then self.best = row end
    if not self.table then say(self, row) end
  end
  if self.table then draw(self) end
end

function Live:__close()
  if not self.table or self.quiet then return end
  self.drawn = 0
  draw(self)
end

-- Whether a script runs; otherwise this is the prompt, or the text of -e.
local function has_script() return type(arg) == "table" and arg[-1] ~= nil end

--- Make the view of a sweep.
---@param sweep gpipe.Sweep
---@return gpipe.SweepLive
function live.new(sweep)
  local ended = 0
  for _, trial in ipairs(sweep.trials) do
    if trial.seconds then ended = ended + 1 end
  end
  local terminal = os.getenv "TERM" ~= "dumb" and core.is_terminal(io.stderr)
  return setmetatable({
    sweep = sweep, quiet = sweep.options.quiet, best = sweep.best, started = core.seconds(),
    since = 0, ended = ended, drawn = -PAUSE, lines = 0,
    table = terminal and (not has_script() or sweep.options.parallel > 1),
  }, Live)
end

return live
