-- lua/gpipe/sweep/sampler/parzen.lua - estimates a density of parameters from values that were
-- tried: a sum of kernels, one around each value, and a wide one over the whole domain (the prior).
--
-- The kernel of a number is a normal distribution truncated at the ends of the coordinate. For an
-- integer its mass over the integer's interval counts. The kernel of a choice is that choice mixed
-- with all others. The kernel of several parameters is the product of their kernels.
-- Sources: J. Bergstra et al., Algorithms for hyper-parameter optimization, NeurIPS 2011, section
-- 4.2; S. Watanabe, Tree-structured Parzen estimator: understanding its algorithm components,
-- arXiv:2304.11127, section 3.3 (bandwidths and weights as Optuna has them).

local core = require "gpipe.core"
local normal = require "gpipe.sweep.sampler.normal"

local parzen = {}

local RECENT = 25 -- values that count fully; older ones count less

---@class gpipe.Parzen
---@field names string[]
---@field domains gpipe.SweepDomain[]
---@field count integer kernels, the prior last
---@field weights number[] of kernels
---@field parts table[] of parameters
local Parzen = {}
Parzen.__index = Parzen

-- ---- weights and widths ------------------------------------------------------------------------

-- Weights of n values in the order of time: 1 for the last RECENT, falling evenly to 1 / n for the
-- first.
local function weights_of(n)
  local weights = {}
  for i = 1, n do
    local old = n - RECENT
    weights[i] = i > old and 1 or old == 1 and 1 / n
      or 1 / n + (1 - 1 / n) * (i - 1) / (old - 1)
  end
  weights[n + 1] = 1
  return weights
end

local HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

local function number_part(domain, name, trials)
  local low, high = domain:ends()
  local means, widths, scales = core.kernels(trials, name, domain:is_log(), low, high)
  return { domain = domain, low = low, high = high, means = means, widths = widths,
    scales = scales, known = {} }
end

-- Whether the part is a number without steps, whose kernels have a density at every point.
local function is_smooth(part)
  return part.scales and (part.domain.kind == "uniform" or part.domain.kind == "log")
end

local function choice_part(domain, name, trials)
  local positions, kernels = {}, #trials + 1
  for i, params in ipairs(trials) do positions[i] = domain:position(params[name]) end
  local mixed = 1 / kernels
  return { domain = domain, positions = positions, known = {}, mixed = mixed,
    sum = 1 + mixed * #domain.choices }
end

-- ---- a parameter -------------------------------------------------------------------------------

local function draw_number(part, kernel, stream)
  local x = normal.draw(stream, part.means:get(kernel), part.widths:get(kernel), part.low,
    part.high)
  return part.domain:at(x)
end

local function draw_choice(part, kernel, stream)
  local choices, position = part.domain.choices, part.positions[kernel]
  local u = stream:uniform() * part.sum
  if position and u < 1 then return choices[position] end
  return choices[math.floor(stream:uniform() * #choices) + 1]
end

-- The logarithm of every kernel's mass at an integer, not yet corrected for the truncation.
local function logs_of_integer(part, value, count)
  local logs, from, to = core.numbers(count), part.domain:interval(value)
  logs:add_share(1, math.max(from, part.low), math.min(to, part.high), part.means, part.scales)
  return logs
end

local function logs_of_choice(part, value, count)
  local logs, position = {}, part.domain:position(value)
  local same = math.log((1 + part.mixed) / part.sum)
  local other = math.log(part.mixed / part.sum)
  for i = 1, count do logs[i] = part.positions[i] == position and same or other end
  logs[count] = -math.log(#part.domain.choices) -- the prior
  return core.numbers(logs)
end

-- ---- the density -------------------------------------------------------------------------------

-- The terms that do not depend on values: for each kernel the logarithm of its share of all
-- weights, corrected for the truncation, and the normalization of its smooth parts.
local function constants_of(self)
  local shares = {}
  local smooth = 0
  for _, part in ipairs(self.parts) do smooth = smooth + (is_smooth(part) and 1 or 0) end
  for i, weight in ipairs(self.weights) do
    shares[i] = math.log(weight / self.sum) - smooth * HALF_LOG_2PI
  end
  local constants = core.numbers(shares)
  for _, part in ipairs(self.parts) do
    if part.scales then
      constants:add_share(-1, part.low, part.high, part.means, part.scales)
      if is_smooth(part) then constants:add_logs(part.scales) end
    end
  end
  return constants
end

--- Estimate the density of the parameters of trials, which are in the order of time.
---@param names string[]
---@param domains gpipe.SweepDomain[]
---@param trials table<string, any>[] values by name
---@return gpipe.Parzen
function parzen.new(names, domains, trials)
  local self = setmetatable({ names = names, domains = domains, count = #trials + 1, parts = {},
    weights = weights_of(#trials), sum = 0 }, Parzen)
  for d, name in ipairs(names) do
    local new = domains[d]:is_choice() and choice_part or number_part
    self.parts[d] = new(domains[d], name, trials)
  end
  for _, weight in ipairs(self.weights) do self.sum = self.sum + weight end
  self.constants = constants_of(self)
  return self
end

--- Draw values.
---@param stream gpipe.SweepDraws
---@return table<string, any>
function Parzen:draw(stream)
  local kernel, values = stream:position(self.weights, self.sum), {}
  for d, part in ipairs(self.parts) do
    local draw = part.positions and draw_choice or draw_number
    values[self.names[d]] = draw(part, kernel, stream)
  end
  return values
end

-- The logarithms of a part's kernels at an integer or a choice; many trials share a value, so they
-- are cached.
local function logs_at(part, value, count)
  local logs = part.known[value]
  if not logs then
    logs = (part.positions and logs_of_choice or logs_of_integer)(part, value, count)
    part.known[value] = logs
  end
  return logs
end

--- The logarithm of the density at some values.
---@param values table<string, any>
---@return number
function Parzen:log(values)
  local sums = self.constants:copy()
  for d, part in ipairs(self.parts) do
    local value = values[self.names[d]]
    if is_smooth(part) then
      sums:add_normal(part.domain:coordinate(value), part.means, part.scales)
    else
      sums:add(logs_at(part, value, self.count))
    end
  end
  return sums:log_sum()
end

return parzen
