-- lua/gpipe/draw/schedule/text.lua - timelines as a text grid that fits a terminal.
--
-- There is one row per device and timeline; the width of an action is its duration. With costs that
-- are multiples of one another the cells are whole columns, as in the figures of the papers;
-- otherwise each column shows what took most of its time. Lines never wrap; they are ASCII except
-- for names and the sign of microseconds.

local axis = require "gpipe.draw.axis"
local colours = require "gpipe.draw.colours"
local counted = require "gpipe.counted"
local fit = require "gpipe.draw.schedule.fit"
local raster = require "gpipe.draw.schedule.raster"
local scale = require "gpipe.draw.schedule.scale"
local terminal = require "gpipe.draw.terminal"
local timeline = require "gpipe.draw.schedule.timeline"

local text = {}

-- ---- cells --------------------------------------------------------------------------------------

-- The longest label that fits into a cell. One that begins with a digit needs a gap before it.
local function label_for(layout, action, place, width)
  for i = layout.style, #layout.styles do
    local label = layout.styles[i](action, place)
    if #label < width or (#label == width and label:find "^%a") then return label end
  end
  return ""
end

-- A cell in plain text: "F0 ", "B0--- ", "F".
local function plain_cell(label, width, dense)
  if dense then return label:sub(1, 1):rep(width) end
  if width - #label < 2 then return label .. (" "):rep(width - #label) end
  return label .. ("-"):rep(width - #label - 1) .. " "
end

-- A cell on its colour; the last column stays free where there is room, as a gap.
local function coloured_cell(fill, label, width, dense)
  local gap = not dense and width > math.max(1, #label) and 1 or 0
  return terminal.on_fill(label .. (" "):rep(width - gap - #label), fill) .. (" "):rep(gap)
end

local function row_text(view, d, layout, per_time)
  local owners, parts = raster.row(view, d, per_time, layout.columns, layout.dense), {}
  raster.runs(owners, layout.columns, rawequal, function(action, _, width)
    if not action then
      parts[#parts + 1] = ("."):rep(width)
      return
    end
    local place, count = view:chunk(d, action.stage)
    local label = label_for(layout, action, place, width)
    parts[#parts + 1] = layout.colour
      and coloured_cell(colours.fill(action.op, place, count), label, width, layout.dense)
      or plain_cell(label, width, layout.dense)
  end)
  return (table.concat(parts):gsub("%s+$", ""))
end

-- ---- lines around the grid ----------------------------------------------------------------------

-- Join pieces into lines no longer than width.
local function wrap(pieces, separator, width, lines)
  local line
  for _, piece in ipairs(pieces) do
    local longer = line and line .. separator .. piece
    if longer and utf8.len(longer) <= width then
      line = longer
    else
      lines[#lines + 1] = line and terminal.cut(line, width)
      line = piece
    end
  end
  lines[#lines + 1] = line and terminal.cut(line, width)
end

local function header(view, width, lines)
  local peak, device = view:highest_peak()
  local pieces = {
    ("%s: %s"):format(terminal.clean(view.name), counted(view.devices, "device")),
    "makespan " .. axis.time(view.makespan, view.unit),
    "bubble " .. timeline.percent(view:mean_bubble()),
  }
  if peak > 0 then
    pieces[4] = ("peak %s (device %d)"):format(view:activations(peak), device)
  end
  wrap(pieces, ", ", width, lines)
end

-- The texts of the ticks below the grid, each beginning at its column.
local function ruler(layout, time, gutter)
  local line, shown = (" "):rep(gutter), scale.axis(time, layout.columns // 8)
  for _, tick in ipairs(shown.ticks) do
    local at = gutter + math.floor(tick.at * layout.columns_per_time + 0.5)
    local room = layout.width - at
    if at >= #line and #tick.text <= room then
      line = line .. (" "):rep(at - #line) .. tick.text .. " "
    end
  end
  line = line:gsub("%s+$", "")
  if shown.unit ~= "" and utf8.len(line .. " " .. shown.unit) <= layout.width then
    line = line .. " " .. shown.unit
  end
  return line
end

-- Append the legend; on a terminal each op has its colour.
local function legend(views, layout, lines)
  local line, used = {}, 0
  local function add(words, shown)
    if used > 0 and used + 2 + #words > layout.width then
      lines[#lines + 1] = table.concat(line, "  ")
      line, used = {}, 0
    end
    line[#line + 1] = shown or terminal.cut(words, layout.width)
    used = used + #words + (used > 0 and 2 or 0)
  end
  for _, entry in ipairs(colours.legend(timeline.ops(views))) do
    local sign = layout.colour and " " .. entry.op .. " " or entry.op
    local shown = layout.colour and terminal.on_fill(sign, colours.fill(entry.op)) .. " "
    add(sign .. " " .. entry.name, shown and shown .. entry.name)
  end
  add ". idle"
  if layout.case and layout.style >= #layout.styles - 1 then
    add "lower case: second stage of a device"
  end
  if layout.numbers then add(("numbers of micro-batches: width = %d"):format(layout.numbers)) end
  lines[#lines + 1] = table.concat(line, "  ")
end

-- ---- rows ---------------------------------------------------------------------------------------

-- The text before each row: the device, and the timeline where there are several.
local function gutters(views, layout)
  local names, tags, name_width, tag_width = {}, {}, 0, 0
  for _, d in ipairs(layout.shown) do
    names[d] = terminal.fit(views[1]:device_name(d), layout.width // 6)
    name_width = math.max(name_width, utf8.len(names[d]))
  end
  for k, view in ipairs(views) do
    tags[k] = #views > 1 and " " .. terminal.fit(view.name, layout.width // 6) or ""
    tag_width = math.max(tag_width, utf8.len(tags[k]))
  end
  return function(d, k)
    return terminal.pad(k == 1 and names[d] or "", name_width)
      .. terminal.pad(tags[k], tag_width) .. " |"
  end, name_width + tag_width + 2
end

--- Draw timelines as text.
---@param views gpipe.View[]
---@param opts {width: integer, height: integer, colour: boolean, scale: number?}
---@return string
function text.render(views, opts)
  local layout = { width = opts.width, colour = opts.colour, lines = {} }
  local lines, time = layout.lines, scale.common(views, opts.scale)
  layout.shown = raster.shown(views[1].devices, math.max(2, opts.height // #views))
  local gutter_of, gutter = gutters(views, layout)
  fit.choose(layout, views, time, math.max(1, opts.width - gutter))
  if layout.numbers then layout.numbers = layout.numbers + gutter end
  for _, view in ipairs(views) do header(view, opts.width, lines) end
  if time.note then wrap({ time.note }, "", opts.width, lines) end
  local before = 0
  for _, d in ipairs(layout.shown) do
    if d > before + 1 then
      local note = ("  ... %d more devices (option height)"):format(d - before - 1)
      lines[#lines + 1] = terminal.cut(note, opts.width)
    end
    for k, view in ipairs(views) do
      lines[#lines + 1] = gutter_of(d, k)
        .. row_text(view, d, layout, layout.columns_per_time * time.factors[k])
    end
    before = d
  end
  lines[#lines + 1] = ruler(layout, time, gutter)
  legend(views, layout, lines)
  return table.concat(lines, "\n")
end

return text
