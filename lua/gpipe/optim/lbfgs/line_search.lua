-- gpipe/optim/lbfgs/line_search.lua - finds a step along a line that meets the strong Wolfe
-- conditions.
-- Source: Nocedal and Wright 2006, "Numerical Optimization", algorithms 3.5 and 3.6; the choices
-- that the book leaves open are PyTorch's.

local ENOUGH, FLAT, MOST = 1e-4, 0.9, 25 -- c1, c2, and how many points are tried

-- A point on the line: its step t, loss f, gradient g and slope.
local function point_at(problem, t)
  local f, g = problem.at(t)
  problem.tried = problem.tried + 1
  return { t = t, f = f, g = g, slope = g:dot(problem.direction):item() }
end

-- The minimum, between low and high, of the cubic through two points with their slopes.
local function cubic(a, b, low, high)
  if a.t > b.t then a, b = b, a end
  low, high = low or a.t, high or b.t
  local d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
  local square = d1 * d1 - a.slope * b.slope
  if square ~= square or square < 0 then return (low + high) / 2 end
  local d2 = math.sqrt(square)
  local t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
  return math.min(math.max(t, low), high)
end

local function is_enough(start, p) return p.f <= start.f + ENOUGH * p.t * start.slope end
local function is_flat(start, p) return math.abs(p.slope) <= -FLAT * start.slope end

-- Return two points with a good one between them; one point that is good; or nothing.
local function bracket(problem, start, t)
  local before, p = start, point_at(problem, t)
  for i = 0, MOST - 1 do
    if not is_enough(start, p) or (i > 1 and p.f >= before.f) then return before, p, i end
    if is_flat(start, p) then return p, nil, i end
    if p.slope >= 0 then return before, p, i end
    local next_t = cubic(before, p, p.t + 0.01 * (p.t - before.t), p.t * 10)
    before, p = p, point_at(problem, next_t)
  end
  return start, p, MOST
end

-- Choose a step that is not too near to an end of the bracket, because such a step would hardly
-- shrink the bracket.
local function within(low, high, was_near)
  local t, least, most = cubic(low, high), math.min(low.t, high.t), math.max(low.t, high.t)
  local margin = 0.1 * (most - least)
  if math.min(most - t, t - least) >= margin then return t, false end
  if not (was_near or t >= most or t <= least) then return t, true end
  return math.abs(t - most) < math.abs(t - least) and most - margin or least + margin, false
end

local function narrow(problem, start, low, high, tried, tolerance)
  local near = false
  if high.f < low.f then low, high = high, low end
  for _ = tried, MOST - 1 do
    if math.abs(high.t - low.t) * problem.size < tolerance then break end
    local t
    t, near = within(low, high, near)
    local p = point_at(problem, t)
    if not is_enough(start, p) or p.f >= low.f then
      high = p
    elseif is_flat(start, p) then
      return p
    else
      if p.slope * (high.t - low.t) >= 0 then high = low end
      low = p
    end
  end
  return low
end

--- Search along a direction; return the point where the search ends.
---@param problem {at: fun(t: number): number, gpipe.Tensor; direction: gpipe.Tensor; size: number}
---@param start {t: number, f: number, g: gpipe.Tensor, slope: number}
---@param t number the first step that is tried
---@param tolerance number a bracket smaller than this ends the search
---@return {t: number, f: number, g: gpipe.Tensor} point
---@return integer tried
return function(problem, start, t, tolerance)
  problem.tried = 0
  local low, high, tried = bracket(problem, start, t)
  if high then low = narrow(problem, start, low, high, tried, tolerance) end
  return low, problem.tried
end
