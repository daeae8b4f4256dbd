-- lua/gpipe/sweep/sampler/normal.lua - draws from a normal distribution between two bounds.

local normal = {}

local TRIES = 64 -- a draw falls outside with a probability of at most 5/6

--- Draw from N(mean, deviation) between two bounds.
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
