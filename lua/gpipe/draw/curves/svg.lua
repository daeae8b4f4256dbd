-- lua/gpipe/draw/curves/svg.lua - curves as a figure that a paper can print.
--
-- What falls on one point is a faint band from the least to the largest value, the mean a line;
-- where curves are smoothed the smoothed one is the line.

local axis = require "gpipe.draw.axis"
local colours = require "gpipe.draw.colours"
local escape = require "gpipe.io.escape"
local panels = require "gpipe.draw.curves.panel"
local svg = require "gpipe.draw.svg"

local figure = {}

local place = escape.place
local INK, FAINT, GRID = colours.day.ink, colours.day.faint, colours.day.line

local WIDTH, HEIGHT = 760, 260 -- of a plot, in points
local HEADING, BELOW, LINE = 34, 44, 18

--- Points of a curve: two for each point of paper are more than a printer shows.
figure.POINTS = WIDTH

-- ---- lines -------------------------------------------------------------------------------------

local function path_of(page, xs, ys)
  return svg.through(#xs, function(i) return page.at_x(xs[i]), page.at_y(ys[i]) end)
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

-- Lengths of strokes and gaps: the second name of a run has the second, and so on.
local DASHES = { "", "6 3", "2 3", "9 3 2 3" }

-- The attribute of a line's dashes. What has the colour of an earlier curve is dashed too.
local function dashes(hue, dash)
  local lengths = DASHES[(dash - 1 + (hue - 1) // #colours.curves) % #DASHES + 1]
  return lengths == "" and "" or (' stroke-dasharray="%s"'):format(lengths)
end

local function draw_curve(out, page, curve, smoothed)
  local colour = colours.curve(curve.hue).day
  if is_band(curve) then
    svg.path(out, band_of(page, curve), ('fill="%s" fill-opacity="0.18"'):format(colour))
  end
  local line = '<path class="curve" d="%s" fill="none" stroke="%s" stroke-width="%s" '
    .. 'stroke-linejoin="round"%s/>'
  if smoothed then
    out[#out + 1] = line:format(path_of(page, curve.x, curve.mean), colour, "0.8",
      ' stroke-opacity="0.35"'):gsub(' class="curve"', "")
  end
  out[#out + 1] = line:format(path_of(page, curve.x, smoothed and curve.smooth or curve.mean),
    colour, "1.6", dashes(curve.hue, curve.dash))
  if #curve.x == 1 then
    out[#out + 1] = ('<circle cx="%s" cy="%s" r="3" fill="%s"/>'):format(
      place(page.at_x(curve.x[1])), place(page.at_y(curve.mean[1])), colour)
  end
end

-- ---- axes --------------------------------------------------------------------------------------

local function axes(out, page, opts)
  local lines = {}
  for i, tick in ipairs(page.y.ticks) do
    local y = page.at_y(tick.at)
    lines[i] = ("M%s %sh%s"):format(place(page.left), place(y), place(WIDTH))
    svg.text(out, page.left - 6, y + 3.5, tick.text,
      ('font-size="10.5" fill="%s" text-anchor="end"'):format(FAINT))
  end
  svg.path(out, table.concat(lines), ('stroke="%s" stroke-width="0.7" fill="none"'):format(GRID))
  svg.axis(out, { left = page.left, y = page.top + HEIGHT, width = WIDTH, ticks = page.x.ticks,
    at = page.at_x, name = panels.x_name(page.panel, opts.time, page.x) })
end

-- ---- legend ------------------------------------------------------------------------------------

-- A line as in the plot and words; entries that do not fit begin a new line.
local function entry(out, page, at, words, line)
  local width = svg.text_width(words, 11) + 42
  if at.x > page.left and at.x + width > page.left + WIDTH then
    at.x, at.y = page.left, at.y + LINE
  end
  svg.path(out, ("M%s %sh18"):format(place(at.x), place(at.y + 6)),
    'stroke-width="3" fill="none"' .. line)
  svg.text(out, at.x + 24, at.y + 10, words, ('font-size="11" fill="%s"'):format(INK))
  at.x = at.x + width
end

local function value_text(curve)
  local words = axis.number(curve.last)
  return curve.left_out > 0 and ("%s (%d left out)"):format(words, curve.left_out) or words
end

-- Several names of several runs: what each dash means, then each run once with all its values.
local function crossed_legend(out, page, panel, at)
  for n, name in ipairs(panel.names) do
    entry(out, page, at, name, (' stroke="%s"%s'):format(FAINT, dashes(1, n)))
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
      (' stroke="%s"'):format(colours.curve(curve.hue).day))
  end
end

-- Returns the lower edge.
local function legend(out, page, panel)
  local at = { x = page.left, y = page.top + HEIGHT + BELOW }
  if panels.is_plain(panel) then return at.y end
  if panel.names then
    crossed_legend(out, page, panel, at)
  else
    for _, curve in ipairs(panel.curves) do
      entry(out, page, at, curve.label .. ": " .. value_text(curve),
        (' stroke="%s"%s'):format(colours.curve(curve.hue).day, dashes(curve.hue, curve.dash)))
    end
  end
  return at.y + LINE
end

-- ---- the whole ---------------------------------------------------------------------------------

-- Places of a panel whose upper edge is `top`.
local function layout(panel, top, opts)
  local page = { left = svg.MARGIN + 56, top = top + HEADING, panel = panel,
    x = axis.new(panel.x[1], panel.x[2], { most = 9, time = opts.time }),
    y = axis.new(panel.y[1], panel.y[2], { most = 6, log = opts.log }) }
  function page.at_x(value) return page.left + page.x:place(value) * WIDTH end
  function page.at_y(value) return page.top + HEIGHT - 4 - page.y:place(value) * (HEIGHT - 14) end
  return page
end

local function draw_panel(out, panel, top, opts)
  local page = layout(panel, top, opts)
  svg.text(out, page.left, page.top - 12, panel.title,
    ('font-size="14" font-weight="bold" fill="%s"'):format(INK))
  axes(out, page, opts)
  for _, curve in ipairs(panel.curves) do
    draw_curve(out, page, curve, (opts.smooth or 0) > 0)
  end
  return legend(out, page, panel)
end

--- Draw panels as an SVG document, one below the other.
---@param list gpipe.Panel[]
---@param opts {smooth?: number, log?: boolean, time?: boolean, title?: string}
---@return string
function figure.render(list, opts)
  local out, bottom, titles = {}, svg.MARGIN, {}
  for i, panel in ipairs(list) do
    bottom = draw_panel(out, panel, bottom, opts) + svg.MARGIN
    titles[i] = panel.title
  end
  return svg.document(svg.MARGIN * 2 + 56 + WIDTH + 14, bottom, table.concat(titles, "; "), out)
end

return figure
