-- lua/gpipe/draw/schedule/scale.lua - one scale of time for several timelines.
--
-- A predicted timeline counts in the unit of its costs, a measured one in seconds. To be drawn one
-- above the other they are brought to one scale, and the drawing notes the factor.

local axis = require "gpipe.draw.axis"

local scale = {}

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
---@field note string? how long one unit of the predicted timeline is, where factors differ

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
      made.note = ("1 unit of %s = %s%s"):format(view.name, axis.time(factor, base.unit),
        seconds and "" or " (equal makespans)")
    end
    made.factors[i] = factor
    made.extent = math.max(made.extent, view.extent * factor)
  end
  return made
end

--- The axis of a drawing: from 0 to the extent, at most `most` ticks beside 0.
---@param made gpipe.Scale
---@param most integer
---@return gpipe.Axis
function scale.axis(made, most)
  return axis.new(0, made.extent, { most = most, time = made.unit == "s", whole = true })
end

return scale
