-- lua/gpipe/plan/goodput.lua - `gp.goodput`: what part of the time a job spends on steps that last,
-- where hosts fail and checkpoints are written.
--
-- Failures come at random, one in `mtbf` seconds for a host. The job goes on after each from its
-- last checkpoint; what it has done since is lost.

local options = require "gpipe.options"
local text = require "gpipe.plan.text"

local seconds = { type = "number", min = 0, below = math.huge, default = 0 }
local above = { type = "number", above = 0, below = math.huge }

local WHO = "gp.goodput"

local SPEC = {
  mtbf = { type = "number", above = 0, below = math.huge, required = true },
  hosts = { type = "integer", min = 1, default = 1 },
  checkpoint = { type = "number", above = 0, below = math.huge, required = true },
  restart = seconds, interval = above, step = above,
}

-- ---- formulas -----------------------------------------------------------------------------------

local SMALL = 1e-5 -- below, the terms that are left out are under 1e-16 of the sum

-- exp(x) - 1, for small x too: failures may be rare beyond what 1 + x can say.
local function expm1(x)
  if math.abs(x) > SMALL then return math.exp(x) - 1 end
  return x + x * x / 2 + x * x * x / 6
end

-- The expected seconds per interval of work: until `interval` of work and a checkpoint come through
-- without a failure. Each failure costs the time since the last checkpoint and a restart, which may
-- fail too.
-- Source: Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart
-- dumps", equation 20. It is exact for failures that are exponentially distributed.
local function wall(interval, C, M, R)
  return M * math.exp(R / M) * expm1((interval + C) / M)
end

-- Source: Young 1974, "A first order approximation to the optimum checkpoint interval".
local function young(C, M) return math.sqrt(2 * C) * math.sqrt(M) end

-- The interval with the best share: the root of interval / M = 1 - exp(-(interval + C) / M), where
-- the derivative of wall(interval) / interval is zero. The right side is the steeper one until the
-- root, so that iterating it ends there.
local function best_interval(C, M)
  local interval = math.min(young(C, M), M)
  for _ = 1, 200 do
    local next_one = -M * expm1(-(interval + C) / M)
    if math.abs(next_one - interval) <= 1e-12 * interval then break end
    interval = next_one
  end
  return interval
end

-- Source: Daly 2006, equation 37.
local function daly(C, M)
  if C >= 2 * M then return M end
  local x = C / (2 * M)
  return young(C, M) * (1 + math.sqrt(x) / 3 + x / 9) - C
end

-- ---- the call -----------------------------------------------------------------------------------

---@class gpipe.Goodput
---@field goodput number the share of the time that is spent on steps that last, from 0 to 1
---@field mtbf number seconds between failures of the whole job
---@field interval number seconds of work between two checkpoints
---@field steps integer? of them, where `step` is known
---@field young number seconds: sqrt(2 C M)
---@field daly number seconds: Daly's higher order
---@field writing number share of the time that is spent writing checkpoints
---@field lost number share that failures cost: work done again, and restarts
local Goodput = { __name = "gpipe.Goodput" }

function Goodput:__tostring()
  return ("goodput %.2f %%: a failure every %s, a checkpoint of %s every %s%s; %.2f %% of the time "
    .. "is spent writing, %.2f %% is lost with failures"):format(100 * self.goodput,
    text.duration(self.mtbf), text.duration(self.checkpoint), text.duration(self.interval),
    self.steps and (" (%d steps)"):format(self.steps) or "", 100 * self.writing, 100 * self.lost)
end

--- What part of its time a job spends on steps that last, and how often it should save.
---
--- mtbf: mean seconds between failures of one host; hosts: how many the job has (1); any failure
--- stops all. checkpoint: seconds for which the job stands still to save; restart: seconds from a
--- failure to the first step (0). interval: seconds of work between checkpoints (without it the
--- best one); step: seconds of a step, to which the interval is rounded.
---
--- The share is exact for failures that are independent and have no memory (Daly 2006, equation
--- 20), for an endless run.
--- ```lua
--- local g = gp.goodput {mtbf = 5 * 365 * 86400, hosts = 16384, checkpoint = 60, restart = 300}
--- assert(math.abs(g.mtbf / 3600 - 2.67) < 0.01 and g.goodput > 0.85)
--- print(g)
--- ```
---@param opts {mtbf: number, hosts: integer?, checkpoint: number, restart: number?,
--- interval: number?, step: number?}
---@return gpipe.Goodput
return function(opts)
  local o = options.check(WHO, opts, SPEC)
  local C, M, R = o.checkpoint, o.mtbf / o.hosts, o.restart
  local interval, steps = o.interval or best_interval(C, M), nil
  if o.step then
    steps = math.max(1, math.floor(interval / o.step + 0.5))
    interval = steps * o.step
  end
  local all = wall(interval, C, M, R)
  return setmetatable({
    goodput = interval / all, writing = C / all, mtbf = M,
    lost = math.max(0, 1 - (interval + C) / all), -- not below 0 by rounding
    interval = interval, steps = steps, checkpoint = C, restart = R, young = young(C, M),
    daly = daly(C, M),
  }, Goodput)
end
