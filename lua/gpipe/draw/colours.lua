-- lua/gpipe/draw/colours.lua - the palette of all drawings: pages, ops of schedules, curves.
--
-- The six ops differ in hue for the colour-blind (blue, orange, vermilion, green, lilac, plum) and
-- in lightness for greyscale: U < F < I < W < B < R. The stages of one device are tints of the op's
-- colour; the tints of I go less far, so that they stay darker than those of W.
-- Ink on a fill is black or white, whichever has more contrast (WCAG: at least 4.5 to 1, always).
-- Curves have a contrast of at least 3 to 1 with the page (WCAG's bound for graphics), and
-- neighbours differ in hue and in lightness.

local colours = {}

---@class gpipe.OpColour
---@field name string for legends
---@field fill string "#rrggbb"
---@field dark? string fill on a dark page, where the usual one would drown
---@field tint? number how far its stages go towards white, of what others do

-- In the order of legends.
local ops = {
  { op = "F", name = "forward", fill = "#2563a8" },
  { op = "B", name = "backward", fill = "#f2b23e" },
  { op = "I", name = "input gradient", fill = "#cf5a36", tint = 0.6 },
  { op = "W", name = "weight gradient", fill = "#5fb58c" },
  { op = "R", name = "recompute", fill = "#d5cbee" },
  { op = "U", name = "update", fill = "#4b2a57", dark = "#a98bb8" },
}

local by_op = {}
for _, entry in ipairs(ops) do by_op[entry.op] = entry end

-- What lowering inserts: sends, receives, reductions, preparation.
local other = { op = "", name = "other (sends, receives, sums)", fill = "#9aa0a6" }

--- Colours of pages and figures by day: the paper, words, lesser words, lines, the lane behind the
--- cells (it shows where a device is idle), and marks such as the critical path.
colours.day = { paper = "#ffffff", ink = "#1c1e21", faint = "#5c636b", line = "#d5dae0",
  lane = "#eef0f3", mark = "#c2185b" }
--- The same by night.
colours.night = { paper = "#14171b", ink = "#e6e8eb", faint = "#9aa3ad", line = "#333a42",
  lane = "#20252b", mark = "#ff6f9f" }

local MOST_TINT = 0.56 -- how far the last of several stages goes towards white

-- ---- arithmetic ---------------------------------------------------------------------------------

--- Red, green and blue of a colour, 0 to 255.
---@param hex string "#rrggbb"
---@return integer
---@return integer
---@return integer
function colours.components(hex)
  local r, g, b = hex:match "^#(%x%x)(%x%x)(%x%x)$"
  return tonumber(r, 16), tonumber(g, 16), tonumber(b, 16)
end

local function mix_with_white(hex, share)
  local r, g, b = colours.components(hex)
  local function mixed(c) return math.floor(c + (255 - c) * share + 0.5) end
  return ("#%02x%02x%02x"):format(mixed(r), mixed(g), mixed(b))
end

-- Relative luminance, 0 to 1. Source: WCAG 2.1.
local function luminance(hex)
  local function linear(c)
    c = c / 255
    return c <= 0.04045 and c / 12.92 or ((c + 0.055) / 1.055) ^ 2.4
  end
  local r, g, b = colours.components(hex)
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
end

--- Contrast of two colours, 1 to 21. Source: WCAG 2.1.
---@param a string "#rrggbb"
---@param b string
---@return number
function colours.contrast(a, b)
  local high, low = luminance(a), luminance(b)
  if high < low then high, low = low, high end
  return (high + 0.05) / (low + 0.05)
end

-- ---- fills and inks -----------------------------------------------------------------------------

--- The entry of an op; an op without a colour of its own has that of all others.
---@param op string
---@return gpipe.OpColour
function colours.op(op) return by_op[op] or other end

--- The fill of an op on the place-th of `count` stages of its device.
---@param op string
---@param place? integer from 1
---@param count? integer
---@return string "#rrggbb"
function colours.fill(op, place, count)
  local entry = colours.op(op)
  if not place or place <= 1 or count <= 1 then return entry.fill end
  local step = math.min(0.38, MOST_TINT / (count - 1)) * (entry.tint or 1)
  return mix_with_white(entry.fill, step * (place - 1))
end

--- The colour of text on a fill.
---@param fill string
---@return string
function colours.ink(fill)
  local white, black = colours.contrast(fill, "#ffffff"), colours.contrast(fill, "#000000")
  return white >= black and "#ffffff" or "#000000"
end

--- The ops of a drawing in the order of legends; what has no colour of its own is one entry
--- "other".
---@param present table<string, boolean>
---@return gpipe.OpColour[]
function colours.legend(present)
  local list, rest = {}, false
  for _, entry in ipairs(ops) do
    if present[entry.op] then list[#list + 1] = entry end
  end
  for op, visible in pairs(present) do rest = rest or visible and not by_op[op] end
  if rest then list[#list + 1] = other end
  return list
end

--- All entries with a colour of their own.
colours.ops = ops

-- ---- curves -------------------------------------------------------------------------------------

--- Colours of curves, as many as people tell apart: by day, by night, and the number among the 256
--- colours of terminals, which is readable on both.
colours.curves = {
  { day = "#2563a8", night = "#6aa5e8", terminal = 33 },
  { day = "#c8541f", night = "#f0905e", terminal = 208 },
  { day = "#2f8f63", night = "#6cc79b", terminal = 35 },
  { day = "#8a4fb0", night = "#c497e3", terminal = 170 },
  { day = "#a87900", night = "#e0b84a", terminal = 178 },
  { day = "#147a8c", night = "#5cc4d6", terminal = 44 },
  { day = "#c2185b", night = "#ff7fae", terminal = 160 },
  { day = "#6b6f76", night = "#a9b0b9", terminal = 245 },
}

--- The colours of a curve; they come again after the last of them.
---@param hue integer from 1
---@return {day: string, night: string, terminal: integer}
function colours.curve(hue) return colours.curves[(hue - 1) % #colours.curves + 1] end

return colours
