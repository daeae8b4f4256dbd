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
---@field better fun(a: table, b: table): boolean
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

-- Put a trial into the list of the best `most`, which is sorted; what falls out is dropped.
local function keep(best, trial, most, is_better)
  if #best == most and not is_better(trial, best[most]) then return end
  local at = #best
  while at > 0 and is_better(trial, best[at]) do at = at - 1 end
  table.insert(best, at + 1, trial)
  best[most + 1] = nil
end

-- Parameters of the good ones and of the others, each in the order of time; nil before there are
-- enough. Sorting a thousand trials for each suggestion would take longer than all the rest.
local function split(self, trials)
  local last, settled = 0, 0
  for number, trial in pairs(trials) do
    last = math.max(last, number)
    if RANKS[trial.state] then settled = settled + 1 end
  end
  if settled < FIRST then return nil end
  local best, most = {}, math.min(math.ceil(GOOD * settled), MOST_GOOD)
  for _, trial in pairs(trials) do
    if RANKS[trial.state] then keep(best, trial, most, self.better) end
  end
  local is_good, good, others = {}, {}, {}
  for _, trial in ipairs(best) do is_good[trial] = true end
  for number = 1, last do
    local trial = trials[number]
    if trial and next(trial.params) then
      local list = is_good[trial] and good or others
      list[#list + 1] = trial.params
    end
  end
  return good, others
end

-- ---- choosing ----------------------------------------------------------------------------------

-- The parameters of those that have a name, with a value that the domain may have.
local function having(list, name, domain_of)
  local found = {}
  for _, params in ipairs(list) do
    local value = params[name]
    if value ~= nil and domain_of:contains(value) then found[#found + 1] = params end
  end
  return found
end

-- Of the candidates the one with the largest l / g. `good` and `others` are lists of parameters.
local function choose(names, domains, good, others, stream)
  local l, g = parzen.new(names, domains, good), parzen.new(names, domains, others)
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
    return choose({ name }, { from }, having(good, name, from), having(others, name, from),
      stream)[name]
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
    better = better(sign), names = names, domains = domains }, Tpe)
end

return tpe
