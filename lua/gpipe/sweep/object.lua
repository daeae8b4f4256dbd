-- lua/gpipe/sweep/object.lua - a sweep as scripts see it: run, best, trials.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local object = {}

---@class gpipe.Sweep
---@field name string
---@field path string of its SQLite file
---@field best? gpipe.SweepTrial the complete trial with the best value
---@field trials gpipe.SweepTrial[] by number
---@field store gpipe.SweepStore
---@field options table
---@field objective string what is minimized or maximized
---@field sign integer 1: less is better; -1: more is
---@field most integer trials in all
local methods = {}

---@class gpipe.SweepTrial
---@field number integer
---@field state "complete"|"stopped"|"failed"|"timeout"|"killed"|"interrupted"|"waiting"|"running"
---@field params table<string, any>
---@field value? number
---@field values table<string, number> where the function returned several
---@field seconds? number
---@field error? string with its traceback

local properties = {}

function properties.trials(self)
  local list, trials = {}, self.store:refresh()
  for number in pairs(trials) do list[#list + 1] = trials[number] end
  table.sort(list, function(a, b) return a.number < b.number end)
  return list
end

function properties.best(self)
  local best
  for _, trial in ipairs(self.trials) do
    local better = trial.state == "complete"
      and (not best or self.sign * trial.value < self.sign * best.value)
    if better then best = trial end
  end
  return best
end

--- Run the trials that are left: call `f(params, trial)` for each. f returns the value to minimize
--- or maximize, a table that has it among others, or nothing after `trial:report`.
---
--- A trial that fails is recorded with its traceback, and the sweep goes on. Ctrl-C ends the sweep;
--- the interrupted trial is run again the next time. Each trial begins with `gp.seed(trial.seed)`.
--- Make data that trials share outside of the function.
--- Errors: a first argument that is no function.
--- ```lua
--- local folder = os.tmpname()
--- os.remove(folder)
--- local s = gp.sweep {name = "parabola", dir = folder, trials = 20, quiet = true,
---   space = {x = gp.sweep.uniform(-1, 1)}}
--- s:run(function(params) return (params.x - 0.5) ^ 2 end)
--- print(s.best.params.x)
--- ```
---@param f? fun(params: table<string, any>, trial: gpipe.Trial): number|table|nil the option
---  `objective` where it is left out
---@return gpipe.Sweep self
function methods:run(f)
  f = f or self.options.objective
  options.argument("sweep:run", "f", f, { type = "callable", required = true })
  require("gpipe.sweep.run").run(self, f)
  return self
end

--- Write the sweep as one self-contained page: the best trials, how the search went, all parameters
--- side by side, each of them against the objective, and which of them mattered. An existing file
--- is replaced only if it is a page of the same sweep.
--- Errors: nil, message, "io" where the file cannot be written, or is something else.
--- ```lua
--- local folder = os.tmpname()
--- os.remove(folder)
--- local s = gp.sweep {name = "page", dir = folder, trials = 12, quiet = true,
---   space = {x = gp.sweep.uniform(-1, 1)}, objective = function(params) return params.x ^ 2 end}
--- print(assert(s:run():html()))
--- print(s) -- the same as a table of text
--- ```
---@param path? string dir/name.html where it is left out
---@param opts? {force: boolean?} force: replace whatever is there
---@return string? path
---@return string? message
---@return string? code
function methods:html(path, opts)
  path = options.argument("sweep:html", "path", path, { type = "string",
    default = self.path:gsub("%.db$", "") .. ".html" })
  local o = options.check("sweep:html", opts, { force = { type = "boolean", default = false } })
  return require("gpipe.draw.sweep.html").write(self, path, o.force)
end

--- The goal in words: "minimize val_loss".
---@return string
function methods:goal()
  return (self.sign > 0 and "minimize " or "maximize ") .. self.objective
end

--- The method and the rule in words: "tpe, asha".
---@return string
function methods:how()
  local stop = self.options.stop
  return self.options.method .. (stop and ", " .. (type(stop) == "table" and stop[1] or stop) or "")
end

--- Suggest the parameters of a trial.
---@param number integer
---@return table<string, any>
function methods:suggest(number)
  return self.sampler:suggest(number, self.store:refresh())
end

local NAMES = { "run", "best", "trials", "html", "name", "path" }

local Sweep = { __name = "gpipe.Sweep", methods = methods }

function Sweep.__index(self, key)
  if properties[key] then return properties[key](self) end
  local method = methods[key]
  if method == nil then errors.refuse_near("sweep", key, NAMES) end
  return method
end

function Sweep.__tostring(self) return require("gpipe.sweep.report.table").text(self) end

--- Make a sweep of its parts.
---@param self table
---@return gpipe.Sweep
function object.new(self) return setmetatable(self, Sweep) end

--- Its methods, for the documentation.
object.methods = methods

return object
