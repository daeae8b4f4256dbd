-- lua/gpipe/draw/columns.lua - tables as text: aligned columns that fit the terminal.
--
-- In a narrow terminal the first column is cut, then the line. In a file or a pipe nothing is.

local screen = require "gpipe.screen"

local columns = {}

--- A number in as few digits as show it: 33, 28.5, 594.5, 0.3181.
---@param value number
---@return string
function columns.number(value)
  if value == math.floor(value) and math.abs(value) < 1e15 then return ("%d"):format(value) end
  return math.abs(value) >= 1e4 and ("%.1f"):format(value) or ("%.4g"):format(value)
end

--- The mean of a list of figures.
---@param list number[]
---@return number
function columns.mean(list)
  local sum = 0
  for _, value in ipairs(list) do sum = sum + value end
  return sum / #list
end

--- The largest of a list of figures.
---@param list number[]
---@return number
function columns.largest(list)
  local most = list[1]
  for _, value in ipairs(list) do most = math.max(most, value) end
  return most
end

local function widths_of(rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      if row.note ~= i then widths[i] = math.max(widths[i] or 0, utf8.len(cell) or #cell) end
    end
  end
  return widths
end

-- Cut a text to `limit` characters; ".." at its end says that there were more.
local function cut(text, limit)
  if (utf8.len(text) or #text) <= limit then return text end
  local stop = utf8.offset(text, limit - 1) or limit - 1
  return text:sub(1, stop - 1) .. ".."
end

-- The first column gives way to the others, but not below this.
local NARROW = 12

local function fit(widths, indent, most)
  local sum = #indent - 2
  for _, width in ipairs(widths) do sum = sum + width + 2 end
  local spare = most - sum
  if spare < 0 and widths[1] then
    widths[1] = math.max(math.min(NARROW, widths[1]), widths[1] + spare)
  end
end

local function line_of(row, widths)
  local cells = {}
  for i, cell in ipairs(row) do
    local text = i == 1 and row.note ~= 1 and cut(cell, widths[1]) or cell
    local gap = (" "):rep((widths[i] or 0) - (utf8.len(text) or #text))
    cells[i] = row.note == i and text or i == 1 and text .. gap or gap .. text
  end
  return (table.concat(cells, "  "):gsub("%s+$", ""))
end

--- The text of a table: the first column is aligned to the left, the others to the right. If a row
--- has a field `note`, the cell of that number is free text to the end of the line.
---@param rows string[][]
---@param indent? string
---@param most? integer characters of a line; without it those of the terminal, if there is one
---@return string
function columns.text(rows, indent, most)
  local widths, lines = widths_of(rows), {}
  indent = indent or ""
  most = most or screen.is_bounded() and screen.columns() or math.huge
  fit(widths, indent, most)
  for r, row in ipairs(rows) do lines[r] = cut(indent .. line_of(row, widths), most) end
  return table.concat(lines, "\n")
end

return columns
