-- lua/gpipe/train/early_stopping.lua - `gp.train.early_stopping`: says when to end training.
-- Source: the rules of Lightning's EarlyStopping (patience, min_delta, thresholds, finite values).

local options = require "gpipe.options"
local part = require "gpipe.train.part"

---@class gpipe.EarlyStopping
---@field best number? the best value so far
---@field bad integer values in a row that were no better
---@field reason string? why to stop; nil while training should go on
local methods = {}

local new = part.class {
  who = "gp.train.early_stopping", methods = methods, call = "update",
  may = { mode = true, patience = true, min_delta = true, threshold = true, divergence = true },
  fields = {
    best = { type = "number" }, bad = part.COUNT, count = part.COUNT, reason = { type = "string" },
  },
}

-- Return whether a is better than b, by more than `delta` if it is given.
local function better(self, a, b, delta)
  if self.mode == "max" then return a > b + (delta or 0) end
  return a < b - (delta or 0)
end

local function limit_reason(self, value)
  if self.threshold and not better(self, self.threshold, value) then
    return ("%g has reached the threshold %g"):format(value, self.threshold)
  end
  if self.divergence and better(self, self.divergence, value) then
    return ("%g is beyond the limit of divergence %g"):format(value, self.divergence)
  end
end

local function reason_of(self, value)
  if not part.is_finite(value) then return ("the value is %s"):format(value) end
  local reason = limit_reason(self, value)
  if self.best == nil or better(self, value, self.best, self.min_delta) then
    self.best, self.bad = value, 0
  else
    self.bad = self.bad + 1
  end
  if reason or self.bad < self.patience then return reason end
  return ("no value was better than %g %d times in a row"):format(self.best, self.bad)
end

--- Record a value; calling the object does the same. Once it has said to stop, it keeps saying so.
--- ```lua
--- local stop = gp.train.early_stopping {patience = 1}
--- assert(not stop:update(0.5) and stop:update(0.7))
--- print(stop.reason)
--- ```
---@param value number
---@return boolean whether to stop
function methods:update(value)
  part.number("gp.train.early_stopping", "value", value)
  self.count = self.count + 1
  self.reason = self.reason or reason_of(self, value)
  return self.reason ~= nil
end

local finite = { type = "number", above = -math.huge, below = math.huge }

---@class gpipe.EarlyStoppingOptions
---@field patience? integer values in a row that may bring no improvement; 3
---@field min_delta? number a value is better by more than this; 0
---@field mode? "min"|"max" which values are better; "min"
---@field threshold? number good enough: stop when it is reached
---@field divergence? number too bad: stop when a value is worse

--- Say when to end training: after `patience` values in a row that do not improve the best by more
--- than `min_delta`; at a value that is good enough, too bad or not finite. Call it with each value
--- of the measure: `if stop(pipe:evaluate(x, y)) then break end`; `reason` then says why.
--- Errors: unknown options, a value that is not a number.
--- ```lua
--- local stop = gp.train.early_stopping {patience = 2, mode = "max"}
--- local steps = 0
--- for _, accuracy in ipairs {0.5, 0.6, 0.6, 0.55, 0.7} do
---   steps = steps + 1
---   if stop(accuracy) then break end
--- end
--- assert(steps == 4 and stop.best == 0.6)
--- ```
---@param opts? gpipe.EarlyStoppingOptions
---@return gpipe.EarlyStopping
local function early_stopping(opts)
  opts = options.check("gp.train.early_stopping", opts, {
    patience = { type = "integer", min = 1, default = 3 },
    min_delta = { type = "number", min = 0, below = math.huge, default = 0 },
    mode = part.MODE, threshold = finite, divergence = finite,
  })
  opts.bad, opts.count = 0, 0
  return new(opts)
end

return { new = early_stopping, methods = methods }
