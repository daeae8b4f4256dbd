-- gpipe/optim/schedule.lua - learning rates as plain functions of the step, counted from 1.
--
-- Each function here checks its options and returns a function of the step; to use it, set
-- `opt.lr = lr(step)` before `opt:step()`. (The rate of plateau depends on a measured value, not on
-- the step.) During the first `warmup` steps the rate rises in a straight line to `max`, which it
-- reaches at step `warmup`. It reaches `min` at step `steps`, and stays there.

local cycles = require "gpipe.optim.cycles"
local errors = require "gpipe.errors"
local namespace = require "gpipe.namespace"
local options = require "gpipe.options"
local plateau = require "gpipe.optim.plateau"

local schedule = {
  plateau = plateau.plateau, one_cycle = cycles.one_cycle, cyclic = cycles.cyclic,
  warm_restarts = cycles.warm_restarts,
}

local MAX = { type = "number", min = 0, below = math.huge, required = true }
local MIN = { type = "number", min = 0, below = math.huge, default = 0 }
local WARMUP = { type = "integer", min = 0, default = 0 }
local STEPS = { type = "integer", min = 1, required = true }

local CURVES = cycles.CURVES

-- The progress from the end of the warm-up to the last step, 0 to 1.
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

--- A constant rate.
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

--- A staircase: the rate is multiplied by factor after every `every` steps (not counting the
--- warm-up).
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

-- Check that the steps are in ascending order.
local function rising_steps(list)
  local before = 0
  for _, step in ipairs(list) do
    if math.type(step) ~= "integer" or step <= before then
      return "steps in rising order such as {30, 80}"
    end
    before = step
  end
  if before == 0 then return "steps in rising order such as {30, 80}" end
end

--- A staircase with given steps: the rate is multiplied by factor after each of the steps `at` (not
--- counting the warm-up).
--- Errors: steps that do not rise.
--- ```lua
--- local lr = gp.optim.schedule.multi_step{max = 1, at = {30, 80}, factor = 0.5}
--- assert(lr(30) == 1 and lr(31) == 0.5 and lr(81) == 0.25)
--- ```
---@param opts {max: number, at: integer[], factor?: number, warmup?: integer} factor: 0.1
---@return fun(step: number): number
function schedule.multi_step(opts)
  opts = options.check("schedule.multi_step", opts, {
    max = MAX, warmup = WARMUP, at = { type = "table", required = true, check = rising_steps },
    factor = { type = "number", above = 0, below = math.huge, default = 0.1 },
  })
  return warmed(opts, function(step)
    local passed = 0
    for _, last in ipairs(opts.at) do
      if step - opts.warmup > last then passed = passed + 1 end
    end
    return opts.max * opts.factor ^ passed
  end)
end

--- A rate that falls like (1 - p)^power from max at step 1 to min, which it reaches at the step
--- after `steps`.
--- ```lua
--- local lr = gp.optim.schedule.polynomial{max = 1, steps = 4, power = 2}
--- assert(lr(1) == 1 and lr(3) == 0.25 and lr(5) == 0)
--- ```
---@param opts {max: number, steps: integer, power?: number, min?: number, warmup?: integer} power: 1
---@return fun(step: number): number
function schedule.polynomial(opts)
  opts = options.check("schedule.polynomial", opts, {
    max = MAX, min = MIN, steps = STEPS, warmup = WARMUP,
    power = { type = "number", above = 0, below = math.huge, default = 1 },
  })
  return warmed(opts, function(step)
    local p = math.min(math.max(step - opts.warmup - 1, 0) / opts.steps, 1)
    return opts.min + (opts.max - opts.min) * (1 - p) ^ opts.power
  end)
end

-- Check the parts: each has a function, and all but the last the number of steps it is used for.
local function parts(list)
  for i, part in ipairs(list) do
    local wanted = i < #list and 2 or 1
    local good = type(part) == "table" and type(part[1]) == "function"
      and (wanted == 1 or math.type(part[2]) == "integer" and part[2] > 0)
    if not good then
      return ("a list of {schedule, steps}; part %d is %s"):format(i, errors.show(part))
    end
  end
  if #list == 0 then return "a list of {schedule, steps}" end
end

--- Several schedules one after the other: a list of {schedule, steps}. Each counts its own steps
--- from 1. The last one continues without end and needs no number.
--- Errors: a part that is not such a pair.
--- ```lua
--- local s = gp.optim.schedule
--- local lr = s.sequential {{s.constant(0.1), 5}, {s.exponential{max = 1, factor = 0.5}}}
--- assert(lr(5) == 0.1 and lr(6) == 1 and lr(7) == 0.5)
--- ```
---@param list {[1]: fun(step: number): number, [2]: integer?}[]
---@return fun(step: number): number
function schedule.sequential(list)
  list = options.argument("schedule.sequential", "the list", list,
    { type = "table", required = true, check = parts })
  return function(step)
    for i = 1, #list - 1 do
      if step <= list[i][2] then return list[i][1](step) end
      step = step - list[i][2]
    end
    return list[#list][1](step)
  end
end

--- A rate that is multiplied by factor after every step (not counting the warm-up), but never falls
--- below min.
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

--- A warm-up: the rate rises to `max` in `steps` steps and then stays constant. With another
--- schedule, the rate of that one is multiplied by step / steps during the warm-up.
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
