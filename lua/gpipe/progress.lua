-- gpipe/progress.lua - one line that tells how a training run goes.
--
-- On a terminal the line is rewritten in place; elsewhere (a log file, a pipe) a plain line is
-- written now and then, without control characters. It goes to standard error: results go to
-- standard output.

local core = require "gpipe.core"
local options = require "gpipe.options"
local screen = require "gpipe.screen"

---@class gpipe.Progress
---@field steps integer
---@field started number
---@field terminal boolean
---@field every integer steps between two lines where there is no terminal
---@field quiet boolean
---@field unit string what is counted a second
---@field width integer of the last line on the terminal
local Progress = {}
Progress.__index = Progress

local progress = {}

--- Wall-clock seconds; only differences mean something.
---@return number
progress.now = core.seconds

-- ---- words -----------------------------------------------------------------------------------

--- A number in a few characters.
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

--- Seconds as a clock shows them.
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

--- The share of time that devices were idle in the last step, in percent; nil before the first.
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

--- Start the line of a run.
--- ```lua
--- local line = require("gpipe.progress").new {steps = 10, quiet = true}
--- for step = 1, 10 do line:update(step, {loss = 1 / step}) end
--- line:finish()
--- ```
---@param opts {steps: integer, every?: integer, quiet?: boolean, unit?: string} every: steps between
---  two lines where there is no terminal; default: twenty lines in all; unit: of rates, "tok"
---@return gpipe.Progress
function progress.new(opts)
  opts = options.check("progress.new", opts, {
    steps = { type = "integer", min = 1, required = true },
    every = { type = "integer", min = 1 },
    quiet = { type = "boolean", default = false },
    unit = { type = "string", default = "tok" },
  })
  return setmetatable({
    steps = opts.steps, every = opts.every or math.max(1, opts.steps // 20), quiet = opts.quiet,
    unit = opts.unit, started = progress.now(), terminal = on_terminal(), width = 0,
  }, Progress)
end

--- Seconds since the start.
---@return number
function Progress:elapsed() return progress.now() - self.started end

local function text_of(self, step, facts)
  local parts = { ("step %d/%d %3d%%"):format(step, self.steps, 100 * step // self.steps) }
  local function add(form, value) parts[#parts + 1] = value and form:format(value) end
  add("loss %.3f", facts.loss)
  add("val %.3f", facts.val)
  add("%s", facts.rate and ("%s %s/s"):format(progress.short(facts.rate), self.unit))
  add("bubble %.0f%%", facts.bubble)
  add("eta %s", progress.clock(self:elapsed() / step * (self.steps - step)))
  return table.concat(parts, " | ")
end

--- Show where the run is. Facts left out are not shown.
---@param step integer from 1
---@param facts {loss?: number, val?: number, rate?: number, bubble?: number} rate: a second; bubble: %
function Progress:update(step, facts)
  if self.quiet then return end
  if not self.terminal and step % self.every ~= 0 and step ~= self.steps then return end
  local text = text_of(self, step, facts)
  if self.terminal then -- a line that wraps could not be rewritten
    text = text:sub(1, screen.columns(io.stderr) - 1)
    io.stderr:write("\r", text, (" "):rep(self.width - #text))
    self.width = #text
  else
    io.stderr:write(text, "\n")
  end
  io.stderr:flush()
end

--- End the line, so that what is printed next starts on its own.
function Progress:finish()
  if self.terminal and self.width > 0 then io.stderr:write("\n") end
  self.width = 0
end

return progress
