-- lua/gpipe/sweep/sampler/tpe.lua - the tree-structured Parzen estimator.
--
-- Trials so far are split into the good ones, a tenth, and the others. Of values drawn from the
-- density l of the good ones the one is tried next where l / g is largest, g being the density of
-- the others: that maximizes the expected improvement (the paper's equation 5). The first trials
-- are random. Trials that a rule stopped come after those that ended, by how far they got; failed
-- ones, and those that still run elsewhere, count among the others, so that neither is tried again.
--
-- Parameters that every trial has are drawn together, which sees how they act on each other; with
-- multivariate = false, as in the first paper, every one is judged by itself. So are parameters
-- that functions of the space decide on, by the trials that have them.
-- Sources: J. Bergstra, R. Bardenet, Y. Bengio, B. Kegl, Algorithms for hyper-parameter
-- optimization, NeurIPS 2011; multivariate: S. Falkner, A. Klein, F. Hutter, BOHB, ICML 2018.

local domain = require "gpipe.sweep.domain"
local draws = require "gpipe.sweep.draws"
local parzen = require "gpipe.sweep.sampler.parzen"

local tpe = {}

local FIRST = 10 -- random trials
local GOOD, MOST_GOOD = 0.1, 25 -- share of the trials, and how many at most
local CANDIDATES = 24

---@class gpipe.SweepTpe
---@field space gpipe.SweepSpace
---@field seed integer
---@field multivariate boolean
local Tpe = {}
Tpe.__index = Tpe

-- ---- good and others ---------------------------------------------------------------------------

local RANKS = { complete = 1, stopped = 2 }

-- Whether a trial is better than another one.
local function better(sign)
  return function(a, b)
    if a.state ~= b.state then return RANKS[a.state] < RANKS[b.state] end
    if a.state == "stopped" and a.step ~= b.step then return (a.step or 0) > (b.step or 0) end
    local x, y = sign * (a.value or math.huge), sign * (b.value or math.huge)
    if x ~= y then return x < y end
    return a.number < b.number
  end
end

-- Trials with parameters: the settled ones from the best on, and the others.
local function sorted(trials, sign)
  local settled, others = {}, {}
  for _, trial in pairs(trials) do
    if next(trial.params) then
      table.insert(RANKS[trial.state] and settled or others, trial)
    end
  end
  table.sort(settled, better(sign))
  return settled, others
end

local function in_time(list)
  table.sort(list, function(a, b) return a.number < b.number end)
  return list
end

-- The good ones and the others, each in the order of time.
local function split(self, trials)
  local settled, others = sorted(trials, self.sign)
  if #settled < FIRST then return nil end
  local count = math.min(math.ceil(GOOD * #settled), MOST_GOOD)
  local good = {}
  for i, trial in ipairs(settled) do table.insert(i <= count and good or others, trial) end
  return in_time(good), in_time(others)
end

-- ---- choosing ----------------------------------------------------------------------------------

-- The parameters of trials that have these names, with values that the domains may have.
local function having(trials, names, domains)
  local list = {}
  for _, trial in ipairs(trials) do
    local has = true
    for d, name in ipairs(names) do
      local value = trial.params[name]
      has = has and value ~= nil and domains[d]:contains(value)
    end
    if has then list[#list + 1] = trial.params end
  end
  return list
end

-- Of the candidates the one with the largest l / g.
local function choose(names, domains, good, others, stream)
  local l = parzen.new(names, domains, having(good, names, domains))
  local g = parzen.new(names, domains, having(others, names, domains))
  local best, best_ratio
  for _ = 1, CANDIDATES do
    local values = l:draw(stream)
    local ratio = l:log(values) - g:log(values)
    if not best or ratio > best_ratio then best, best_ratio = values, ratio end
  end
  return best
end

-- The parameters that every trial has.
local function joint_of(space)
  local names, domains = {}, {}
  for _, name in ipairs(space.plain) do
    if domain.is(space.given[name]) then
      names[#names + 1], domains[#domains + 1] = name, space.given[name]
    end
  end
  return names, domains
end

--- The parameters of trial `number`, given all trials so far.
---@param number integer
---@param trials table<integer, table>
---@return table<string, any>
function Tpe:suggest(number, trials)
  local good, others = split(self, trials)
  local together = {}
  if good and self.multivariate and #self.names > 0 then
    together = choose(self.names, self.domains, good, others,
      draws.new(self.seed, number, ""))
  end
  return self.space:evaluate(function(name, from)
    if together[name] ~= nil then return together[name] end
    local stream = draws.new(self.seed, number, name)
    if not good then return from:draw(stream:uniform()) end
    return choose({ name }, { from }, good, others, stream)[name]
  end)
end

--- The sampler of a space.
---@param space gpipe.SweepSpace
---@param opts {seed: integer, multivariate: boolean}
---@param sign integer 1: less is better; -1: more is
---@return gpipe.SweepTpe
function tpe.new(space, opts, sign)
  local names, domains = joint_of(space)
  return setmetatable({ space = space, seed = opts.seed, multivariate = opts.multivariate,
    sign = sign, names = names, domains = domains }, Tpe)
end

return tpe
