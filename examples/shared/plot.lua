-- examples/shared/plot.lua - curves as text for the terminal and as SVG; for async.lua.
--
-- A curve is {label =, colour =, x = {...}, y = {...}}. The y axis is logarithmic: losses fall by
-- powers of ten.
local plot = {}

-- Functions that map x and y to 0 .. 1 (y = 1 on top), and the limits.
local function scales(curves)
  local right, low, high = 0, math.huge, -math.huge
  for _, curve in ipairs(curves) do
    for i, y in ipairs(curve.y) do
      right, low, high = math.max(right, curve.x[i]), math.min(low, y), math.max(high, y)
    end
  end
  local bottom, top = math.log(low), math.log(math.max(high, low * 1.01))
  return function(x) return x / right end,
    function(y) return (math.log(y) - bottom) / (top - bottom) end,
    { right = right, low = low, high = high }
end

--- Curves in a grid of characters; the mark of a curve is the letter before it in the legend.
---@return string
function plot.text(curves, width, height)
  local across, up, limits = scales(curves)
  local grid = {}
  for row = 1, height do grid[row] = {} end
  for c, curve in ipairs(curves) do
    for i, y in ipairs(curve.y) do
      local row = height - math.floor(up(y) * (height - 1) + 0.5)
      local column = 1 + math.floor(across(curve.x[i]) * (width - 1) + 0.5)
      grid[row][column] = grid[row][column] and "*" or string.char(96 + c)
    end
  end
  local lines = {}
  for row = 1, height do
    local cells = {}
    for column = 1, width do cells[column] = grid[row][column] or " " end
    local value = row == 1 and limits.high or row == height and limits.low
    lines[row] = ("%8s |%s"):format(value and ("%.3g"):format(value) or "", table.concat(cells))
  end
  lines[height + 1] = ("%8s +%s %g"):format("", ("-"):rep(width), limits.right)
  local legend = {}
  for c, curve in ipairs(curves) do legend[c] = string.char(96 + c) .. " " .. curve.label end
  lines[height + 2] = (" "):rep(10) .. table.concat(legend, "   ") .. "   * several"
  return table.concat(lines, "\n")
end

-- of the picture and its margins, in pixels
local WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 360, 64, 64, 48

local function tag(...) return (string.format(...)) end

-- The frame: values at the ends of both axes, and one line for each power of ten between.
local function axes(limits, up, title, below)
  local parts = { tag('<text x="%d" y="24" font-size="16">%s</text>', LEFT, title) }
  local function level(value)
    local y = TOP + (1 - up(value)) * (HEIGHT - TOP - BOTTOM)
    parts[#parts + 1] = tag('<path d="M%d %.1fH%d" stroke="#d0d4da"/>', LEFT, y, WIDTH - 16)
    parts[#parts + 1] = tag('<text x="%d" y="%.1f" text-anchor="end">%.3g</text>', LEFT - 8, y + 4,
      value)
  end
  level(limits.low)
  level(limits.high)
  for power = math.ceil(math.log(limits.low, 10)), math.floor(math.log(limits.high, 10)) do
    if up(10.0 ^ power) > 0.06 and up(10.0 ^ power) < 0.94 then level(10.0 ^ power) end
  end
  parts[#parts + 1] = tag('<text x="%d" y="%d">0</text><text x="%d" y="%d" text-anchor="end">%g '
    .. '%s</text>', LEFT,
    HEIGHT - BOTTOM + 20, WIDTH - 16, HEIGHT - BOTTOM + 20, limits.right, below)
  return table.concat(parts, "\n")
end

--- Curves as an SVG picture.
---@return string
function plot.svg(curves, title, below)
  local across, up, limits = scales(curves)
  local parts = {
    tag('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
      .. 'font-size="12">', WIDTH,
      HEIGHT), '<rect width="100%" height="100%" fill="white"/>', axes(limits, up, title, below),
  }
  for c, curve in ipairs(curves) do
    local points = {}
    for i, y in ipairs(curve.y) do
      points[i] = tag("%.1f,%.1f", LEFT + across(curve.x[i]) * (WIDTH - LEFT - 16),
        TOP + (1 - up(y)) * (HEIGHT - TOP - BOTTOM))
    end
    parts[#parts + 1] = tag('<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>',
      table.concat(points, " "), curve.colour)
    parts[#parts + 1] = tag('<text x="%d" y="44" fill="%s">%s</text>', LEFT + 160 * (c - 1),
      curve.colour, curve.label)
  end
  parts[#parts + 1] = "</svg>\n"
  return table.concat(parts, "\n")
end

return plot
