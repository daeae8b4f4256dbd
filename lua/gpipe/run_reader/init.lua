-- lua/gpipe/run_reader/init.lua - `gp.runs(dir)`: the training runs of a folder, to look at and
-- compare.

local core = require "gpipe.core"
local find = require "gpipe.run_reader.find"
local options = require "gpipe.options"
local draw = require "gpipe.draw.runs"

---@class gpipe.Runs: gpipe.RunFolder[]
---@field dir string
local Runs = {}
Runs.__index, Runs.__name = Runs, "gpipe.Runs"

--- Read the folder again: new records, new runs, runs that are gone. What was read before is kept,
--- so this is quick for long logs too.
--- Errors: nil, message, code where the folder cannot be read any more; the list stays as it was.
---
--- ```lua
--- local runs = gp.runs "runs" or {}
--- if #runs > 0 then print(runs:update()) end
--- ```
---@return gpipe.Runs? self
---@return string? message
---@return string? code "io"
function Runs:update()
  local known = {}
  for _, run in ipairs(self) do known[run.path] = run end
  local found, message, code = find.runs(self.dir, known)
  if not found then return nil, message, code end
  for i = 1, math.max(#self, #found) do self[i] = found[i] end
  return self
end

--- Draw the curves of all runs as text for a terminal, as r:plot does for one run. With
--- `by = "lr,width"` the runs that agree in these settings share one curve, their mean.
--- Errors: raises for names that no run logged, and settings that no run has.
---
--- ```lua
--- local runs = gp.runs "runs" or {}
--- if #runs > 0 then print(runs:plot("loss", {smooth = 0.9, log = true})) end
--- ```
---@param names? string|string[]
---@param opts? table
---@return string
function Runs:plot(names, opts) return draw.text("runs:plot", self, names, opts) end

--- Write the curves of all runs as an SVG figure. An existing file is replaced only with `force`.
--- Errors: nil, message, code where it cannot be written ("io") or is there ("exists"); raises for
--- names that no run logged.
---
--- ```lua
--- local runs = gp.runs "runs" or {}
--- if #runs > 0 then runs:svg("loss.svg", "loss", {x = "time", force = true}) end
--- ```
---@param path string
---@param names? string|string[] as for r:plot
---@param opts? {x?: "step"|"time", smooth?: number, log?: boolean, by?: string|string[],
---  force?: boolean} by: settings such as "lr": one curve for the runs that agree in them
---@return boolean? true
---@return string? message
---@return string? code
function Runs:svg(path, names, opts) return draw.svg("runs:svg", self, path, names, opts) end

--- Write everything that the runs logged as one self-contained page: curves with smoothing and
--- zoom, a table of the configs, memory per device, the schedule of the last step. An existing file
--- is replaced only with `force`.
--- Errors: nil, message, code as runs:svg.
---
--- ```lua
--- local runs = gp.runs "runs" or {}
--- if #runs > 0 then runs:html("runs.html", {force = true}) end
--- ```
---@param path string
---@param opts? {title?: string, force?: boolean}
---@return boolean? true
---@return string? message
---@return string? code
function Runs:html(path, opts) return draw.html("runs:html", self, path, opts) end

function Runs:__tostring() return require("gpipe.run_reader.table").text(self) end

local runs = { methods = Runs }

--- List the training runs below a folder, as gp.run wrote them; the list prints as a table. A run
--- has name, path, state ("running", "killed", "finished", "stopped", "failed" or "unknown"),
--- reason, step, steps, loss, best, rate, unit, seconds, created, updated, config and faults, and
--- the methods names, column, plot and update; the list has plot, svg and html for all runs. The
--- run that wrote last comes first.
--- Errors: nil, message, code where the folder cannot be read.
---
--- ```lua
--- local runs = gp.runs "runs" or {}
--- for _, r in ipairs(runs) do print(r.name, r.state, r.loss) end
--- ```
---@param dir? string "runs" where it is left out; may be the folder of one run
---@return gpipe.Runs?
---@return string? message
---@return string? code "io"
function runs.open(dir)
  dir = options.argument("gp.runs", "dir", dir, { type = "string", default = "runs" })
  local found, message, code
  core.plain_numbers(function() found, message, code = find.runs(dir) end)
  if not found then return nil, message, code end
  found.dir = dir
  return setmetatable(found, Runs)
end

return runs
