-- lua/gpipe/schedule/columns.lua - tables of text: aligned columns that fit the terminal.
--
-- What does not fit is cut at the right edge, which COLUMNS sets where a shell wants it obeyed.

local columns = {}

--- Characters of a line.
---@return integer
function columns.width()
  return math.max(20, math.tointeger(tonumber(os.getenv("COLUMNS"))) or 80)
end

--- A number in as few digits as show it: 33, 28.5, 594.5, 0.3181.
---@param value number
---@return string
function columns.number(value)
  if value == math.floor(value) and math.abs(value) < 1e15 then return ("%d"):format(value) end
  return math.abs(value) >= 1e4 and ("%.1f"):format(value) or ("%.4g"):format(value)
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

-- At most `limit` characters; the last three say that there were more.
local function cut(line, limit)
  if (utf8.len(line) or #line) <= limit then return line end
  local stop = utf8.offset(line, limit - 2) or limit - 2
  return line:sub(1, stop - 1) .. "..."
end

--- Lines of rows of cells: the first column to the left, the others to the right. A row's cell
--- number `note`, where it has one, is free text to the end of the line.
---@param rows string[][]
---@param indent? string
---@return string
function columns.text(rows, indent)
  local widths, lines = widths_of(rows), {}
  for r, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local gap = (" "):rep((widths[i] or 0) - (utf8.len(cell) or #cell))
      cells[i] = row.note == i and cell or i == 1 and cell .. gap or gap .. cell
    end
    local line = (indent or "") .. table.concat(cells, "  ")
    lines[r] = cut(line:gsub("%s+$", ""), columns.width())
  end
  return table.concat(lines, "\n")
end

return columns
