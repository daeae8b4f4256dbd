-- lua/gpipe/sweep/init.lua - `gp.sweep`: search for the values with which training goes best.
--
-- A sweep is a file: a process that opens it by the same name continues it, alone or in parallel
-- with others. Values are drawn from the domains (domain.lua) of a space (space.lua). A sampler
-- (sampler/) chooses the next values, a rule (stop/) ends trials early, and trials run in this
-- process or in others (run/).

local core = require "gpipe.core"
local domain = require "gpipe.sweep.domain"
local errors = require "gpipe.errors"
local object = require "gpipe.sweep.object"
local options = require "gpipe.options"
local space = require "gpipe.sweep.space"
local store = require "gpipe.sweep.store"

local WHO = "gp.sweep"
local TRIALS = 50 -- default where there is no grid

-- ---- options -----------------------------------------------------------------------------------

local METHODS = { "tpe", "random", "grid" }
local RULES = { "asha", "median", "halving" }

local OPTIONS = {
  name = { type = "string", required = true, check = function(name)
    if not name:find "^[%w._-]+$" or name:find "^%.+$" then
      return "letters, digits, '.', '_' and '-': it is the name of a file"
    end
  end },
  dir = { type = "string", default = "sweeps" },
  space = { type = "table", required = true },
  trials = { type = "integer", min = 1 },
  method = { choices = METHODS, default = "tpe" },
  multivariate = { type = "boolean", default = true },
  stop = { type = { "string", "table" } },
  points = { type = "integer", min = 1, default = 5 },
  minimize = { type = "string" },
  maximize = { type = "string" },
  seed = { type = "integer", default = 1 },
  timeout = { type = "number", above = 0 },
  retries = { type = "integer", min = 0, default = 2 },
  parallel = { type = "integer", min = 1, default = 1 },
  ranks = { type = "integer", min = 1, max = 1024, default = 1 },
  devices = { type = "table" },
  objective = { type = "callable" },
  quiet = { type = "boolean", default = false },
}

-- Whether less (1) or more (-1) is better, and the name of the objective.
local function goal_of(o)
  if o.minimize and o.maximize then
    errors.raise("%s: minimize is '%s' and maximize is '%s', expected one of them", WHO, o.minimize,
      o.maximize)
  end
  return o.maximize and -1 or 1, o.maximize or o.minimize or "value"
end

-- A rule by its name, or as a table with the name first: {"asha", reduction = 3}.
local function rule_of(self, stop)
  local given = type(stop) == "table" and stop or { stop }
  options.check(WHO, { stop = given[1] }, { stop = { choices = RULES, required = true } })
  return require("gpipe.sweep.stop." .. given[1]).new(self, given)
end

-- ---- making ------------------------------------------------------------------------------------

local function make_folder(path)
  local made, message, code = core.folder_make(path)
  if not made then errors.raise_as(code, "%s: %s", WHO, message) end
end

local sweep = {}

--- Open a search for good values of the parameters of a function, kept in the file `dir/name.db`.
---
--- `space` names the parameters: domains (gp.sweep.uniform, log, int, int_log, choice), constants,
--- and functions of the values so far that return a domain, a constant or nil (does not apply). An
--- interrupted sweep is resumed; more `trials` extend a finished one. The same name with another
--- space is an error that says what differs.
--- Errors: unknown options and domains; a file that cannot be used (code "io", "format").
--- ```lua
--- local folder = os.tmpname()
--- os.remove(folder)
--- local s = gp.sweep {
---   name = "digits", dir = folder, trials = 5, minimize = "val_loss", quiet = true,
---   space = {lr = gp.sweep.log(1e-5, 1e-2), width = gp.sweep.choice {64, 128}},
--- }
--- s:run(function(params, trial) return params.lr * params.width end)
--- print(s.best.value, s.best.params.lr)
--- ```
---@param opts {name: string, space: table, trials: integer?, dir: string?, method: string?,
---  multivariate: boolean?, stop: string|table|nil, minimize: string?, maximize: string?,
---  points: integer?, seed: integer?, timeout: number?, retries: integer?, parallel: integer?,
---  ranks: integer?, devices: string[]?, objective: function?, quiet: boolean?} method: "tpe",
--- "random" or "grid";
---  stop: "asha", "median", "halving"; points: of a range in a grid; timeout: seconds of a trial;
---  retries: how often a trial whose process died is run again; parallel: processes, among which
---  devices are dealt out; ranks: of each trial, which is a job of its own; objective: the function
--- of sweep:run; see docs/sweeps.md
---@return gpipe.Sweep
function sweep.sweep(opts)
  local o = options.check(WHO, opts, OPTIONS)
  local of = space.new(o.space)
  local sign, objective = goal_of(o)
  local self = {
    name = o.name, path = ("%s/%s.db"):format(o.dir, o.name), options = o, space = of,
    objective = objective, sign = sign,
  }
  self.sampler = require("gpipe.sweep.sampler." .. o.method).new(of, o, self.sign)
  local size = self.sampler.size
  self.most = math.min(o.trials or size or TRIALS, size or math.maxinteger)
  self.rule = o.stop and rule_of(self, o.stop)
  make_folder(o.dir)
  object.new(self)
  self.store = store.open(self.path, { name = o.name, words = of:words(), goal = self:goal() })
  return self
end

local names = { uniform = domain.uniform, log = domain.log, int = domain.int,
  int_log = domain.int_log, choice = domain.choice }

return setmetatable(names, {
  __name = WHO, call = sweep.sweep, __call = function(_, opts) return sweep.sweep(opts) end,
  __index = function(_, key)
    if type(key) ~= "string" then return nil end
    errors.raise("%s: there is no '%s'%s", WHO, key,
      errors.hint(key, { "uniform", "log", "int", "int_log", "choice" }, "names"))
  end,
})
