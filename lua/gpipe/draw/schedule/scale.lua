-- lua/gpipe/draw/schedule/scale.lua - time on paper: one scale for several timelines, and ticks.
--
-- A predicted timeline counts in the unit of its costs, a measured one in seconds. To lie above one
-- another they are brought to one scale, and the drawing says by which factor.

local scale = {}

-- ---- several timelines --------------------------------------------------------------------------

-- The view whose times the axis shows: the first in seconds, else the first.
local function base_of(views)
  for _, view in ipairs(views) do
    if view.unit == "s" then return view end
  end
  return views[1]
end

---@class gpipe.Scale
---@field factors number[] per view: its times multiplied by this are on the axis
---@field unit string of the axis
---@field extent number what the axis must cover
---@field note string? what one unit of the predicted is, where factors differ

--- One time axis for several views. Views in the axis' unit keep their times; the others are
--- stretched by `seconds` per unit, or to the makespan of the axis' view.
---@param views gpipe.View[]
---@param seconds number?
---@return gpipe.Scale
function scale.common(views, seconds)
  local base = base_of(views)
  local made = { factors = {}, unit = base.unit, extent = 0 }
  for i, view in ipairs(views) do
    local factor = 1
    if view.unit ~= base.unit then
      local equal = view.makespan > 0 and base.makespan > 0 and base.makespan / view.makespan or 1
      factor = seconds or equal
      made.note = ("1 unit of %s = %s%s"):format(view.name, scale.time(factor, base.unit),
        seconds and "" or " (equal makespans)")
    end
    made.factors[i] = factor
    made.extent = math.max(made.extent, view.extent * factor)
  end
  return made
end

-- ---- words --------------------------------------------------------------------------------------

local SECONDS = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "\u{b5}s" }, { 1e-9, "ns" } }

--- The factor and the name of what times up to `extent` are best written in.
---@param extent number
---@param unit string
---@return number divisor
---@return string name
function scale.unit(extent, unit)
  if unit ~= "s" then return 1, "" end
  for _, entry in ipairs(SECONDS) do
    if extent >= entry[1] then return entry[1], entry[2] end
  end
  return 1e-9, "ns"
end

--- A time in three or four digits with its unit: "12.5 ms", "22".
---@param value number
---@param unit string
---@return string
function scale.time(value, unit)
  local divisor, name = scale.unit(math.abs(value), unit)
  local scaled = value / divisor
  local text = scaled >= 1000 and ("%.0f"):format(scaled) or ("%.4g"):format(scaled)
  return name == "" and text or text .. " " .. name
end

-- ---- ticks --------------------------------------------------------------------------------------

-- The smallest of 1, 2, 5 times a power of ten that is at least `least`.
local function round_step(least)
  local power = 10.0 ^ math.floor(math.log(least, 10))
  for _, digit in ipairs { 1, 2, 5, 10 } do
    if digit * power >= least * (1 - 1e-9) then return digit * power end
  end
  return 10 * power
end

--- Ticks from 0 to extent, at most `most` of them beside 0, with their texts; and the unit's name.
---@param extent number
---@param unit string
---@param most integer
---@return {at: number, text: string}[]
---@return string name
function scale.ticks(extent, unit, most)
  local divisor, name = scale.unit(extent, unit)
  local step = round_step(extent / divisor / math.max(1, most))
  if unit ~= "s" and step < 1 and extent >= 1 and most >= extent then step = 1.0 end
  local list, i = {}, 0
  while i * step <= extent / divisor * (1 + 1e-9) do
    list[i + 1] = { at = i * step * divisor, text = ("%.10g"):format(i * step) }
    i = i + 1
  end
  return list, name
end

return scale
