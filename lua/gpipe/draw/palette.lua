-- lua/gpipe/draw/palette.lua - colours of curves, as many as people tell apart.
--
-- The light ones have a contrast of at least 3 to 1 on white, the dark ones on the dark page (the
-- bound of WCAG for graphics); neighbours differ in hue and in lightness for the colour-blind.

local palette = {}

-- On white, on a dark page, and the number among the 256 of terminals (read on both).
local COLOURS = {
  { "#2563a8", "#6aa5e8", 33 },
  { "#c8541f", "#f0905e", 208 },
  { "#2f8f63", "#6cc79b", 35 },
  { "#8a4fb0", "#c497e3", 170 },
  { "#a87900", "#e0b84a", 178 },
  { "#147a8c", "#5cc4d6", 44 },
  { "#c2185b", "#ff7fae", 160 },
  { "#6b6f76", "#a9b0b9", 245 },
}

-- Lengths of strokes and gaps of the second name of a run, and so on: SVG's and the canvas'.
local DASHES = { "", "6 3", "2 3", "9 3 2 3" }

--- How many there are; after them they come again, dashed.
palette.count = #COLOURS

local function entry_of(place) return COLOURS[(place - 1) % #COLOURS + 1] end

--- The colour of the place-th curve on white.
---@param place integer from 1, the hue of the curve
---@return string "#rrggbb"
function palette.light(place) return entry_of(place)[1] end

--- The same on a dark page.
---@param place integer
---@return string "#rrggbb"
function palette.dark(place) return entry_of(place)[2] end

--- The dashes of a line: "" for none. What has the colour of an earlier one is dashed too.
---@param hue integer
---@param dash integer
---@return string
function palette.dash(hue, dash)
  return DASHES[(dash - 1 + (hue - 1) // #COLOURS) % #DASHES + 1]
end

--- The same among the 256 colours of terminals.
---@param place integer
---@return integer
function palette.terminal(place) return entry_of(place)[3] end

return palette
