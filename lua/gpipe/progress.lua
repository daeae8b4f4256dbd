-- gpipe/progress.lua - a line that shows the progress of a training run.
--
-- On a terminal the line is rewritten in place and fitted to its width: the least important parts
-- are left out first. Elsewhere (a log file, a pipe, TERM=dumb) a plain line is written now and
-- then, without control characters. There are no colours. The line goes to standard error, because
-- results go to standard output.

local core = require "gpipe.core"
local options = require "gpipe.options"
local screen = require "gpipe.screen"
local sizes = require "gpipe.sizes"
local smooth = require "gpipe.train.smooth"

local SHARES = 20     -- plain lines in a whole run
local LONGEST = 60    -- seconds between two plain lines
local UNKNOWN = 10    -- the same if the number of steps is not known
local REDRAWN = 0.1   -- seconds between two changes of the line on a terminal
local MEMORY = 0.98   -- share of the past in the smoothed loss

---@class gpipe.Progress
---@field steps integer? nil if it is not known
---@field started number
---@field terminal boolean
---@field every integer? steps between two lines if there is no terminal
---@field quiet boolean
---@field unit string the unit of rates
---@field width integer of the last line on the terminal
---@field first integer? the step before the first one of this process
---@field shown integer? the last step that was shown
---@field shown_at number? when it was
---@field mean gpipe.Smooth of the loss
---@field counted integer? the last step whose loss is in the mean
---@field latest table? step and facts of the last update if it was not shown
local Progress = {}
Progress.__index = Progress

local progress = {}

--- Wall-clock seconds; only differences mean something.
---@return number
progress.now = core.seconds

-- ---- words -----------------------------------------------------------------------------------

--- Write a number in a few characters.
--- ```lua
--- assert(require("gpipe.progress").short(12345.6) == "12.3k")
--- ```
---@param n number
---@return string
function progress.short(n)
  for _, unit in ipairs { { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" } } do
    if n >= unit[1] then return ("%.1f%s"):format(n / unit[1], unit[2]) end
  end
  return ("%.0f"):format(n)
end

--- Write seconds like a clock.
--- ```lua
--- assert(require("gpipe.progress").clock(75) == "1:15")
--- ```
---@param seconds number
---@return string
function progress.clock(seconds)
  local s = math.floor(seconds + 0.5)
  if s >= 3600 then return ("%d:%02d:%02d"):format(s // 3600, s // 60 % 60, s % 60) end
  return ("%d:%02d"):format(s // 60, s % 60)
end

--- Write a loss or a rate in a few characters.
--- ```lua
--- local number = require("gpipe.progress").number
--- assert(number(2.5) == "2.500" and number(6e-4) == "0.0006" and number(0 / 0) == "nan")
--- ```
---@param x number
---@return string
function progress.number(x)
  if x ~= x then return "nan" end
  local size = math.abs(x)
  return ((size >= 0.01 and size < 1000) and "%.3f" or "%.3g"):format(x)
end

--- The share of the last step in which devices were idle, in percent; nil before the first step.
--- ```lua
--- assert(require("gpipe.progress").bubble {bubble = {0, 0.5}} == 25)
--- ```
---@param stats table pipe.stats
---@return number?
function progress.bubble(stats)
  local bubble = stats and stats.bubble
  if not bubble or #bubble == 0 then return nil end
  local sum = 0
  for _, share in ipairs(bubble) do sum = sum + share end
  return 100 * sum / #bubble
end

-- ---- the line --------------------------------------------------------------------------------

local function on_terminal()
  return os.getenv "TERM" ~= "dumb" and core.is_terminal(io.stderr)
end

-- Rank 0 shows the progress of a job.
local function follows() return core.rank_info().rank > 0 end

--- Start the line of a run.
--- ```lua
--- local line = require("gpipe.progress").new {steps = 10, quiet = true}
--- for step = 1, 10 do line:update(step, {loss = 1 / step}) end
--- line:finish()
--- ```
---@param opts? {steps?: integer, every?: integer, quiet?: boolean, unit?: string} every: steps
--- between two lines if there is no terminal, by default twenty lines in all, and one a minute;
--- unit: of rates, "tok"
---@return gpipe.Progress
function progress.new(opts)
  opts = options.check("progress.new", opts, {
    steps = { type = "integer", min = 1 },
    every = { type = "integer", min = 1 },
    quiet = { type = "boolean", default = false },
    unit = { type = "string", default = "tok" },
  })
  return setmetatable({
    steps = opts.steps, every = opts.every, quiet = opts.quiet or follows(), unit = opts.unit,
    started = progress.now(), terminal = on_terminal(), width = 0, mean = smooth.new(MEMORY),
  }, Progress)
end

--- Seconds since the start.
---@return number
function Progress:elapsed() return progress.now() - self.started end

-- Estimate the remaining time; a resumed run knows only the speed of its own steps.
local function seconds_left(self, step)
  local own = step - self.first
  return own > 0 and self:elapsed() / own * (self.steps - step) or nil
end

local function most(memory)
  if type(memory) ~= "table" then return memory end
  local bytes
  for _, one in ipairs(memory) do bytes = math.max(bytes or 0, one) end
  return bytes
end

-- The parts of the line in their order: {text, rank, shorter text}. If they do not fit, the part
-- with the highest rank is left out, or shortened, first.
local function parts_of(self, step, facts)
  local parts = {}
  local function add(rank, form, value, short)
    if value ~= nil then parts[#parts + 1] = { form:format(value), rank, short } end
  end
  local number, mean = progress.number, self.mean.value
  local of = self.steps and ("%d/%d"):format(step, self.steps) or ("%d"):format(step)
  local share = self.steps and (" %3d%%"):format(100 * step // self.steps) or ""
  add(1, "step %s", of .. share, of)
  local loss = facts.loss and "loss " .. number(facts.loss)
  local with_mean = loss and mean and self.mean.weight > 1 - MEMORY
    and ("%s (mean %s)"):format(loss, number(mean))
  add(with_mean and 10 or 0, "%s", with_mean or loss, loss)
  add(3, "val %s", facts.val and number(facts.val))
  add(8, "lr %.3g", facts.lr)
  add(9, "norm %s", facts.norm and number(facts.norm))
  add(5, "%s", facts.rate and ("%s %s/s"):format(progress.short(facts.rate), self.unit))
  add(6, "bubble %.0f%%", facts.bubble)
  local bytes = most(facts.memory)
  add(7, "mem %s", bytes and sizes.text(bytes))
  local left = self.steps and seconds_left(self, step)
  add(4, "eta %s", left and progress.clock(left))
  return parts
end

local function joined(parts)
  local texts = {}
  for _, part in ipairs(parts) do texts[#texts + 1] = part[1] end
  return table.concat(texts, " | ")
end

-- The part with the highest rank; nil if all remaining parts have to stay.
local function least(parts)
  local found
  for i, part in ipairs(parts) do
    if part[2] > 0 and (not found or part[2] > parts[found][2]) then found = i end
  end
  return found
end

local function fitted(parts, columns)
  local text = joined(parts)
  while #text > columns do
    local i = least(parts)
    if not i then return text:sub(1, columns) end
    local short = parts[i][3]
    if short then parts[i] = { short, 0 } else table.remove(parts, i) end
    text = joined(parts)
  end
  return text
end

-- Return whether it is time for a plain line.
local function is_due(self, step)
  if self.every then return step % self.every == 0 end
  local before = self.shown or self.first
  local since = progress.now() - (self.shown_at or self.started)
  if not self.steps then return since >= UNKNOWN or not self.shown end
  return SHARES * step // self.steps > SHARES * before // self.steps or since >= LONGEST
end

local on_screen ---@type gpipe.Progress? the one whose line is on the terminal

local function write_over(self, text)
  io.stderr:write("\r", text, (" "):rep(self.width - #text))
  self.width = #text
  on_screen = #text > 0 and self or nil
end

--- Remove the line from the terminal, so that something else can be printed there; the next step
--- draws it again.
function progress.clear()
  local line = on_screen
  if not line then return end
  write_over(line, "")
  io.stderr:write "\r"
  io.stderr:flush()
  line.shown_at = nil
end

--- Print a line on standard error; the progress line continues below it.
--- ```lua
--- require("gpipe.progress").say "the data is read again"
--- ```
---@param text string
function progress.say(text)
  progress.clear()
  io.stderr:write(text .. "\n")
end

local FACTS = {}
for _, name in ipairs { "loss", "val", "lr", "norm", "rate", "bubble" } do
  FACTS[name] = { type = "number" }
end
FACTS.memory = { type = { "number", "table" } }

---@class gpipe.ProgressFacts
---@field loss? number of this step; a smoothed one is shown beside it
---@field val? number on data that is held out
---@field lr? number
---@field norm? number of the gradients
---@field rate? number units a second
---@field bubble? number percent
---@field memory? number|number[] bytes: of devices, the most

local function draw(self, step, facts)
  local parts = parts_of(self, step, options.check("progress", facts, FACTS))
  if self.terminal then -- a line that wraps cannot be rewritten
    write_over(self, fitted(parts, screen.columns(io.stderr) - 1))
  else
    io.stderr:write(joined(parts), "\n")
  end
  io.stderr:flush()
  self.shown, self.shown_at, self.latest = step, progress.now(), nil
end

--- Show the progress of the run. Facts that are left out are not shown.
---@param step integer from 1
---@param facts gpipe.ProgressFacts
function Progress:update(step, facts)
  if self.quiet then return end
  self.first = self.first or step - 1
  if facts.loss and step ~= self.counted then self.mean(facts.loss) end
  self.counted = step
  local due
  if self.terminal then
    due = not self.shown_at or progress.now() - self.shown_at >= REDRAWN
  else
    due = is_due(self, step)
  end
  if due or step == self.steps then draw(self, step, facts) else self.latest = { step, facts } end
end

--- End the line, with the last step, so that the next output starts on a new line.
function Progress:finish()
  if self.latest and self.terminal then draw(self, table.unpack(self.latest)) end
  if self.terminal and self.width > 0 then io.stderr:write("\n") end
  self.width, self.latest = 0, nil
  if on_screen == self then on_screen = nil end
end

return progress
