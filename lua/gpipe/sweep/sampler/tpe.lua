-- lua/gpipe/sweep/sampler/tpe.lua - the tree-structured Parzen estimator.
--
-- The trials so far are split into the good ones, a tenth, and the others. Candidates are drawn
-- from the density l of the good ones, and the one with the largest l / g is tried next, where g is
-- the density of the others: that maximizes the expected improvement (the paper's equation 5). The
-- first trials are random. Trials that a rule stopped rank after those that ended, by how far they
-- got. Failed trials, and those that still run elsewhere, count among the others, so that their
-- values are not tried again.
--
-- Parameters that every trial has are drawn together, which takes their interaction into account.
-- With multivariate = false, as in the first paper, each parameter is drawn alone. So are
-- parameters that depend on functions of the space; they are judged by the trials that have them.
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

-- Insert a trial into the sorted list of the best `most`; the last one drops out.
local function keep(best, trial, most, is_better)
  if #best == most and not is_better(trial, best[most]) then return end
  local at = #best
  while at > 0 and is_better(trial, best[at]) do at = at - 1 end
  table.insert(best, at + 1, trial)
  best[most + 1] = nil
end

-- The parameters of the good trials and of the others, each in the order of time; nil before there
-- are enough trials. The trials are not sorted: with a thousand of them sorting would take longer
-- than the rest of a suggestion.
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

-- The parameters of the trials that have a value for this name which its domain allows.
local function having(list, name, domain_of)
  local found = {}
  for _, params in ipairs(list) do
    local value = params[name]
    if value ~= nil and domain_of:contains(value) then found[#found + 1] = params end
  end
  return found
end

-- Draw candidates and return the one with the largest l / g. `good` and `others` are lists of
-- parameters.
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

--- Suggest the parameters of trial `number`, given all trials so far.
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
