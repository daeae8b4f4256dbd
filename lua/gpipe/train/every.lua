-- lua/gpipe/train/every.lua - `gp.train.every`: says when an evaluation, a sample or a save is due.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local part = require "gpipe.train.part"

---@class gpipe.Every
---@field last integer the step (or epoch) at which it was last due
local methods = {}

local new = part.class {
  who = "gp.train.every", methods = methods, call = "due",
  may = { count = true, seconds = true, total = true }, fields = {},
}

--- Return whether it is due at a step (or epoch, depending on the option); calling the object does
--- the same. Ask for each step once, in order. If steps are skipped, it is due at the next one.
--- ```lua
--- local due = gp.train.every {steps = 10}
--- assert(not due:due(9) and due:due(10) and not due:due(11) and due:due(25))
--- ```
---@param n integer
---@return boolean
function methods:due(n)
  n = options.argument("gp.train.every", "the step", n,
    { type = "integer", min = 0, required = true })
  if n <= self.last then return false end
  local is_due = n == self.total
  if self.seconds then
    is_due = is_due or core.seconds() - self.since >= self.seconds
  else
    is_due = is_due or n // self.count > self.last // self.count
  end
  if is_due then self.last, self.since = n, core.seconds() end
  return is_due
end

--- The state, as a plain table.
--- ```lua
--- local due = gp.train.every {steps = 10}
--- due(10)
--- assert(due:state().last == 10)
--- ```
---@return {last: integer, waited: number}
function methods:state() return { last = self.last, waited = core.seconds() - self.since } end

--- Continue from a state.
--- ```lua
--- local due = gp.train.every {steps = 10}
--- due:restore {last = 20, waited = 0}
--- assert(not due(29) and due(30))
--- ```
---@param state {last: integer, waited: number}
---@return gpipe.Every self
function methods:restore(state)
  state = options.check("gp.train.every: restore", state,
    { last = part.COUNT, waited = { type = "number", min = 0, required = true } })
  self.last, self.since = state.last, core.seconds() - state.waited
  return self
end

--- Say when something is due: every given number of steps, epochs or seconds, and at the last step,
--- `total`. By steps and epochs it is the same in every run; by seconds it is not.
--- Errors: not exactly one of `steps`, `epochs` and `seconds`.
--- ```lua
--- local due = gp.train.every {steps = 100, total = 250}
--- local found = {}
--- for step = 1, 250 do
---   if due(step) then found[#found + 1] = step end
--- end
--- assert(table.concat(found, " ") == "100 200 250")
--- ```
---@param opts {steps?: integer, epochs?: integer, seconds?: number, total?: integer}
---@return gpipe.Every
local function every(opts)
  local count = { type = "integer", min = 1 }
  opts = options.check("gp.train.every", opts, {
    steps = count, epochs = count, total = count,
    seconds = { type = "number", above = 0, below = math.huge },
  })
  local given = (opts.steps and 1 or 0) + (opts.epochs and 1 or 0) + (opts.seconds and 1 or 0)
  if given ~= 1 then
    errors.raise("gp.train.every: %d of the options steps, epochs and seconds are given, expected "
      .. "one", given)
  end
  return new { count = opts.steps or opts.epochs, seconds = opts.seconds, total = opts.total,
    last = 0, since = core.seconds() }
end

return { new = every, methods = methods }
