-- gpipe/optim/cycles.lua - learning rates that also rise: one cycle, cycles, restarts.
--
-- They are functions of the step, counted from 1, like those of schedule.lua.

local errors = require "gpipe.errors"
local options = require "gpipe.options"

local cycles = {}

local MAX = { type = "number", min = 0, below = math.huge, required = true }
local MIN = { type = "number", min = 0, below = math.huge, default = 0 }
local STEPS = { type = "integer", min = 1, required = true }

-- Curves from 1 to 0, as p goes from 0 to 1.
local CURVES = {
  cosine = function(p) return (1 + math.cos(math.pi * p)) / 2 end,
  linear = function(p) return 1 - p end,
}

cycles.CURVES = CURVES

local function counted(rate)
  return function(step)
    if type(step) ~= "number" then
      errors.raise("schedule: step is %s, expected a number", errors.show(step))
    end
    return rate(step)
  end
end

-- The ends of a cycle's phases, counted from 0, and the rates at these points.
local function phases_of(opts)
  local first = opts.first or opts.max / 25
  local last, top = opts.last or first / 1e4, opts.rise * opts.steps - 1
  if opts.three_phases then
    return { { top, first, opts.max }, { 2 * top, opts.max, first },
      { opts.steps - 1, first, last } }
  end
  return { { top, first, opts.max }, { opts.steps - 1, opts.max, last } }
end

---@class gpipe.OneCycleOptions
---@field max number
---@field steps integer
---@field rise? number 0.3
---@field shape? "cosine"|"linear"
---@field first? number max / 25
---@field last? number first / 10^4
---@field three_phases? boolean

--- One cycle (Smith and Topin 2019): the rate rises from `first` to `max` during the share `rise`
--- of the steps, then falls to `last`. With three phases it falls to `first` as fast as it rose,
--- and to `last` in the remaining steps. Momentum does not change.
--- Errors: a rise that is not between 0 and 1, or too short for the steps.
--- ```lua
--- local lr = gp.optim.schedule.one_cycle{max = 0.1, steps = 10}
--- assert(lr(3) == 0.1 and lr(10) < 1e-6)
--- ```
---@param opts gpipe.OneCycleOptions
---@return fun(step: number): number
function cycles.one_cycle(opts)
  local who = "schedule.one_cycle"
  local rate = { type = "number", min = 0, below = math.huge }
  opts = options.check(who, opts, {
    max = MAX, steps = STEPS, first = rate, last = rate,
    rise = { type = "number", above = 0, below = 1, default = 0.3 },
    shape = { choices = { "cosine", "linear" }, default = "cosine" },
    three_phases = { type = "boolean", default = false },
  })
  local phases, curve = phases_of(opts), CURVES[opts.shape]
  for i, phase in ipairs(phases) do
    if phase[1] <= (i > 1 and phases[i - 1][1] or 0) then
      errors.raise("%s: rise is %g of %d steps, expected room for %d phases of more than a step",
        who, opts.rise, opts.steps, #phases)
    end
  end
  return counted(function(step)
    local at, from, i = math.min(math.max(step, 1), opts.steps) - 1, 0, 1
    while i < #phases and at > phases[i][1] do from, i = phases[i][1], i + 1 end
    local last, low, high = table.unpack(phases[i])
    return high + (low - high) * curve((at - from) / (last - from))
  end)
end

-- The height of a cycle, by its number from 1 and the step from 0.
local HEIGHTS = {
  triangular = function() return 1 end,
  triangular2 = function(cycle) return 0.5 ^ (cycle - 1) end,
  exp_range = function(_, at, factor) return factor ^ at end,
}

---@class gpipe.CyclicOptions
---@field max number
---@field min? number 0
---@field up? integer steps from min to max: 2000
---@field down? integer steps back to min: as many as up
---@field mode? "triangular"|"triangular2"|"exp_range" all cycles alike; each half as high as the
--- previous one; multiplied by factor after every step
---@field factor? number for "exp_range": 1

--- Rise and fall between min and max (Smith 2015), in straight lines. Momentum does not change.
--- Errors: a min above max.
--- ```lua
--- local lr = gp.optim.schedule.cyclic{min = 0, max = 1, up = 4, down = 2}
--- assert(lr(1) == 0 and lr(5) == 1 and lr(6) == 0.5 and lr(7) == 0)
--- ```
---@param opts gpipe.CyclicOptions
---@return fun(step: number): number
function cycles.cyclic(opts)
  local who = "schedule.cyclic"
  opts = options.check(who, opts, {
    max = MAX, min = MIN, up = { type = "integer", min = 1, default = 2000 },
    down = { type = "integer", min = 1 },
    mode = { choices = { "triangular", "triangular2", "exp_range" }, default = "triangular" },
    factor = { type = "number", above = 0, max = 1, default = 1 },
  })
  if opts.min > opts.max then
    errors.raise("%s: min is %g, expected at most max, %g", who, opts.min, opts.max)
  end
  local up, down, height = opts.up, opts.down or opts.up, HEIGHTS[opts.mode]
  return counted(function(step)
    local at = math.max(step - 1, 0)
    local cycle, into = at // (up + down) + 1, at % (up + down)
    local share = into <= up and into / up or (up + down - into) / down
    return opts.min + (opts.max - opts.min) * share * height(cycle, at, opts.factor)
  end)
end

-- Find the period that a step (from 0) lies in: the steps since it began, and its length.
local function period_of(at, steps, times)
  if times == 1 then return at % steps, steps end
  local n = math.floor(math.log(at / steps * (times - 1) + 1, times))
  local first, length = steps * (times ^ n - 1) / (times - 1), steps * times ^ n
  if at - first >= length then first, length = first + length, length * times end -- rounding
  return at - first, length
end

--- Half a cosine wave from max to min, repeated (Loshchilov and Hutter 2017): after `steps` steps
--- it starts again from max, each time for `times` as many steps as before.
--- ```lua
--- local lr = gp.optim.schedule.warm_restarts{max = 1, steps = 10, times = 2}
--- assert(lr(1) == 1 and lr(6) == 0.5 and lr(11) == 1 and lr(21) == 0.5 and lr(31) == 1)
--- ```
---@param opts {max: number, steps: integer, times?: integer, min?: number} times: 1
---@return fun(step: number): number
function cycles.warm_restarts(opts)
  opts = options.check("schedule.warm_restarts", opts, {
    max = MAX, min = MIN, steps = STEPS, times = { type = "integer", min = 1, default = 1 },
  })
  return counted(function(step)
    local into, length = period_of(math.max(step - 1, 0), opts.steps, opts.times)
    return opts.min + (opts.max - opts.min) * CURVES.cosine(into / length)
  end)
end

return cycles
