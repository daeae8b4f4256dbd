-- scripts/bench/sweep.lua - how well sweeps search, and what they cost.
--
--   scripts/bench/sweep [--seeds N] [--trials N] [--overhead N]
--
-- sweep.FUNCTION.tpe, .each, .random: the median over seeds of the least value of 50 trials, above
-- the least there is (tests/support/landscapes.lua); tpe must be below random on every function.
-- scripts/bench/sweep_optuna.py prints Optuna's. sweep.overhead.*: what a sweep of 1,000 trials of
-- 1 ms adds to each trial, in processor time, because machines are shared.

package.path = "./?.lua;" .. package.path
local figure = dofile "scripts/bench/figure.lua"
local flags = require "gpipe.flags"
local gp = require "gpipe"
local landscapes = require "tests.support.landscapes"
local random = require "gpipe.sweep.sampler.random"
local space = require "gpipe.sweep.space"
local tpe = require "gpipe.sweep.sampler.tpe"

local opt = flags.parse("What sweeps find, and what they cost.", {
  { "--seeds N", 20, "searches; the median counts" },
  { "--trials N", 50, "trials of a search" },
  { "--overhead N", 1000, "trials of 1 ms" },
}, arg)

local function median_of(landscape, new)
  local found = {}
  for seed = 1, opt.seeds do
    found[seed] = landscapes.search(landscape, new(space.new(landscape.space), seed), opt.trials)
  end
  return figure.median(found) - landscape.least
end

local function tpe_of(multivariate)
  return function(of, seed) return tpe.new(of, { seed = seed, multivariate = multivariate }, 1) end
end

for _, landscape in ipairs(landscapes) do
  local by_chance = median_of(landscape, function(of, seed) return random.new(of, { seed = seed }) end)
  figure.print(("sweep.%s.tpe"):format(landscape.name), median_of(landscape, tpe_of(true)), "above",
    "<=", by_chance)
  figure.print(("sweep.%s.each"):format(landscape.name), median_of(landscape, tpe_of(false)),
    "above")
  figure.print(("sweep.%s.random"):format(landscape.name), by_chance, "above")
end

-- ---- cost --------------------------------------------------------------------------------------

local folder = os.tmpname()
os.remove(folder)
local SPACE = { lr = gp.sweep.log(1e-5, 1), width = gp.sweep.int_log(8, 1024),
  layers = gp.sweep.int(1, 12), kind = gp.sweep.choice { 1, 2, 3 }, p = gp.sweep.uniform(0, 1) }

local function milliseconds(method)
  local s = gp.sweep { name = method, dir = folder, method = method, trials = opt.overhead,
    quiet = true, space = SPACE }
  local spent, begin = 0, os.clock()
  s:run(function(params)
    local from = os.clock()
    repeat local now = os.clock() until now - from >= 1e-3
    spent = spent + os.clock() - from
    return (math.log(params.lr) + 5) ^ 2 + params.p
  end)
  return (os.clock() - begin - spent) / opt.overhead * 1000
end

for _, method in ipairs { "random", "tpe" } do
  figure.print("sweep.overhead." .. method, milliseconds(method), "ms", "<=", 5)
end
os.execute("rm -r " .. folder)
