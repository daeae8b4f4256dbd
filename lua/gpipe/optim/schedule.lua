-- gpipe/optim/schedule.lua - learning rates as plain functions of the step, counted from 1.
--
-- Each maker checks its options and returns a function; `opt.lr = lr(step)` before `opt:step()` is
-- all there is to using one. (Plateau's goes by what was measured, not by the step.) During the
-- first `warmup` steps the rate rises in a straight line to `max`, which step number `warmup`
-- reaches; step number `steps` reaches `min`, and it stays there.

local errors = require "gpipe.errors"
local namespace = require "gpipe.namespace"
local options = require "gpipe.options"
local plateau = require "gpipe.optim.plateau"

local schedule = { plateau = plateau.plateau }

local MAX = { type = "number", min = 0, below = math.huge, required = true }
local MIN = { type = "number", min = 0, below = math.huge, default = 0 }
local WARMUP = { type = "integer", min = 0, default = 0 }
local STEPS = { type = "integer", min = 1, required = true }

local CURVES = {
  cosine = function(p) return (1 + math.cos(math.pi * p)) / 2 end,
  linear = function(p) return 1 - p end,
}

-- The part of the way from the end of the warm-up to the last step, 0 to 1.
local function progress(opts, step)
  local length = opts.steps - opts.warmup
  return math.min(math.max((step - opts.warmup) / math.max(length, 1), 0), 1)
end

-- Put the warm-up before a function of the step.
local function warmed(opts, after)
  return function(step)
    if type(step) ~= "number" then
      errors.raise("schedule: step is %s, expected a number", errors.show(step))
    end
    if step < opts.warmup then return opts.max * math.max(step, 0) / opts.warmup end
    return after(step)
  end
end

-- A schedule that goes from max to min on the curve shape(p): 1 at p = 0, 0 at p = 1.
local function falling(who, opts, shape)
  opts = options.check(who, opts, { steps = STEPS, warmup = WARMUP, max = MAX, min = MIN })
  if opts.warmup > opts.steps then
    errors.raise("%s: warmup is %d steps of %d in all, expected at most those", who, opts.warmup,
      opts.steps)
  end
  return warmed(opts, function(step)
    return opts.min + (opts.max - opts.min) * shape(progress(opts, step))
  end)
end

--- The same rate always.
--- ```lua
--- assert(gp.optim.schedule.constant{max = 0.1}(1000) == 0.1)
--- ```
---@param opts number|{max: number, warmup?: integer} a number is the rate
---@return fun(step: number): number
function schedule.constant(opts)
  if type(opts) == "number" then opts = { max = opts } end
  opts = options.check("schedule.constant", opts, { max = MAX, warmup = WARMUP })
  return warmed(opts, function() return opts.max end)
end

--- A straight line from max to min.
--- ```lua
--- assert(gp.optim.schedule.linear{steps = 10, max = 1}(5) == 0.5)
--- ```
---@param opts {steps: integer, max: number, min?: number, warmup?: integer}
---@return fun(step: number): number
function schedule.linear(opts)
  return falling("schedule.linear", opts, CURVES.linear)
end

--- Half a cosine wave from max to min.
--- ```lua
--- local lr = gp.optim.schedule.cosine{steps = 1000, warmup = 100, max = 3e-4, min = 3e-5}
--- assert(lr(50) == 1.5e-4 and lr(1000) == 3e-5)
--- ```
---@param opts {steps: integer, max: number, min?: number, warmup?: integer}
---@return fun(step: number): number
function schedule.cosine(opts)
  return falling("schedule.cosine", opts, CURVES.cosine)
end

--- A staircase: after every `every` steps (the warm-up not counted) the rate is multiplied by
--- factor.
--- ```lua
--- local lr = gp.optim.schedule.step{max = 1, every = 10, factor = 0.5}
--- assert(lr(10) == 1 and lr(11) == 0.5)
--- ```
---@param opts {max: number, every: integer, factor?: number, warmup?: integer} factor: 0.1
---@return fun(step: number): number
function schedule.step(opts)
  opts = options.check("schedule.step", opts, {
    max = MAX, warmup = WARMUP, every = STEPS,
    factor = { type = "number", above = 0, max = 1, default = 0.1 },
  })
  return warmed(opts, function(step)
    return opts.max * opts.factor ^ (math.max(step - opts.warmup - 1, 0) // opts.every)
  end)
end

--- Multiplied by factor after every step, the warm-up not counted; never below min.
--- ```lua
--- local lr = gp.optim.schedule.exponential{max = 1, factor = 0.5}
--- assert(lr(1) == 1 and lr(3) == 0.25)
--- ```
---@param opts {max: number, factor: number, min?: number, warmup?: integer}
---@return fun(step: number): number
function schedule.exponential(opts)
  opts = options.check("schedule.exponential", opts, {
    max = MAX, min = MIN, warmup = WARMUP,
    factor = { type = "number", above = 0, max = 1, required = true },
  })
  return warmed(opts, function(step)
    return math.max(opts.min, opts.max * opts.factor ^ math.max(step - opts.warmup - 1, 0))
  end)
end

-- Where the phases of a cycle end, counted from 0, and the rates between which they go.
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

--- One cycle (Smith and Topin 2019): from `first` up to `max` during the part `rise` of the steps,
--- then down to `last`. With three phases it comes down to `first` as fast as it rose, and to
--- `last` in the steps that are left. Momentum stays as it is.
--- Errors: a rise that is not between 0 and 1, or too short for the steps.
--- ```lua
--- local lr = gp.optim.schedule.one_cycle{max = 0.1, steps = 10}
--- assert(lr(3) == 0.1 and lr(10) < 1e-6)
--- ```
---@param opts gpipe.OneCycleOptions
---@return fun(step: number): number
function schedule.one_cycle(opts)
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
  return warmed({ warmup = 0 }, function(step)
    local at, from, i = math.min(math.max(step, 1), opts.steps) - 1, 0, 1
    while i < #phases and at > phases[i][1] do from, i = phases[i][1], i + 1 end
    local last, low, high = table.unpack(phases[i])
    return high + (low - high) * curve((at - from) / (last - from))
  end)
end

--- A warm-up alone: up to `max` in `steps` steps, then constant; or before another schedule, whose
--- rate is multiplied by step / steps meanwhile.
--- ```lua
--- local lr = gp.optim.schedule.warmup{steps = 10, schedule = function(step) return 1 / step end}
--- assert(lr(5) == 0.1 and lr(20) == 0.05)
--- ```
---@param opts {steps: integer, max?: number, schedule?: fun(step: number): number} one of the two
---@return fun(step: number): number
function schedule.warmup(opts)
  local who = "schedule.warmup"
  opts = options.check(who, opts, {
    steps = STEPS, max = { type = "number", min = 0, below = math.huge },
    schedule = { type = "callable" },
  })
  if (opts.max == nil) == (opts.schedule == nil) then
    errors.raise("%s: expected one of max and schedule", who)
  end
  if opts.max then return schedule.constant { max = opts.max, warmup = opts.steps } end
  return function(step) return opts.schedule(step) * math.min(math.max(step, 0) / opts.steps, 1) end
end

return namespace("gp.optim.schedule", schedule)
