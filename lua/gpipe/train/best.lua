-- lua/gpipe/train/best.lua - `gp.train.best`: remembers the best value of a measure so far.

local options = require "gpipe.options"
local part = require "gpipe.train.part"

---@class gpipe.Best
---@field value number? the best so far
---@field step integer? when it was
local methods = {}

local new = part.class {
  who = "gp.train.best", methods = methods, call = "update", may = { mode = true },
  fields = { value = { type = "number" }, step = { type = "number" } },
}

--- Record a value; calling the object does the same.
--- ```lua
--- local best = gp.train.best()
--- assert(best:update(2.5, 100) and not best(3, 200) and best.step == 100)
--- ```
---@param value number NaN is never better
---@param step? integer
---@return boolean whether it is better than all before
function methods:update(value, step)
  part.number("gp.train.best", "value", value)
  step = options.argument("gp.train.best", "step", step, { type = "integer" })
  local old = self.value
  local better = value == value
    and (old == nil or self.mode == "max" and value > old or self.mode == "min" and value < old)
  if better then self.value, self.step = value, step end
  return better
end

--- Remember the best value of a measure and its step: `if best(loss, step) then gp.save(...) end`.
--- (`run:best` of gp.run does this and keeps the model.)
--- Errors: an unknown mode.
--- ```lua
--- local best = gp.train.best "max"
--- assert(best(0.5, 1) and not best(0.4, 2) and best.value == 0.5)
--- ```
---@param mode? "min"|"max" which values are better; "min"
---@return gpipe.Best
local function best(mode)
  return new { mode = options.argument("gp.train.best", "mode", mode, part.MODE) }
end

return { new = best, methods = methods }
