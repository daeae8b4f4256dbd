-- lua/gpipe/draw/curves/svg.lua - curves as a figure that a paper can print.
--
-- What falls on one point is a faint band from the least to the largest value, the mean a line;
-- where curves are smoothed the smoothed one is the line.

local axis = require "gpipe.draw.axis"
local escape = require "gpipe.io.escape"
local palette = require "gpipe.draw.palette"
local sheet = require "gpipe.draw.svg"

local svg = {}

local place = escape.place
local INK, FAINT, GRID, MARGIN = sheet.INK, sheet.FAINT, sheet.GRID, sheet.MARGIN

local WIDTH, HEIGHT = 760, 260 -- of a plot, in points
local HEADING, BELOW, LINE = 34, 44, 18

--- Points of a curve: two for each point of paper are more than a printer shows.
svg.POINTS = WIDTH

-- ---- lines -------------------------------------------------------------------------------------

-- "M0 1L2 3...": of a list of x and a list of y.
local function path_of(page, xs, ys)
  local parts = {}
  for i, x in ipairs(xs) do
    parts[i] = ("%s%s %s"):format(i == 1 and "M" or "L", place(page.at_x(x)),
      place(page.at_y(ys[i])))
  end
  return table.concat(parts)
end

-- The area between the least and the largest values.
local function band_of(page, curve)
  local there, back = {}, {}
  for i, x in ipairs(curve.x) do
    there[i] = ("%s %s"):format(place(page.at_x(x)), place(page.at_y(curve.high[i])))
    back[#curve.x - i + 1] = ("%s %s"):format(place(page.at_x(x)), place(page.at_y(curve.low[i])))
  end
  return "M" .. table.concat(there, "L") .. "L" .. table.concat(back, "L") .. "Z"
end

local function is_band(curve)
  for i, low in ipairs(curve.low) do
    if curve.high[i] > low then return true end
  end
  return false
end

local function dash_of(curve)
  local dash = palette.dash(curve.hue, curve.dash)
  return dash == "" and "" or (' stroke-dasharray="%s"'):format(dash)
end

local function draw_curve(out, page, curve, smoothed)
  local colour = palette.light(curve.hue)
  if is_band(curve) then
    out[#out + 1] = ('<path d="%s" fill="%s" fill-opacity="0.18"/>'):format(band_of(page, curve),
      colour)
  end
  local line = '<path class="curve" d="%s" fill="none" stroke="%s" stroke-width="%s" '
    .. 'stroke-linejoin="round"%s/>'
  if smoothed then
    out[#out + 1] = line:format(path_of(page, curve.x, curve.mean), colour, "0.8",
      ' stroke-opacity="0.35"'):gsub(' class="curve"', "")
  end
  out[#out + 1] = line:format(path_of(page, curve.x, smoothed and curve.smooth or curve.mean),
    colour, "1.6", dash_of(curve))
  if #curve.x == 1 then
    out[#out + 1] = ('<circle cx="%s" cy="%s" r="3" fill="%s"/>'):format(
      place(page.at_x(curve.x[1])), place(page.at_y(curve.mean[1])), colour)
  end
end

-- ---- axes --------------------------------------------------------------------------------------

local function grid(out, page, opts)
  local small = ('font-size="10.5" fill="%s"'):format(FAINT)
  local lines = {}
  for _, tick in ipairs(page.y.ticks) do
    local y = page.at_y(tick.at)
    lines[#lines + 1] = ("M%s %sh%s"):format(place(page.left), place(y), place(WIDTH))
    sheet.text(out, page.left - 6, y + 3.5, tick.text, small .. ' text-anchor="end"')
  end
  for _, tick in ipairs(page.x.ticks) do
    local x = page.at_x(tick.at)
    lines[#lines + 1] = ("M%s %sv4"):format(place(x), place(page.top + HEIGHT))
    sheet.text(out, x, page.top + HEIGHT + 16, tick.text, small .. ' text-anchor="middle"')
  end
  out[#out + 1] = ('<path d="%s" stroke="%s" stroke-width="0.7" fill="none"/>'):format(
    table.concat(lines), GRID)
  out[#out + 1] = ('<path d="M%s %sh%s" stroke="%s" fill="none"/>'):format(place(page.left),
    place(page.top + HEIGHT), place(WIDTH), FAINT)
  sheet.text(out, page.left + WIDTH / 2, page.top + HEIGHT + 31,
    page.unit or opts.time and ("time (%s)"):format(page.x.unit) or "step",
    ('font-size="11" text-anchor="middle" fill="%s"'):format(FAINT))
end

-- ---- legend ------------------------------------------------------------------------------------

-- A line as in the plot and words; entries that do not fit begin a new line.
local function entry(out, page, at, words, line)
  local width = sheet.text_width(words, 11) + 42
  if at.x > page.left and at.x + width > page.left + WIDTH then
    at.x, at.y = page.left, at.y + LINE
  end
  out[#out + 1] = ('<path d="M%s %sh18" stroke-width="3" fill="none"%s/>'):format(place(at.x),
    place(at.y + 6), line)
  sheet.text(out, at.x + 24, at.y + 10, words, ('font-size="11" fill="%s"'):format(INK))
  at.x = at.x + width
end

local function value_text(curve)
  local words = axis.number(curve.last)
  return curve.left_out > 0 and ("%s (%d left out)"):format(words, curve.left_out) or words
end

-- Several names of several runs: what each dash means, then each run once with all its values.
local function crossed_legend(out, page, panel, at)
  for n, name in ipairs(panel.names) do
    local dash = palette.dash(1, n)
    entry(out, page, at, name, (' stroke="%s"%s'):format(FAINT,
      dash == "" and "" or (' stroke-dasharray="%s"'):format(dash)))
  end
  at.x, at.y = page.left, at.y + LINE
  local i = 1
  while panel.curves[i] do
    local curve, values = panel.curves[i], {}
    while panel.curves[i] and panel.curves[i].hue == curve.hue do
      values[#values + 1] = value_text(panel.curves[i])
      i = i + 1
    end
    entry(out, page, at, curve.part .. ": " .. table.concat(values, ", "),
      (' stroke="%s"'):format(palette.light(curve.hue)))
  end
end

-- Returns the lower edge.
local function legend(out, page, panel)
  local at, first = { x = page.left, y = page.top + HEIGHT + BELOW }, panel.curves[1]
  if #panel.curves == 1 and first.label == "" and first.left_out == 0 then return at.y end
  if panel.names then
    crossed_legend(out, page, panel, at)
  else
    for _, curve in ipairs(panel.curves) do
      entry(out, page, at, curve.label .. ": " .. value_text(curve),
        (' stroke="%s"%s'):format(palette.light(curve.hue), dash_of(curve)))
    end
  end
  return at.y + LINE
end

-- ---- the whole ---------------------------------------------------------------------------------

-- Places of a panel whose upper edge is `top`.
local function layout(panel, top, opts)
  local page = { left = MARGIN + 56, top = top + HEADING, unit = panel.unit,
    x = axis.new(panel.x[1], panel.x[2], { most = 9, time = opts.time }),
    y = axis.new(panel.y[1], panel.y[2], { most = 6, log = opts.log }) }
  function page.at_x(value) return page.left + page.x:place(value) * WIDTH end
  function page.at_y(value) return page.top + HEIGHT - 4 - page.y:place(value) * (HEIGHT - 14) end
  return page
end

local function draw_panel(out, panel, top, opts)
  local page = layout(panel, top, opts)
  sheet.text(out, page.left, page.top - 12, panel.title,
    ('font-size="14" font-weight="bold" fill="%s"'):format(INK))
  grid(out, page, opts)
  for _, curve in ipairs(panel.curves) do
    draw_curve(out, page, curve, (opts.smooth or 0) > 0)
  end
  return legend(out, page, panel)
end

--- Draw panels as an SVG document, one below the other.
---@param panels gpipe.Panel[]
---@param opts {smooth?: number, log?: boolean, time?: boolean, title?: string}
---@return string
function svg.render(panels, opts)
  local out, bottom, titles = {}, MARGIN, {}
  for i, panel in ipairs(panels) do
    bottom = draw_panel(out, panel, bottom, opts) + MARGIN
    titles[i] = panel.title
  end
  return sheet.document(MARGIN * 2 + 56 + WIDTH + 14, bottom, table.concat(titles, "; "), out)
end

return svg
