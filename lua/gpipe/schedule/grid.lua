-- lua/gpipe/schedule/grid.lua - show rows of text with one action marked.
--
-- Faults of actions are marked in C (runtime/schedule/verify/report.c). A text that cannot be read
-- is no action yet, so it is marked here.

local grid = {}

local ROWS, CELLS = 14, 16 -- shown of a large schedule, around the fault

-- The cells of a row, and the number of the cell with action `position`: a pair is two actions in
-- one cell.
local function cells_of(row, position)
  local cells, count, at = {}, 0, nil
  for cell in (row .. ","):gmatch "(.-)," do
    cells[#cells + 1] = cell == "" and "." or cell
    count = count + (cell:find(";", 1, true) and 2 or 1)
    if position and not at and count >= position then at = #cells end
  end
  return cells, at
end

-- The part of 1 .. count that is shown around `at`.
local function window(at, size, count)
  local first = math.max(1, math.min(at - size // 2, count - size + 1))
  return first, math.min(count, first + size - 1)
end

local function row_line(device, row, from, position)
  local cells, at = cells_of(row, position)
  local line = ("  device %d:%s"):format(device, from > 1 and #cells > 0 and " ..." or "")
  local arrow = ""
  for i = from, math.min(#cells, from + CELLS - 1) do
    line = line .. " " .. (i == at and ">" or "")
    if i == at then arrow = "\n" .. (" "):rep(#line) .. "^" end
    line = line .. cells[i] .. (i == at and "<" or "")
  end
  return line .. (#cells >= from + CELLS and " ..." or "") .. arrow
end

--- The grid of `rows` (texts) as lines that follow a message: action `position` (from 1) of row
--- `fault` in >brackets< with an arrow below.
---@param rows string[]
---@param fault integer the row, from 1
---@param position integer
---@return string
function grid.marked(rows, fault, position)
  local cells, at = cells_of(rows[fault], position)
  local from = window(at or #cells, CELLS, #cells)
  local first, last = window(fault, ROWS, #rows)
  local lines = { "" }
  for d = first, last do
    lines[#lines + 1] = row_line(d - 1, rows[d], from, d == fault and position or nil)
  end
  return table.concat(lines, "\n")
end

return grid
