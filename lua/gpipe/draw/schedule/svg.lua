-- lua/gpipe/draw/schedule/svg.lua - timelines as a figure that a paper can print.
--
-- Rows per device, one bar in it per timeline; micro-batch numbers where they fit. The width
-- follows the number of actions; what would be thinner than can be seen is drawn as its shares.
-- There is no script: a figure in a paper is looked at, the page of html.lua is explored.

local cells = require "gpipe.draw.schedule.cells"
local axis = require "gpipe.draw.axis"
local colours = require "gpipe.draw.colours"
local counted = require "gpipe.counted"
local escape = require "gpipe.io.escape"
local raster = require "gpipe.draw.schedule.raster"
local scale = require "gpipe.draw.schedule.scale"
local svg = require "gpipe.draw.svg"
local timeline = require "gpipe.draw.schedule.timeline"

local figure = {}

local place, text, text_width, MARGIN = escape.place, svg.text, svg.text_width, svg.MARGIN
local INK, FAINT, GRID = colours.day.ink, colours.day.faint, colours.day.line

-- ---- layout -------------------------------------------------------------------------------------

-- Height of a device's row: fewer devices, taller rows.
local ROWS = { { 8, 30 }, { 16, 26 }, { 32, 20 }, { 64, 14 }, { math.huge, 8 } }

local function row_height(rows)
  for _, entry in ipairs(ROWS) do
    if rows <= entry[1] then return entry[2] end
  end
end

-- Wide enough for a number in a usual cell, within what a page or a screen can take.
local LEAST_PLOT, MOST_PLOT, CELL = 420, 1160, 23

-- The lower quartile of the computing actions decides: a few short ones must not blow up the page,
-- and a few long ones must not squeeze the numbers out.
local function plot_width(views, time)
  local durations = {}
  for k, view in ipairs(views) do
    view:each(1, function(action, begin, finish, half)
      if action.op == "F" or action.op == "I" or action.op == "B" then
        durations[#durations + 1] = (finish - begin) * time.factors[k] / (half > 0 and 2 or 1)
      end
    end)
  end
  table.sort(durations)
  local short = durations[(#durations + 3) // 4]
  if not short or short <= 0 then return 800 end
  return math.max(LEAST_PLOT, math.min(MOST_PLOT, time.extent / short * CELL))
end

-- Names of the rows, and of the bars within them where there are several timelines.
local function gutter_width(views, shown)
  local names, tags = text_width("device", 11), 0
  for _, d in ipairs(shown) do
    names = math.max(names, text_width(views[1]:device_name(d), 11))
  end
  for _, view in ipairs(views) do tags = math.max(tags, text_width(view.name, 10)) end
  return names + 10 + (#views > 1 and tags + 8 or 0), names
end

-- All places of the page, computed once: what draws only looks them up.
local function layout_of(views, opts)
  local page = { views = views, time = scale.common(views, opts.scale), opts = opts }
  page.shown = raster.shown(views[1].devices, math.max(2, opts.height // #views))
  page.elided = views[1].devices > #page.shown
  local gutter, names = gutter_width(views, page.shown)
  page.left, page.names = MARGIN + gutter, MARGIN + names
  page.plot = opts.width and math.max(100, opts.width - page.left - MARGIN)
    or plot_width(views, page.time)
  page.width = page.left + page.plot + MARGIN + 8
  local height = row_height(#page.shown)
  page.gap = height > 14 and 4 or height > 8 and 2 or 1
  page.bar = (height - page.gap) * (#views > 1 and 0.8 or 1)
  page.row = #views * page.bar + page.gap + (#views > 1 and page.gap or 0)
  page.top = MARGIN + 24 + 16 * (#views > 1 and #views or 1) + (page.time.note and 16 or 0) + 20
  page.break_height = page.elided and 18 or 0
  page.per_time = page.plot / page.time.extent
  function page.at_x(time) return page.left + time * page.per_time end
  page.ticks = scale.axis(page.time, page.plot // 70) -- about 70 points apart
  return page
end

-- The upper edge of the bar of timeline k in the n-th row.
local function bar_top(page, n, k)
  local below = page.elided and n > (#page.shown + 1) // 2 and page.break_height or 0
  return page.top + (n - 1) * page.row + below + (k - 1) * page.bar
end

local function bottom(page) return bar_top(page, #page.shown, 1) + page.row end

-- ---- words around the plot ----------------------------------------------------------------------

-- The line of figures below the title; of several timelines each has its name in front.
local function figures(view, named)
  local peak, device = view:highest_peak()
  local list = {
    counted(view.devices, "device"),
    counted(view.micros, "micro-batch"),
    "makespan " .. axis.time(view.makespan, view.unit),
  }
  if view.makespan - view.span > 0.005 * view.makespan then
    list[#list + 1] = "span " .. axis.time(view.span, view.unit)
  end
  list[#list + 1] = "bubble " .. timeline.percent(view:mean_bubble())
  if peak > 0 then
    list[#list + 1] = ("at most %s alive (device %d)"):format(view:activations(peak), device)
  end
  return (named and view.name .. ": " or "") .. table.concat(list, " \u{b7} ")
end

local function title_of(page)
  local names = {}
  for i, view in ipairs(page.views) do names[i] = view.name end
  return page.opts.title or table.concat(names, " and ")
end

local function heading(out, page)
  local y = MARGIN + 14
  text(out, MARGIN, y, title_of(page), ('font-size="16" font-weight="bold" fill="%s"'):format(INK))
  local faint = ('font-size="11.5" fill="%s"'):format(FAINT)
  y = y + 4
  for _, view in ipairs(page.views) do
    y = y + 16
    text(out, MARGIN, y, figures(view, #page.views > 1), faint)
  end
  if page.time.note then text(out, MARGIN, y + 16, page.time.note, faint) end
end

-- Row names; where rows are low, only as many as can be read.
local function row_names(out, page)
  local every = math.max(1, math.ceil(11 / page.row))
  out[#out + 1] = ('<g font-size="11" text-anchor="end" fill="%s">'):format(INK)
  for n, d in ipairs(page.shown) do
    local middle = bar_top(page, n, 1) + (page.row - page.gap) / 2
    if (n - 1) % every == 0 then
      text(out, page.names, middle + 4, page.views[1]:device_name(d))
    end
    for k, view in ipairs(#page.views > 1 and page.bar >= 9 and page.views or {}) do
      text(out, page.left - 6, bar_top(page, n, k) + page.bar / 2 + 3.5, view.name,
        ('font-size="%s" fill="%s"'):format(page.bar >= 12 and 10 or 8.5, FAINT))
    end
  end
  out[#out + 1] = "</g>"
  text(out, page.names, page.top - 5, "device",
    ('font-size="10" text-anchor="end" fill="%s"'):format(FAINT))
  if page.elided then
    local y = bar_top(page, (#page.shown + 1) // 2, 1) + page.row + page.break_height / 2 + 2
    text(out, page.left, y,
      ("\u{22ee} %d more devices"):format(page.views[1].devices - #page.shown),
      ('font-size="10" fill="%s"'):format(FAINT))
  end
end

local function axis_line(out, page)
  local unit = page.ticks.unit
  svg.axis(out, { left = page.left, y = bottom(page) + 2, width = page.plot, at = page.at_x,
    ticks = page.ticks.ticks,
    name = unit == "" and "time (units of cost)" or ("time (%s)"):format(unit) })
end

-- ---- lanes and legend ---------------------------------------------------------------------------

-- What shows where a device is idle, with the ticks as faint lines.
local function lanes(out, page)
  out[#out + 1] = ('<g fill="%s">'):format(colours.day.lane)
  for n = 1, #page.shown do
    for k in ipairs(page.views) do
      out[#out + 1] = ('<rect x="%s" y="%s" width="%s" height="%s"/>'):format(place(page.left),
        place(bar_top(page, n, k)), place(page.plot),
          place(page.bar - (#page.views > 1 and 1 or 0)))
    end
  end
  out[#out + 1] = "</g>"
  local marks = {}
  for i, tick in ipairs(page.ticks.ticks) do
    marks[i] = ("M%s %sV%s"):format(place(page.at_x(tick.at)), place(page.top), place(bottom(page)))
  end
  svg.path(out, table.concat(marks), ('stroke="%s" stroke-width="0.6" fill="none"'):format(GRID))
end

-- A square of the legend.
local function swatch(out, x, y, fill, stroke)
  local rect = '<rect x="%s" y="%s" width="12" height="12" rx="2" fill="%s"%s/>'
  out[#out + 1] = rect:format(place(x), place(y), fill,
    stroke and (' stroke="%s" stroke-width="0.8"'):format(stroke) or "")
end

-- Entries of the legend: {fills, name}. As many tints as a device has stages.
local function legend_entries(views, critical)
  local most = 1
  for _, view in ipairs(views) do
    for d = 1, view.devices do most = math.max(most, #view.stages[d]) end
  end
  local list = {}
  for _, entry in ipairs(colours.legend(timeline.ops(views))) do
    local fills = {}
    for i = 1, entry.op == "" and 1 or most do fills[i] = colours.fill(entry.op, i, most) end
    list[#list + 1] = { fills = fills, name = entry.name }
  end
  list[#list + 1] = { fills = { colours.day.lane }, name = "idle", stroke = GRID }
  if critical then
    list[#list + 1] = { fills = { "none" }, name = "critical path", stroke = colours.day.mark }
  end
  return list, most
end

-- Returns the lower edge.
local function legend(out, page)
  local list, most = legend_entries(page.views, page.opts.critical)
  local x, y = page.left, bottom(page) + 46
  local function room(width)
    if x > page.left and x + width > page.width - MARGIN then x, y = page.left, y + 19 end
  end
  out[#out + 1] = ('<g font-size="11" fill="%s">'):format(INK)
  for _, entry in ipairs(list) do
    room(#entry.fills * 13 + 5 + text_width(entry.name, 11))
    for i, fill in ipairs(entry.fills) do swatch(out, x + 13 * (i - 1), y, fill, entry.stroke) end
    x = x + #entry.fills * 13 + 4
    text(out, x, y + 10, entry.name)
    x = x + text_width(entry.name, 11) + 16
  end
  if most > 1 then
    local note = "dark to light: first to last stage of a device"
    room(text_width(note, 10))
    text(out, x, y + 10, note, ('font-size="10" fill="%s"'):format(FAINT))
  end
  out[#out + 1] = "</g>"
  return y + 12 + MARGIN
end

--- Draw timelines as an SVG document.
---@param views gpipe.View[]
---@param opts {width: number?, height: integer, title: string?, scale: number?, critical: table?}
---@return string
function figure.render(views, opts)
  local page, out = layout_of(views, opts), {}
  heading(out, page)
  lanes(out, page)
  local drawn = cells.new(page)
  for n, d in ipairs(page.shown) do
    for k in ipairs(views) do cells.row(drawn, d, k, bar_top(page, n, k)) end
  end
  cells.finish(drawn, out)
  row_names(out, page)
  axis_line(out, page)
  local height = legend(out, page)
  return svg.document(page.width, height, title_of(page) .. ": " .. figures(views[1]), out)
end

return figure
