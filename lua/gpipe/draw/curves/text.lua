-- lua/gpipe/draw/curves/text.lua - draw curves as text for a terminal.

local axis = require "gpipe.draw.axis"
local canvas = require "gpipe.draw.canvas"
local colours = require "gpipe.draw.colours"
local panels = require "gpipe.draw.curves.panel"
local terminal = require "gpipe.draw.terminal"

local text = {}

local LEAST_PLOT = 10 -- cells

local function painted(place, words)
  return terminal.in_colour(words, colours.curve(place).terminal)
end

local function letter_of(place) return string.char(97 + (place - 1) % 26) end

-- ---- curves ------------------------------------------------------------------------------------

local function round(value) return math.floor(value + 0.5) end

-- Draw a curve: in each column a stroke from the least to the largest value. With `lines` only a
-- line, because strokes would hide other curves. Returns where the curve ends.
local function draw_curve(page, curve, lines)
  local drawn, values = page.canvas, lines and curve.smooth or curve.mean
  local function place(x, y)
    return round(page.x:place(x) * (drawn.width - 1)), round(page.y:place(y) * (drawn.height - 1))
  end
  local x1, y1
  for i, x in ipairs(curve.x) do
    local x2, y2 = place(x, values[i])
    drawn:line(x1 or x2, y1 or y2, x2, y2, curve.place)
    if not lines then
      local _, low = place(x, curve.low[i])
      local _, high = place(x, curve.high[i])
      drawn:line(x2, low, x2, high, curve.place)
    end
    x1, y1 = x2, y2
  end
  return x1, y1
end

-- ---- words around ------------------------------------------------------------------------------

local MARKS = {
  [true] = { side = "\u{2502}", tick = "\u{2524}", corner = "\u{2514}", below = "\u{2500}",
    mark = "\u{252c}", line = "\u{2501}\u{2501}" },
  [false] = { side = "|", tick = "+", corner = "+", below = "-", mark = "+", line = "--" },
}

-- The text of the tick at each row, and the width of the widest.
local function row_labels(y, rows)
  local labels, widest = {}, 0
  for _, tick in ipairs(y.ticks) do
    local row = rows - round(y:place(tick.at) * (rows - 1))
    labels[row] = tick.text
    widest = math.max(widest, #tick.text)
  end
  return labels, widest
end

-- The line below the plot, and below it the texts of its ticks, which never overlap.
local function x_lines(page, marks, gutter)
  local line, words, free = {}, (" "):rep(gutter), 0
  for i = 1, page.columns do line[i] = marks.below end
  for _, tick in ipairs(page.x.ticks) do
    local column = round(page.x:place(tick.at) * (page.columns - 1)) + 1
    local begin = math.max(1, math.min(column - #tick.text // 2, page.columns - #tick.text + 1))
    if begin > free then
      line[column] = marks.mark
      words = words .. (" "):rep(begin - free - 1) .. tick.text
      free = begin + #tick.text
      words = words .. " "
    end
  end
  return (" "):rep(gutter - 1) .. marks.corner .. table.concat(line), (words:gsub(" +$", ""))
end

local function legend_entry(curve, opts, marks, alone)
  local sign = opts.colour and painted(curve.place, marks.line)
    or alone and "" or letter_of(curve.place)
  local words = ("%s %s"):format(terminal.clean(curve.label), axis.number(curve.last))
  if curve.left_out > 0 then
    words = words .. (opts.log and " (%d left out)" or " (%d not finite)"):format(curve.left_out)
  end
  return sign == "" and words or ("%s %s%s"):format(sign, opts.colour and "" or "= ", words),
    #words + 6
end

-- Append the legend: as many entries as fit in each line.
local function legend(panel, opts, marks, lines)
  local line, used = "", 0
  if panels.is_plain(panel) then return end
  for _, curve in ipairs(panel.curves) do
    local entry, width = legend_entry(curve, opts, marks, #panel.curves == 1)
    if used > 0 and used + width > opts.width then
      lines[#lines + 1] = line
      line, used = "", 0
    end
    line = used > 0 and line .. "  " .. entry or entry
    used = used + width + 2
  end
  lines[#lines + 1] = line
end

-- ---- the whole ---------------------------------------------------------------------------------

-- Axes and canvas; the gutter is as wide as the ticks of y need.
local function layout(panel, opts)
  local page = { y = axis.new(panel.y[1], panel.y[2], { most = math.max(2, opts.height // 4),
    log = opts.log }) }
  page.labels, page.widest = row_labels(page.y, opts.height)
  page.columns = math.max(LEAST_PLOT, opts.width - page.widest - 2)
  page.x = axis.new(panel.x[1], panel.x[2], { most = math.max(2, page.columns // 12),
    time = opts.time })
  page.canvas = canvas.new(page.columns, opts.height, opts.unicode)
  return page
end

local function render_panel(panel, opts, lines)
  local page, marks = layout(panel, opts), MARKS[opts.unicode]
  local alone = #panel.curves == 1
  for _, curve in ipairs(panel.curves) do
    local x, y = draw_curve(page, curve, opts.lines)
    if not (alone or opts.colour) then page.canvas:write(x, y, letter_of(curve.place)) end
  end
  if panel.title ~= "" then lines[#lines + 1] = terminal.fit(panel.title, opts.width) end
  local function letter(place) return alone and "*" or letter_of(place) end
  for row = 1, opts.height do
    local label = page.labels[row]
    lines[#lines + 1] = (" "):rep(page.widest - #(label or "")) .. (label or "") .. " "
      .. (label and marks.tick or marks.side)
      .. page.canvas:row(row, letter, opts.colour and painted or nil)
  end
  local below, words = x_lines(page, marks, page.widest + 2)
  lines[#lines + 1], lines[#lines + 2] = below, words
  local name = terminal.fit(panels.x_name(panel, opts.time, page.x), opts.width)
  lines[#lines + 1] = (" "):rep(math.max(0, opts.width - utf8.len(name))) .. name
  legend(panel, opts, marks, lines)
end

--- How many points curves need for a width of characters.
---@param width integer
---@return integer
function text.points(width) return math.max(2, width * 2) end

--- Draw panels, one below the other.
---@param list gpipe.Panel[]
---@param opts {width: integer, height: integer, colour: boolean, unicode: boolean, smooth?: number,
---  log?: boolean, time?: boolean, lines?: boolean} height: rows of a panel's plot
---@return string
function text.render(list, opts)
  local lines = {}
  for i, panel in ipairs(list) do
    if i > 1 then lines[#lines + 1] = "" end
    render_panel(panel, opts, lines)
  end
  return table.concat(lines, "\n")
end

return text
