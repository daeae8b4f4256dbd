-- lua/gpipe/sweep/sampler/random.lua - random search.
--
-- Every value is a function of (seed, trial, name): neither order nor process matters.
-- Source: J. Bergstra, Y. Bengio, Random search for hyper-parameter optimization, JMLR 13, 2012.

local draws = require "gpipe.sweep.draws"

local random = {}

--- Make a sampler: suggest(number) is the parameters of a trial.
---@param space gpipe.SweepSpace
---@param opts {seed: integer}
---@return {suggest: fun(self, number: integer): table}
function random.new(space, opts)
  local sampler = {}
  function sampler.suggest(_, number)
    return space:evaluate(function(name, from)
      return from:draw(draws.new(opts.seed, number, name):uniform())
    end)
  end
  return sampler
end

return random
