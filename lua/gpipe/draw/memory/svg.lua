-- lua/gpipe/draw/memory/svg.lua - memory over time as a figure that a paper can print.
--
-- A row per device, all with one scale of bytes and one of time. Steps are drawn as they are; where
-- there are more of them than points of paper, each point shows the largest of its own.

local colours = require "gpipe.draw.colours"
local escape = require "gpipe.io.escape"
local levels = require "gpipe.draw.memory.levels"
local scale = require "gpipe.draw.memory.scale"
local svg = require "gpipe.draw.svg"

local figure = {}

local place = escape.place
local INK, FAINT, GRID = colours.day.ink, colours.day.faint, colours.day.line
local CAP, PAPER, LANE = colours.day.mark, colours.day.paper, colours.day.lane

local WIDTH, HEIGHT, LOW = 900, 120, 84 -- points: of the figure, of a plot, of one of many
local HEADING, BELOW, LINE = 22, 40, 18

-- ---- areas -------------------------------------------------------------------------------------

-- The stretches of a plot with one step each: {from, to, step}, in points.
local function stretches(page, view)
  local list, n = {}, #view.begin
  if n <= page.plot then
    for i = 1, n do
      list[i] = { page.at_x(view.begin[i]), page.at_x(view.begin[i + 1] or view.finish), i }
    end
    return list
  end
  local columns = levels.columns(view, page.made.from, page.made.to, math.floor(page.plot))
  for c, column in ipairs(columns) do
    if column.step > 0 then
      list[#list + 1] = { page.left + c - 1, page.left + c, column.step }
    end
  end
  return list
end

-- The outline of what lies between two lists of bytes, stretch by stretch.
local function outline(page, top, list, low, high)
  local there, back = {}, {}
  local function y(bytes) return place(page.at_y(top, bytes)) end
  for i, stretch in ipairs(list) do
    there[#there + 1] = ("%s %s"):format(place(stretch[1]), y(high[i]))
    there[#there + 1] = ("%s %s"):format(place(stretch[2]), y(high[i]))
    back[#back + 1] = ("%s %s"):format(place(stretch[1]), y(low[i]))
    back[#back + 1] = ("%s %s"):format(place(stretch[2]), y(low[i]))
  end
  for i = 1, #back, 2 do back[i], back[i + 1] = back[i + 1], back[i] end
  local turned = {}
  for i = #back, 1, -2 do turned[#turned + 1], turned[#turned + 2] = back[i - 1], back[i] end
  return "M" .. table.concat(there, "L") .. "L" .. table.concat(turned, "L") .. "Z"
end

local function stack(out, page, view, top)
  local list = stretches(page, view)
  if #list == 0 then return end
  local low = {}
  for i = 1, #list do low[i] = 0 end
  for _, area in ipairs(page.made.areas) do
    local level, high, any = view.level[area.name], {}, false
    for i, stretch in ipairs(list) do
      local bytes = level and level[stretch[3]] or 0
      high[i], any = low[i] + bytes, any or bytes > 0
    end
    if any then
      svg.path(out, outline(page, top, list, low, high),
        ('class="area" fill="%s" stroke="%s" stroke-width="0.3"'):format(area.day, PAPER))
    end
    low = high
  end
end

-- ---- lines -------------------------------------------------------------------------------------

-- What was measured holds from its time to the next: a line of steps, with a rim of paper so that
-- it is seen on every area.
local function measured(out, page, view, top)
  local parts, list = {}, view.measured
  if #list == 0 then return end
  for i, entry in ipairs(list) do
    parts[#parts + 1] = ("%s%s %s"):format(i == 1 and "M" or "H", place(page.at_x(entry.at)),
      i == 1 and place(page.at_y(top, entry.bytes)) or "V" .. place(page.at_y(top, entry.bytes)))
  end
  local stop = math.max(view.finish, list[#list].at)
  local d = table.concat(parts) .. "H" .. place(page.at_x(stop))
  svg.path(out, d, ('fill="none" stroke="%s" stroke-width="3.4"'):format(PAPER))
  svg.path(out, d, ('class="measured" fill="none" stroke="%s" stroke-width="1.4"'):format(INK))
end

local function cap(out, page, view, top)
  if not scale.shows_cap(page.made, view) then return end
  svg.path(out, ("M%s %sh%s"):format(place(page.left), place(page.at_y(top, view.cap)),
    place(page.plot)),
    ('class="cap" fill="none" stroke="%s" stroke-width="1.4" stroke-dasharray="7 4"'):format(CAP))
end

-- ---- rows --------------------------------------------------------------------------------------

local function row(out, page, view, top)
  svg.text(out, page.left, top - 7, view.name,
    ('font-size="12.5" font-weight="bold" fill="%s"'):format(INK))
  svg.text(out, page.left + svg.text_width(view.name, 13.5) + 10, top - 7, scale.figures(view),
    ('font-size="11.5" fill="%s"'):format(FAINT))
  out[#out + 1] = ('<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>'):format(
    place(page.left), place(top), place(page.plot), place(page.height), LANE)
  local lines = {}
  for i, tick in ipairs(page.bytes) do
    local y = page.at_y(top, tick.at)
    lines[i] = ("M%s %sh%s"):format(place(page.left), place(y), place(page.plot))
    svg.text(out, page.left - 6, y + 3.5, tick.text,
      ('font-size="10.5" fill="%s" text-anchor="end"'):format(FAINT))
  end
  svg.path(out, table.concat(lines), ('stroke="%s" stroke-width="0.7" fill="none"'):format(GRID))
  stack(out, page, view, top)
  cap(out, page, view, top)
  measured(out, page, view, top)
end

-- ---- legend ------------------------------------------------------------------------------------

local function entries_of(made)
  local list, capped, probed = {}, false, false
  for _, area in ipairs(made.areas) do list[#list + 1] = { name = area.name, fill = area.day } end
  for _, view in ipairs(made.views) do
    capped = capped or scale.shows_cap(made, view)
    probed = probed or #view.measured > 0
  end
  if probed then list[#list + 1] = { name = "measured", stroke = INK, dash = "" } end
  if capped then
    list[#list + 1] = { name = "cap", stroke = CAP, dash = ' stroke-dasharray="7 4"' }
  end
  return list
end

-- Returns the lower edge.
local function legend(out, page, y)
  local x = page.left
  for _, entry in ipairs(entries_of(page.made)) do
    local width = svg.text_width(entry.name, 11) + 40
    if x > page.left and x + width > page.left + page.plot then x, y = page.left, y + LINE end
    if entry.fill then
      out[#out + 1] = ('<rect x="%s" y="%s" width="12" height="12" rx="2" fill="%s"/>'):format(
        place(x), place(y), entry.fill)
    else
      svg.path(out, ("M%s %sh18"):format(place(x - 3), place(y + 6)),
        ('fill="none" stroke="%s" stroke-width="1.6"%s'):format(entry.stroke, entry.dash))
    end
    svg.text(out, x + (entry.fill and 18 or 21), y + 10, entry.name,
      ('font-size="11" fill="%s"'):format(INK))
    x = x + width
  end
  return y + LINE
end

-- ---- the whole ---------------------------------------------------------------------------------

local function layout(made, o)
  local page = { made = made, height = #made.views > 4 and LOW or HEIGHT }
  page.bytes = scale.byte_ticks(made.most, page.height // 26)
  local widest = 0
  for _, tick in ipairs(page.bytes) do
    widest = math.max(widest, svg.text_width(tick.text, 10.5))
  end
  page.left = svg.MARGIN + widest + 8
  page.plot = math.max(160, (o.width or WIDTH) - page.left - svg.MARGIN - 10)
  page.width = page.left + page.plot + svg.MARGIN + 10
  local per_time = page.plot / (made.to - made.from)
  function page.at_x(time) return page.left + (time - made.from) * per_time end
  function page.at_y(top, bytes) return top + page.height * (1 - bytes / made.most) end
  return page
end

-- The names of tasks are as many as have room beside each other.
local function time_axis(out, page, y)
  local widest = 40
  for _, name in ipairs(page.made.names or {}) do
    widest = math.max(widest, svg.text_width(name, 10.5) + 10)
  end
  local ticks, name = scale.time_ticks(page.made, page.plot // math.max(60, widest))
  svg.axis(out, { left = page.left, y = y, width = page.plot, name = name, ticks = ticks,
    at = page.at_x })
end

--- Draw memory over time.
---@param made gpipe.MemoryScale
---@param o {title?: string, width?: integer}
---@return string
function figure.render(made, o)
  local out, page, y = {}, layout(made, o), svg.MARGIN
  if o.title then
    svg.text(out, svg.MARGIN, y + 14, o.title,
      ('font-size="16" font-weight="bold" fill="%s"'):format(INK))
    y = y + 26
  end
  for _, view in ipairs(made.views) do
    row(out, page, view, y + HEADING)
    y = y + HEADING + page.height + 8
  end
  time_axis(out, page, y)
  y = legend(out, page, y + BELOW)
  return svg.document(page.width, y + svg.MARGIN, o.title or "memory over time", out)
end

return figure
