-- lua/gpipe/draw/memory/areas.lua - the areas of a device's memory: order, colours, letters.
--
-- What stays for the whole of a run lies at the bottom of a picture, what comes and goes at its
-- top. Neighbours differ in hue and in lightness, also for the colour-blind.

local colours = require "gpipe.draw.colours"

local areas = {}

---@class gpipe.AreaColour
---@field name string
---@field day string "#rrggbb"
---@field night string
---@field letter string for terminals without colours

-- From the bottom to the top: what stays for a whole step, then what tasks keep, then temporaries.
-- Areas without a colour are small as a rule and take one of the curves.
local KNOWN = {
  { name = "parameters", day = "#2563a8", night = "#4f8fd6", letter = "p" },
  { name = "gradients", day = "#f2b23e", night = "#e0a637", letter = "g" },
  { name = "optimizer", day = "#4b2a57", night = "#86386f", letter = "o" },
  { name = "state", day = "#9aa0a6", night = "#848b93", letter = "s" },
  { name = "buffers" }, { name = "extra gradients" },
  { name = "partial sums", day = "#a8842c", night = "#8c6d1f", letter = "+" },
  { name = "packed", day = "#8db4dc", night = "#35618f", letter = "k" },
  { name = "halves" }, { name = "prepared" }, { name = "constants" }, { name = "kernel states" },
  { name = "versions" },
  { name = "edges", day = "#5fb58c", night = "#4f9f7a", letter = "e" },
  { name = "staging" },
  { name = "workspace", day = "#cf5a36", night = "#d86a48", letter = "w" },
  { name = "thread scratch" }, { name = "padding" },
  { name = "waste", day = "#d3d7dc", night = "#4a525b", letter = "." },
  { name = "activations", day = "#b9a6e3", night = "#a592d6", letter = "a" },
  { name = "saved", day = "#8a6fd1", night = "#a592d6", letter = "S" },
  { name = "recomputed", day = "#d5cbee", night = "#6a55a8", letter = "R" },
  { name = "carried", day = "#2f8f9d", night = "#49aebc", letter = "C" },
  { name = "transient", day = "#f0a48c", night = "#c76f55", letter = "T" },
}

local by_name = {}
for i, entry in ipairs(KNOWN) do by_name[entry.name] = { place = i, entry = entry } end

-- Letters of the other areas: what none of these has.
local LETTERS = "bcdfhijlmnqrtuvxyz"

--- The areas of a picture from the bottom to the top: those that are known in their order, others
--- above them in the order of their names.
---@param present table<string, boolean>
---@return gpipe.AreaColour[]
function areas.order(present)
  local names, list, strangers = {}, {}, 0
  for name in pairs(present) do names[#names + 1] = name end
  local function place_of(name) return by_name[name] and by_name[name].place or math.huge end
  table.sort(names, function(a, b)
    local x, y = place_of(a), place_of(b)
    if x ~= y then return x < y end
    return a < b
  end)
  for i, name in ipairs(names) do
    local known = by_name[name] and by_name[name].entry
    if known and known.day then
      list[i] = known
    else
      strangers = strangers + 1
      local curve, at = colours.curve(strangers + 2), (strangers - 1) % #LETTERS + 1
      list[i] = { name = name, day = curve.day, night = curve.night, letter = LETTERS:sub(at, at) }
    end
  end
  return list
end

return areas
