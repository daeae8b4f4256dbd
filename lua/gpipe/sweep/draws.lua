-- lua/gpipe/sweep/draws.lua - random numbers of a sweep: streams named by (seed, trial, what for).
--
-- The draws of a trial depend on its number and not on earlier draws, so that parallel processes,
-- and a sweep that resumes after it was killed, draw the same values.
-- Source: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014
-- (SplitMix64).

local draws = {}

local GOLDEN = -7046029254386353131 -- 0x9e3779b97f4a7c15: odd, 2^64 over the golden ratio

local function mix(z)
  z = (z ~ (z >> 30)) * -4658895280553007687 -- 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * -7723592293110705685 -- 0x94d049bb133111eb
  return z ~ (z >> 31)
end

---@class gpipe.SweepDraws
---@field state integer
local Draws = {}
Draws.__index = Draws

--- The stream of a seed, a trial and a name; each combination has its own.
---@param seed integer
---@param trial integer
---@param name string
---@return gpipe.SweepDraws
function draws.new(seed, trial, name)
  local state = mix(mix(seed + GOLDEN) + trial * GOLDEN)
  for i = 1, #name do state = mix(state + name:byte(i) + GOLDEN) end
  return setmetatable({ state = state }, Draws)
end

--- A number from 0 up to 1, 1 excluded, with 53 random bits.
---@return number
function Draws:uniform()
  self.state = self.state + GOLDEN
  return (mix(self.state) >> 11) * 2.0 ^ -53
end

--- A number of the standard normal distribution (Box and Muller, 1958).
---@return number
function Draws:normal()
  local radius = math.sqrt(-2 * math.log(1 - self:uniform()))
  return radius * math.cos(2 * math.pi * self:uniform())
end

--- A position in a list of weights, each as likely as its share of the sum.
---@param weights number[]
---@param sum number
---@return integer
function Draws:position(weights, sum)
  local left = self:uniform() * sum
  for i = 1, #weights - 1 do
    left = left - weights[i]
    if left < 0 then return i end
  end
  return #weights
end

return draws
