-- lua/gpipe/draw/canvas.lua - draw lines with characters.
--
-- A braille pattern has 2 x 4 dots, eight times as many as a letter. Where the locale has no such
-- characters a cell is one dot, written as the letter of its curve.

local canvas = {}

---@class gpipe.Canvas
---@field columns integer cells
---@field rows integer
---@field width integer dots
---@field height integer
---@field braille boolean
---@field bits table<integer, integer> per cell
---@field owner table<integer, integer> per cell: the curve that drew there last
---@field letters table<integer, string> per cell: a letter that is shown instead of dots
local Canvas = {}
Canvas.__index = Canvas

--- An empty canvas of cells.
---@param columns integer
---@param rows integer
---@param braille boolean
---@return gpipe.Canvas
function canvas.new(columns, rows, braille)
  return setmetatable({
    columns = columns, rows = rows, braille = braille, bits = {}, owner = {}, letters = {},
    width = columns * (braille and 2 or 1), height = rows * (braille and 4 or 1),
  }, Canvas)
end

-- Bits of a pattern: dots by column and row. Source: Unicode, Braille Patterns.
local BITS = { { 0x01, 0x02, 0x04, 0x40 }, { 0x08, 0x10, 0x20, 0x80 } }

--- Set a dot; one outside of the canvas is ignored.
---@param x integer from 0, to the right
---@param y integer from 0, upwards
---@param curve integer
function Canvas:dot(x, y, curve)
  if x < 0 or y < 0 or x >= self.width or y >= self.height then return end
  local down = self.height - 1 - y
  local wide, high = self.braille and 2 or 1, self.braille and 4 or 1
  local cell = down // high * self.columns + x // wide
  local bit = self.braille and BITS[x % 2 + 1][down % 4 + 1] or 1
  self.bits[cell] = (self.bits[cell] or 0) | bit
  self.owner[cell] = curve
end

--- Write a letter over the cell of a dot.
---@param x integer
---@param y integer
---@param letter string
function Canvas:write(x, y, letter)
  local wide, high = self.braille and 2 or 1, self.braille and 4 or 1
  self.letters[(self.height - 1 - y) // high * self.columns + x // wide] = letter
end

--- Draw a line between two places. Source: Bresenham, 1965.
---@param x1 integer
---@param y1 integer
---@param x2 integer
---@param y2 integer
---@param curve integer
function Canvas:line(x1, y1, x2, y2, curve)
  local dx, dy = math.abs(x2 - x1), -math.abs(y2 - y1)
  local sx, sy = x1 < x2 and 1 or -1, y1 < y2 and 1 or -1
  local rest = dx + dy
  while true do
    self:dot(x1, y1, curve)
    if x1 == x2 and y1 == y2 then return end
    local twice = 2 * rest
    if twice >= dy then rest, x1 = rest + dy, x1 + sx end
    if twice <= dx then rest, y1 = rest + dx, y1 + sy end
  end
end

--- The text of a row of cells.
---@param row integer from 1, downwards
---@param letter fun(curve: integer): string what a dot is without braille
---@param paint? fun(curve: integer, text: string): string
---@return string
function Canvas:row(row, letter, paint)
  local parts = {}
  for column = 0, self.columns - 1 do
    local cell = (row - 1) * self.columns + column
    local bits, text = self.bits[cell], self.letters[cell] or " "
    if bits and text == " " then
      text = self.braille and utf8.char(0x2800 + bits) or letter(self.owner[cell])
      if paint then text = paint(self.owner[cell], text) end
    end
    parts[#parts + 1] = text
  end
  return (table.concat(parts):gsub(" +$", ""))
end

return canvas
