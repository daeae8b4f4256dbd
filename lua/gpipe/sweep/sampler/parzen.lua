-- lua/gpipe/sweep/sampler/parzen.lua - a density of parameters from values that were tried: a sum
-- of kernels, one around each of them, and a wide one over the whole domain (the prior).
--
-- A kernel of a number is a normal distribution cut off at the ends of the coordinate, of an
-- integer its mass over the integer's interval; of a choice it is the choice, mixed with all
-- others. A kernel of several parameters is the product of its kernels.
-- Sources: J. Bergstra et al., Algorithms for hyper-parameter optimization, NeurIPS 2011, section
-- 4.2; S. Watanabe, Tree-structured Parzen estimator: understanding its algorithm components,
-- arXiv:2304.11127, section 3.3 (bandwidths and weights as Optuna has them).

local normal = require "gpipe.sweep.sampler.normal"

local parzen = {}

local RECENT = 25 -- of more values the older ones count less
local SHARPEST = 100 -- kernels are no narrower than this part of the range

---@class gpipe.Parzen
---@field names string[]
---@field domains gpipe.SweepDomain[]
---@field count integer kernels, the prior last
---@field weights number[] of kernels
---@field parts table[] of parameters
local Parzen = {}
Parzen.__index = Parzen

-- ---- weights and widths ------------------------------------------------------------------------

-- In the order of time: 1 for the last RECENT, falling evenly to 1 / n for the first.
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

-- As far as the farther neighbour; of the first and the last as far as the only one, so that they
-- are not blurred by a far end of the range.
local function widths_of(means, low, high)
  local order, widths = {}, {}
  for i = 1, #means do order[i] = i end
  table.sort(order, function(a, b) return means[a] < means[b] end)
  for k, i in ipairs(order) do
    local left = k > 1 and means[i] - means[order[k - 1]]
    local right = k < #order and means[order[k + 1]] - means[i]
    widths[i] = math.max(left or right or means[i] - low, right or left or high - means[i])
  end
  return widths
end

local function number_part(domain, values)
  local low, high = domain:ends()
  local range, means = high - low, {}
  for i, value in ipairs(values) do means[i] = domain:coordinate(value) end
  local widths, masses = widths_of(means, low, high), {}
  local least = range / math.min(SHARPEST, #means + 2)
  for i = 1, #means do widths[i] = math.min(math.max(widths[i], least), range) end
  table.insert(means, (low + high) / 2) -- the prior
  table.insert(widths, range)
  for i, mean in ipairs(means) do
    masses[i] = math.log(normal.between((low - mean) / widths[i], (high - mean) / widths[i]))
  end
  return { domain = domain, low = low, high = high, means = means, widths = widths,
    masses = masses, known = {} }
end

local function choice_part(domain, values)
  local positions, kernels = {}, #values + 1
  for i, value in ipairs(values) do positions[i] = domain:position(value) end
  local mixed = 1 / kernels
  return { domain = domain, positions = positions, known = {}, mixed = mixed,
    sum = 1 + mixed * #domain.choices }
end

-- ---- a parameter -------------------------------------------------------------------------------

local function draw_number(part, kernel, stream)
  local x = normal.draw(stream, part.means[kernel], part.widths[kernel], part.low, part.high)
  return part.domain:at(x)
end

local function draw_choice(part, kernel, stream)
  local choices, position = part.domain.choices, part.positions[kernel]
  local u = stream:uniform() * part.sum
  if position and u < 1 then return choices[position] end
  return choices[math.floor(stream:uniform() * #choices) + 1]
end

local HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)

-- The logarithm of every kernel at a value.
local function logs_of_number(part, value, count)
  local logs, from, to = {}, part.domain:interval(value)
  from, to = math.max(from, part.low), math.min(to, part.high)
  local means, widths, masses = part.means, part.widths, part.masses
  for i = 1, count do
    local width = widths[i]
    if from == to then
      local z = (from - means[i]) / width
      logs[i] = -0.5 * z * z - math.log(width) - HALF_LOG_2PI - masses[i]
    else
      logs[i] = math.log(normal.between((from - means[i]) / width, (to - means[i]) / width))
        - masses[i]
    end
  end
  return logs
end

local function logs_of_choice(part, value, count)
  local logs, position = {}, part.domain:position(value)
  local same = math.log((1 + part.mixed) / part.sum)
  local other = math.log(part.mixed / part.sum)
  for i = 1, count do logs[i] = part.positions[i] == position and same or other end
  logs[count] = -math.log(#part.domain.choices) -- the prior
  return logs
end

-- ---- the density -------------------------------------------------------------------------------

--- The density of parameters of trials, in the order of time.
---@param names string[]
---@param domains gpipe.SweepDomain[]
---@param trials table<string, any>[] values by name
---@return gpipe.Parzen
function parzen.new(names, domains, trials)
  local self = setmetatable({ names = names, domains = domains, count = #trials + 1, parts = {},
    weights = weights_of(#trials), sum = 0 }, Parzen)
  for _, weight in ipairs(self.weights) do self.sum = self.sum + weight end
  for d, name in ipairs(names) do
    local values = {}
    for i, params in ipairs(trials) do values[i] = params[name] end
    self.parts[d] = domains[d]:is_choice() and choice_part(domains[d], values)
      or number_part(domains[d], values)
  end
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

--- The logarithm of the density at values.
---@param values table<string, any>
---@return number
function Parzen:log(values)
  local count, sums, most = self.count, {}, -math.huge
  for i = 1, count do sums[i] = 0 end
  for d, part in ipairs(self.parts) do
    local value = values[self.names[d]]
    local logs = part.known[value]
    if not logs then
      logs = (part.positions and logs_of_choice or logs_of_number)(part, value, count)
      part.known[value] = logs
    end
    for i = 1, count do sums[i] = sums[i] + logs[i] end
  end
  for i = 1, count do if sums[i] > most then most = sums[i] end end
  local sum = 0
  for i = 1, count do sum = sum + self.weights[i] * math.exp(sums[i] - most) end
  return most + math.log(sum / self.sum)
end

return parzen
