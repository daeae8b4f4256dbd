-- lua/gpipe/draw/memory/text.lua - memory over time as text: stacked areas with eighths of a line.
--
-- A column shows the moment of its stretch at which most is planned, so that no peak is lost. With
-- colours a cell may hold two areas, the lower one as a block on the colour of the upper; without,
-- a cell is the letter of the area that has most of it.

local levels = require "gpipe.draw.memory.levels"
local scale = require "gpipe.draw.memory.scale"
local terminal = require "gpipe.draw.terminal"

local text = {}

local BLOCKS = { "\u{2581}", "\u{2582}", "\u{2583}", "\u{2584}", "\u{2585}", "\u{2586}", "\u{2587}",
  "\u{2588}" }
local MARKS = {
  [true] = { side = "\u{2502}", tick = "\u{2524}", corner = "\u{2514}", below = "\u{2500}",
    cap = "\u{2504}", measured = "\u{25cf}" },
  [false] = { side = "|", tick = "+", corner = "+", below = "-", cap = "=", measured = "*" },
}

-- ---- cells -------------------------------------------------------------------------------------

-- The areas within a cell, from the bottom to the top: {area, share of the cell}.
local function parts_of(made, view, step, low, high)
  local parts, below = {}, 0
  for _, area in ipairs(made.areas) do
    local bytes = step > 0 and view.level[area.name] and view.level[area.name][step] or 0
    local share = (math.min(high, below + bytes) - math.max(low, below)) / (high - low)
    if share > 1e-9 then parts[#parts + 1] = { area = area, share = share } end
    below = below + bytes
  end
  return parts
end

-- The two areas that have most of a cell, in their order.
local function two_largest(parts)
  while #parts > 2 do
    local least = 1
    for i, part in ipairs(parts) do
      if part.share < parts[least].share then least = i end
    end
    table.remove(parts, least)
  end
  return parts
end

local function coloured(parts)
  parts = two_largest(parts)
  if #parts == 0 then return " " end
  local lower, upper = parts[1], parts[2]
  local eighths = math.floor(lower.share * 8 + 0.5)
  if not upper then
    if eighths == 0 then return " " end
    return terminal.block(BLOCKS[eighths], lower.area.day)
  end
  eighths = math.max(1, math.min(8, eighths))
  return terminal.block(BLOCKS[eighths], lower.area.day, upper.area.day)
end

-- The part that has most of a cell, and how much of the cell is taken.
local function largest(parts)
  local best, sum = nil, 0
  for _, part in ipairs(parts) do
    sum = sum + part.share
    if not best or part.share > best.share then best = part end
  end
  return best, sum
end

local function letter(parts)
  local best, sum = largest(parts)
  return best and sum >= 0.5 and best.area.letter or " "
end

-- ---- a device ----------------------------------------------------------------------------------

-- The row of a value, 1 at the top.
local function row_of(made, bytes, rows)
  return math.max(1, rows - math.floor(bytes / made.most * rows))
end

-- Join cells: neighbours of equal colours share one escape sequence.
local function joined(cells)
  local parts, before = {}, nil
  for _, cell in ipairs(cells) do
    local colour, words = cell:match "^(\27%[[%d;]+m)(.-)\27%[0m$"
    if colour ~= before then
      parts[#parts + 1] = (before and "\27[0m" or "") .. (colour or "")
    end
    parts[#parts + 1], before = words or cell, colour
  end
  return table.concat(parts) .. (before and "\27[0m" or "")
end

local function plot_row(made, view, row, columns, page)
  local low = (page.rows - row) / page.rows * made.most
  local high = (page.rows - row + 1) / page.rows * made.most
  local capped = scale.shows_cap(made, view) and row_of(made, view.cap, page.rows) == row
  local line = {}
  for c, column in ipairs(columns) do
    local parts = parts_of(made, view, column.step, low, high)
    if column.measured and row_of(made, column.measured, page.rows) == row then
      local under, taken = largest(parts)
      under = taken >= 0.5 and under.area.day or nil
      line[c] = page.colour and terminal.block(page.marks.measured, nil, under)
        or page.marks.measured
    else
      local cell = page.colour and page.unicode and coloured(parts) or letter(parts)
      if page.colour and not page.unicode and cell ~= " " then
        cell = terminal.on_fill(cell, largest(parts).area.day)
      end
      if cell == " " and capped then cell = page.marks.cap end
      line[c] = cell
    end
  end
  return (joined(line):gsub(" +$", ""))
end

local function row_labels(made, page)
  local labels, widest = {}, 0
  for _, tick in ipairs(scale.byte_ticks(made.most, math.max(1, page.rows // 2))) do
    if tick.at > 0 then
      labels[row_of(made, tick.at, page.rows)] = tick.text
      widest = math.max(widest, #tick.text)
    end
  end
  return labels, widest
end

-- The name and the figures of a device, in as many lines as they need.
local function heading(view, page, lines)
  local line = terminal.clean(view.name) .. ":"
  for piece in terminal.clean(scale.figures(view)):gmatch "[^,]+,?" do
    piece = piece:gsub("^ ", "")
    if utf8.len(line) + utf8.len(piece) >= page.width then
      lines[#lines + 1], line = terminal.cut(line, page.width), " "
    end
    line = line .. " " .. piece
  end
  lines[#lines + 1] = terminal.cut(line, page.width)
end

local function device(made, view, page, lines)
  heading(view, page, lines)
  local columns = levels.columns(view, made.from, made.to, page.columns)
  for row = 1, page.rows do
    local label = page.labels[row] or ""
    lines[#lines + 1] = (" "):rep(page.widest - #label) .. label .. " "
      .. (label ~= "" and page.marks.tick or page.marks.side)
      .. plot_row(made, view, row, columns, page)
  end
end

-- ---- below the plots ---------------------------------------------------------------------------

local function time_axis(made, page, lines)
  local gutter = page.widest + 2
  lines[#lines + 1] = (" "):rep(gutter - 1) .. page.marks.corner
    .. page.marks.below:rep(page.columns)
  local ticks, name = scale.time_ticks(made, math.max(2, page.columns // 10))
  local line, free = (" "):rep(gutter), 0
  for _, tick in ipairs(ticks) do
    local words = terminal.clean(tick.text)
    local at = math.floor((tick.at - made.from) / (made.to - made.from) * page.columns)
    local begin = math.max(0, math.min(at - utf8.len(words) // 2, page.columns - utf8.len(words)))
    if begin >= free then
      line = line .. (" "):rep(begin - free) .. words
      free = begin + utf8.len(words)
      if free < page.columns then line, free = line .. " ", free + 1 end
    end
  end
  lines[#lines + 1] = terminal.cut(line:gsub(" +$", ""), page.width)
  lines[#lines + 1] = (" "):rep(math.max(0, page.width - #name)) .. name
end

local function legend(made, page, lines)
  local line, used = {}, 0
  local function add(sign, words)
    words = terminal.fit(words, page.width - 4)
    local width = utf8.len(words) + 5
    if used > 0 and used + width - 2 > page.width then
      lines[#lines + 1], line, used = table.concat(line, "  "), {}, 0
    end
    line[#line + 1], used = sign .. " " .. words, used + width
  end
  local capped, measured = false, false
  for _, area in ipairs(made.areas) do
    local sign = page.unicode and "  " or area.letter .. " "
    add(page.colour and terminal.on_fill(sign, area.day) or area.letter .. " =", area.name)
  end
  for _, view in ipairs(made.views) do
    capped = capped or scale.shows_cap(made, view)
    measured = measured or #view.measured > 0
  end
  if measured then add(page.marks.measured, "measured") end
  if capped then add(page.marks.cap:rep(2), "cap") end
  if #line > 0 then lines[#lines + 1] = table.concat(line, "  ") end
end

--- Draw memory over time.
---@param made gpipe.MemoryScale
---@param o {title?: string, width: integer, height: integer, colour: boolean, unicode: boolean}
---@return string
function text.render(made, o)
  local page, lines = { width = o.width, rows = o.height, colour = o.colour, unicode = o.unicode,
    marks = MARKS[o.unicode] }, {}
  page.labels, page.widest = row_labels(made, page)
  page.columns = math.max(8, o.width - page.widest - 2)
  if o.title then lines[1] = terminal.fit(o.title, o.width) end
  for _, view in ipairs(made.views) do device(made, view, page, lines) end
  time_axis(made, page, lines)
  legend(made, page, lines)
  return table.concat(lines, "\n")
end

return text
