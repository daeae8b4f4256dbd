-- lua/gpipe/draw/terminal.lua - texts for terminals: clean, cut, filled up, coloured.

local colours = require "gpipe.draw.colours"

local terminal = {}

-- Characters that turn the direction of what follows, or are not seen: U+200B to U+200F, U+202A to
-- U+202E, U+2060 to U+2069, U+FEFF, and the control characters from U+0080 on.
local UNSEEN = { "\xe2\x80[\x8b-\x8f\xaa-\xae]", "\xe2\x81[\xa0-\xa9]",
  "\xef\xbb\xbf", "\xc2[\x80-\x9f]" }

--- Make text fit for a terminal: what is not UTF-8, would control the terminal or turn the
--- direction of the text becomes "?".
---@param text string
---@return string
function terminal.clean(text)
  if not utf8.len(text) then text = text:gsub("[\128-\255]", "?") end
  for _, pattern in ipairs(UNSEEN) do text = text:gsub(pattern, "?") end
  return (text:gsub("%c", "?"))
end

--- The first `width` characters of a text.
---@param text string
---@param width integer
---@return string
function terminal.cut(text, width)
  if utf8.len(text) <= width then return text end
  return text:sub(1, utf8.offset(text, math.max(0, width) + 1) - 1)
end

--- The first `width` characters of a text, clean.
---@param text string
---@param width integer
---@return string
function terminal.fit(text, width) return terminal.cut(terminal.clean(text), width) end

--- A text filled up with spaces.
---@param text string
---@param width integer
---@return string
function terminal.pad(text, width) return text .. (" "):rep(width - utf8.len(text)) end

-- ---- colours -----------------------------------------------------------------------------------

--- Text in one of the 256 colours.
---@param text string
---@param number integer
---@return string
function terminal.in_colour(text, number) return ("\27[38;5;%dm%s\27[0m"):format(number, text) end

-- The colour cube of 256-colour terminals has these levels.
local LEVELS = { 0, 95, 135, 175, 215, 255 }

local function nearest_level(c)
  local best = 1
  for i, level in ipairs(LEVELS) do
    if math.abs(level - c) < math.abs(LEVELS[best] - c) then best = i end
  end
  return best - 1
end

-- The number of the colour of the cube that is nearest to "#rrggbb".
local function cube_of(hex)
  local r, g, b = colours.components(hex)
  return 16 + 36 * nearest_level(r) + 6 * nearest_level(g) + nearest_level(b)
end

--- Text on a fill, in the ink that is read best on it.
---@param text string
---@param fill string "#rrggbb"
---@return string
function terminal.on_fill(text, fill)
  return ("\27[48;5;%d;38;5;%dm%s\27[0m"):format(cube_of(fill),
    colours.ink(fill) == "#ffffff" and 231 or 16, text)
end

--- Text in one colour on another; each may be left out: then it is the terminal's own, or on a fill
--- the ink that is read best.
---@param text string
---@param colour? string "#rrggbb"
---@param fill? string
---@return string
function terminal.block(text, colour, fill)
  if not colour then return fill and terminal.on_fill(text, fill) or text end
  if not fill then return terminal.in_colour(text, cube_of(colour)) end
  return ("\27[48;5;%d;38;5;%dm%s\27[0m"):format(cube_of(fill), cube_of(colour), text)
end

return terminal
