-- lua/gpipe/sweep/sampler/normal.lua - the normal distribution: what lies below a point, and draws
-- between two ends.

local normal = {}

local SQRT2 = math.sqrt(2)

-- exp(x^2) erfc(x) for x >= 0 as a polynomial of t = 1 / (1 + x/2); the error is below 1.2e-7 of
-- the value everywhere. Source: W. Press et al., Numerical Recipes, section 6.2, erfcc.
local function erfc(x)
  local z = math.abs(x)
  local t = 1 / (1 + 0.5 * z)
  local y = t * math.exp(-z * z - 1.26551223 + t * (1.00002368 + t * (0.37409196
    + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807 + t * (-1.13520398
    + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)))))))))
  return x >= 0 and y or 2 - y
end

--- The share of the standard normal distribution below x.
---@param x number
---@return number
function normal.below(x) return 0.5 * erfc(-x / SQRT2) end

--- The share between two points, with all its digits in the tails too.
---@param a number
---@param b number >= a
---@return number
function normal.between(a, b)
  if a > 0 then a, b = -b, -a end
  return math.max(normal.below(b) - normal.below(a), 1e-300)
end

local TRIES = 64 -- a draw falls outside with the chance of 5/6 at most

--- A draw of N(mean, deviation) between two ends.
---@param stream gpipe.SweepDraws
---@param mean number between the ends
---@param deviation number at most their distance
---@param low number
---@param high number
---@return number
function normal.draw(stream, mean, deviation, low, high)
  for _ = 1, TRIES do
    local x = mean + deviation * stream:normal()
    if x >= low and x <= high then return x end
  end
  return mean
end

return normal
