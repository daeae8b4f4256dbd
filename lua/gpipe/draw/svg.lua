-- lua/gpipe/draw/svg.lua - writes SVG: texts, paths, the axis below a plot, the document.
--
-- A drawing appends elements to a list of strings. A figure has attributes only, no style sheet and
-- no script, so that converters to PDF understand all of it; a figure within a page may have
-- classes of that page.

local colours = require "gpipe.draw.colours"
local escape = require "gpipe.io.escape"

local svg = {}

local xml, place = escape.xml, escape.place

local FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
local CHARACTER = 0.56 -- mean width of a character, in font sizes: text cannot be measured here

--- Points around a figure.
svg.MARGIN = 16

-- ---- elements ----------------------------------------------------------------------------------

--- Estimate how wide a text is. What a font makes wider runs into the margin, not into the plot.
---@param text string
---@param size number of the font
---@return number
function svg.text_width(text, size) return (utf8.len(text) or #text) * size * CHARACTER end

--- Append a text.
---@param out string[]
---@param x number
---@param y number of its base line
---@param words string
---@param attributes? string
function svg.text(out, x, y, words, attributes)
  out[#out + 1] = ('<text x="%s" y="%s"%s>%s</text>'):format(place(x), place(y),
    attributes and " " .. attributes or "", xml(words))
end

--- Append a path.
---@param out string[]
---@param d string what it draws: "M0 1L2 3"
---@param attributes string
function svg.path(out, d, attributes)
  out[#out + 1] = ('<path d="%s" %s/>'):format(d, attributes)
end

--- Append a straight line.
---@param out string[]
---@param x1 number
---@param y1 number
---@param x2 number
---@param y2 number
---@param class string of the page
function svg.line(out, x1, y1, x2, y2, class)
  out[#out + 1] = ('<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>'):format(class, place(x1),
    place(y1), place(x2), place(y2))
end

--- What a path draws to join n points; where `at` returns nothing, the line is broken.
---@param n integer
---@param at fun(i: integer): number?, number? x and y of a point
---@return string "M0 1L2 3"
function svg.through(n, at)
  local parts, open = {}, false
  for i = 1, n do
    local x, y = at(i)
    if x then
      parts[#parts + 1] = ("%s%s %s"):format(open and "L" or "M", place(x), place(y))
    end
    open = x ~= nil
  end
  return table.concat(parts)
end

--- Append the axis below a plot: a line, its ticks with their texts, and the axis' name below them.
---@param out string[]
---@param o {left: number, y: number, width: number, name: string,
---  ticks: {at: number, text: string}[], at: fun(value: number): number} y: of the line; at: the x
---  of a value
function svg.axis(out, o)
  local faint, y = colours.day.faint, o.y
  local stroke = ('stroke="%s" stroke-width="1" fill="none"'):format(faint)
  svg.path(out, ("M%s %sh%s"):format(place(o.left), place(y), place(o.width)), stroke)
  out[#out + 1] = ('<g font-size="10.5" text-anchor="middle" fill="%s">'):format(faint)
  local marks = {}
  for i, tick in ipairs(o.ticks) do
    local x = o.at(tick.at)
    marks[i] = ("M%s %sv4"):format(place(x), place(y))
    svg.text(out, x, y + 15, tick.text)
  end
  out[#out + 1] = "</g>"
  svg.path(out, table.concat(marks), stroke)
  svg.text(out, o.left + o.width / 2, y + 30, o.name,
    ('font-size="11" text-anchor="middle" fill="%s"'):format(faint))
end

-- ---- documents ---------------------------------------------------------------------------------

--- The document around what was drawn.
---@param width number
---@param height number
---@param title string read out by screen readers
---@param out string[]
---@return string
function svg.document(width, height, title, out)
  local head = ('<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s '
    .. '%s" font-family="%s" role="img">\n<title>%s</title>\n'
    .. '<rect width="100%%" height="100%%" fill="%s"/>\n')
    :format(place(width), place(height), place(width), place(height), FONT, xml(title),
      colours.day.paper)
  return head .. table.concat(out, "\n") .. "\n</svg>\n"
end

--- A figure within a page, which has the font and the paper.
---@param width integer
---@param height integer
---@param out string[]
---@return string
function svg.inline(width, height, out)
  return ('<svg viewBox="0 0 %d %d" width="%d" height="%d" role="img">\n%s\n</svg>'):format(width,
    height, width, height, table.concat(out, "\n"))
end

return svg
