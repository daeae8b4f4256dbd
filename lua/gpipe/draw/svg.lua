-- lua/gpipe/draw/svg.lua - what every figure in SVG is made of: its frame and its texts.
--
-- Attributes only, no style sheet and no script: converters to PDF understand all of it.

local escape = require "gpipe.io.escape"

local sheet = {}

local xml, place = escape.xml, escape.place

local FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
local CHARACTER = 0.56 -- mean width of a character, in font sizes: nobody can measure text here

--- Colours of words, of lesser words and of lines.
sheet.INK, sheet.FAINT, sheet.GRID = "#1c1e21", "#5c636b", "#d5dae0"
--- Points around a figure.
sheet.MARGIN = 16

--- About how wide a text is. What a font makes wider runs into the margin, not into the plot.
---@param text string
---@param size number of the font
---@return number
function sheet.text_width(text, size) return (utf8.len(text) or #text) * size * CHARACTER end

--- Append a text.
---@param out string[]
---@param x number
---@param y number of its base line
---@param words string
---@param attributes? string
function sheet.text(out, x, y, words, attributes)
  out[#out + 1] = ('<text x="%s" y="%s"%s>%s</text>'):format(place(x), place(y),
    attributes and " " .. attributes or "", xml(words))
end

--- The document around what was drawn.
---@param width number
---@param height number
---@param title string for those who cannot see it
---@param out string[]
---@return string
function sheet.document(width, height, title, out)
  local head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s '
    .. '%s" '
    .. 'font-family="%s" role="img">\n<title>%s</title>\n'
    .. '<rect width="100%%" height="100%%" fill="#ffffff"/>\n')
    :format(place(width), place(height), place(width), place(height), FONT, xml(title))
  return head .. table.concat(out, "\n") .. "\n</svg>\n"
end

return sheet
