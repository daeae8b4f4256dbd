-- lua/gpipe/sweep/sampler/grid.lua - every combination of values, in a fixed order.
--
-- The last name in alphabetical order changes fastest; a range of floats becomes `points` values.
-- With functions in the space the grid is a tree whose branches differ, so all of it is walked
-- once: a path is the list of chosen positions, and the next path advances the last position that
-- can be advanced. Trial n is always entry n of the list, in every process.

local errors = require "gpipe.errors"

local grid = {}

local MOST = 1000000 -- entries; more are a mistake, and would not fit into memory

-- The values of a path, and how many positions there were at each choice. Choices beyond the path
-- take their first position.
local function follow(space, path, points)
  local counts, depth = {}, 0
  local values = space:evaluate(function(_, from)
    depth = depth + 1
    local choices = from:grid(points)
    path[depth] = path[depth] or 1
    counts[depth] = #choices
    return choices[path[depth]]
  end)
  return values, counts
end

-- Advance a path to the next one; false after the last.
local function turn(path, counts)
  for depth = #counts, 1, -1 do
    if path[depth] < counts[depth] then
      path[depth] = path[depth] + 1
      for beyond = depth + 1, #path do path[beyond] = nil end
      return true
    end
  end
  return false
end

--- All entries of the grid of a space.
---@param space gpipe.SweepSpace
---@param points integer values of a range
---@return table[]
function grid.entries(space, points)
  local entries, path = {}, {}
  repeat
    local values, counts = follow(space, path, points)
    entries[#entries + 1] = values
    if #entries > MOST then
      errors.raise("gp.sweep: the grid has more than %d entries, expected fewer (points is %d)",
        MOST, points)
    end
  until not turn(path, counts)
  return entries
end

--- Make a sampler: suggest(number) is the parameters of a trial, nil after the last; `size` is the
--- number of entries.
---@param space gpipe.SweepSpace
---@param opts {points: integer}
---@return {size: integer, suggest: fun(self, number: integer): table?}
function grid.new(space, opts)
  local entries = grid.entries(space, opts.points)
  return { size = #entries, suggest = function(_, number) return entries[number] end }
end

return grid
