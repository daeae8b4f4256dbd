-- lua/gpipe/draw/colours.lua - the palette that all drawings share.
--
-- The six ops differ in hue for the colour-blind (blue, orange, vermilion, green, lilac, plum) and
-- in lightness for greyscale: U < F < I < W < B < R. The stages of one device are tints of the op's
-- colour; those of I go less far, so that they stay darker than those of W.
-- Ink on a fill is black or white, whichever has more contrast (WCAG: at least 4.5 to 1, always).

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

--- The lane behind the cells: what shows where a device is idle.
colours.idle = "#eef0f3"

--- What marks the critical path.
colours.critical = "#c2185b"

local MOST_TINT = 0.56 -- how far the last of several stages goes towards white

-- ---- arithmetic ---------------------------------------------------------------------------------

local function components(hex)
  local r, g, b = hex:match "^#(%x%x)(%x%x)(%x%x)$"
  return tonumber(r, 16), tonumber(g, 16), tonumber(b, 16)
end

local function mix_with_white(hex, share)
  local r, g, b = components(hex)
  local function mixed(c) return math.floor(c + (255 - c) * share + 0.5) end
  return ("#%02x%02x%02x"):format(mixed(r), mixed(g), mixed(b))
end

-- Relative luminance, 0 to 1. Source: WCAG 2.1.
local function luminance(hex)
  local function linear(c)
    c = c / 255
    return c <= 0.04045 and c / 12.92 or ((c + 0.055) / 1.055) ^ 2.4
  end
  local r, g, b = components(hex)
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

local function entry_of(op) return by_op[op] or other end

--- The fill of an op on the place-th of `count` stages of its device.
---@param op string
---@param place? integer from 1
---@param count? integer
---@return string "#rrggbb"
function colours.fill(op, place, count)
  local entry = entry_of(op)
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

--- All entries with a colour of their own, and the one for what has none.
colours.ops, colours.other = ops, other

-- ---- terminals ----------------------------------------------------------------------------------

-- The colour cube of 256-colour terminals has these levels.
local LEVELS = { 0, 95, 135, 175, 215, 255 }

local function nearest_level(c)
  local best = 1
  for i, level in ipairs(LEVELS) do
    if math.abs(level - c) < math.abs(LEVELS[best] - c) then best = i end
  end
  return best - 1
end

--- The escape sequence that starts text on a fill; "\27[0m" ends it.
---@param fill string
---@return string
function colours.escape(fill)
  local r, g, b = components(fill)
  local cube = 16 + 36 * nearest_level(r) + 6 * nearest_level(g) + nearest_level(b)
  return ("\27[48;5;%d;38;5;%dm"):format(cube, colours.ink(fill) == "#ffffff" and 231 or 16)
end

return colours
