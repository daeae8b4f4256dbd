-- gpipe/optim/plateau.lua - a learning rate that falls when the measured value stops improving.
-- Source: torch.optim.lr_scheduler.ReduceLROnPlateau, in its order of operations.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local plateau = {}

local LEAST_CHANGE = 1e-8 -- smaller changes of a rate are not made

---@class gpipe.PlateauOptions
---@field max number the rate at first
---@field factor? number 0.1
---@field patience? integer 10
---@field threshold? number 1e-4
---@field relative? boolean true
---@field rising? boolean
---@field cooldown? integer 0
---@field min? number 0

---@class gpipe.Plateau
---@operator call(number): number
local methods = {}

local fields = setmetatable({}, { __mode = "k" }) ---@type table<table, table>

local Plateau = { __name = "gpipe.Plateau", methods = methods }

function Plateau.__index(_, key)
  if methods[key] then return methods[key] end
  errors.refuse_near("schedule.plateau", key,
    { "state_dict", "load_state_dict", "state", "restore" })
end

function Plateau.__newindex(_, key)
  errors.raise("schedule.plateau: %s cannot be set, expected load_state_dict", errors.show(key))
end

function Plateau.__tostring(object)
  local state = fields[object].state
  return ("plateau(lr %g, best %g, %d without progress)"):format(state.lr, state.best, state.bad)
end

-- Compare with the best so far. It is infinite at first, so no share of it is added or subtracted.
local function is_better(opts, value, best)
  local by = opts.rising and opts.threshold or -opts.threshold
  local bound = opts.relative and best * (1 + by) or best + by
  if opts.rising then return value > bound end
  return value < bound
end

function Plateau.__call(object, value)
  local opts, state = fields[object].opts, fields[object].state
  if type(value) ~= "number" then
    errors.raise("schedule.plateau: the measure is %s, expected a number", errors.show(value))
  end
  if is_better(opts, value, state.best) then
    state.best, state.bad = value, 0
  else
    state.bad = state.bad + 1
  end
  if state.cooling > 0 then state.cooling, state.bad = state.cooling - 1, 0 end
  if state.bad > opts.patience then
    local lower = math.max(state.lr * opts.factor, opts.min)
    if state.lr - lower > LEAST_CHANGE then state.lr = lower end
    state.cooling, state.bad = opts.cooldown, 0
  end
  return state.lr
end

--- A copy of its memory: numbers, which gp.save takes.
--- ```lua
--- local lr = gp.optim.schedule.plateau{max = 0.1}
--- lr(2.5)
--- assert(lr:state_dict().best == 2.5)
--- ```
---@return {lr: number, best: number, bad: integer, cooling: integer}
function methods:state_dict()
  local copy = {}
  for key, value in pairs(fields[self].state) do copy[key] = value end
  return copy
end

--- Continue from a state.
--- Errors: something that is not such a state.
--- ```lua
--- local lr = gp.optim.schedule.plateau{max = 0.1}
--- lr:load_state_dict{lr = 0.05, best = 2, bad = 0, cooling = 0}
--- assert(lr(1) == 0.05)
--- ```
---@param state {lr: number, best: number, bad: integer, cooling: integer}
function methods:load_state_dict(state)
  local count = { type = "integer", min = 0, required = true }
  fields[self].state = options.check("load_state_dict", state, {
    lr = { type = "number", min = 0, required = true }, best = { type = "number", required = true },
    bad = count, cooling = count,
  })
end

methods.state, methods.restore = methods.state_dict, methods.load_state_dict -- for gp.run

--- A rate that is multiplied by `factor` when the measured value has not improved for more than
--- `patience` calls in a row. Call the object with the value, once an epoch; it returns the rate:
--- `opt.lr = lr(pipe:evaluate(x, y))`.
---
--- A value is better if it is smaller than the best so far by more than the share `threshold` of
--- the best (or by `threshold` itself if `relative` is false); if `rising` is true, it has to be
--- larger. For `cooldown` calls after a change nothing is counted.
--- ```lua
--- local lr = gp.optim.schedule.plateau{max = 0.1, factor = 0.5, patience = 1}
--- assert(lr(2) == 0.1 and lr(2) == 0.1 and lr(2) == 0.05)
--- ```
---@param opts gpipe.PlateauOptions
---@return gpipe.Plateau
function plateau.plateau(opts)
  local amount = { type = "number", min = 0, below = math.huge, default = 0 }
  opts = options.check("schedule.plateau", opts, {
    max = { type = "number", min = 0, below = math.huge, required = true }, min = amount,
    factor = { type = "number", above = 0, below = 1, default = 0.1 },
    patience = { type = "integer", min = 0, default = 10 },
    threshold = { type = "number", min = 0, below = math.huge, default = 1e-4 },
    relative = { type = "boolean", default = true },
    rising = { type = "boolean", default = false },
    cooldown = { type = "integer", min = 0, default = 0 },
  })
  local object = {}
  local worst = opts.rising and -math.huge or math.huge
  fields[object] = { opts = opts, state = { lr = opts.max, best = worst, bad = 0, cooling = 0 } }
  return setmetatable(object, Plateau)
end

return plateau
