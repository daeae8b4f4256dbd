-- lua/gpipe/draw/curves/panel.lua - a panel: the curves of one plot and the ranges of its axes.
--
-- A picture of curves is a list of panels, one above the other.

local panel = {}

---@class gpipe.Curve
---@field label string what tells it from the others of its panel
---@field part string the run or the group of runs
---@field name string
---@field place integer in its panel
---@field hue integer the same for a run in all panels; of one run that of the name
---@field dash integer of its name among those of the panel, where there are several runs
---@field x number[]
---@field low number[] the least value that falls on each point
---@field high number[]
---@field mean number[]
---@field smooth number[]
---@field last number the last value that was given, which need not be one of its points
---@field left_out integer values that are not finite, or not positive on a logarithmic axis

---@class gpipe.Panel
---@field title string
---@field curves gpipe.Curve[]
---@field x number[] the range: from, to
---@field y number[]
---@field unit? string name of the axis of x, where it is neither steps nor time
---@field names? string[] where several runs have several names each: lines differ by run and name

--- A panel without curves.
---@param title string
---@param more? {unit?: string, names?: string[]}
---@return gpipe.Panel
function panel.new(title, more)
  return { title = title, unit = more and more.unit, names = more and more.names, curves = {},
    x = { math.huge, -math.huge }, y = { math.huge, -math.huge } }
end

-- Widen range[1] .. range[2] by a list of numbers.
local function cover(range, list)
  for _, value in ipairs(list) do
    range[1], range[2] = math.min(range[1], value), math.max(range[2], value)
  end
end

--- Add a curve; the ranges grow to hold it.
---@param self gpipe.Panel
---@param curve gpipe.Curve
---@param lines? boolean only the smoothed line is drawn
function panel.add(self, curve, lines)
  self.curves[#self.curves + 1] = curve
  curve.place = #self.curves
  cover(self.x, curve.x)
  cover(self.y, lines and curve.smooth or curve.low)
  cover(self.y, lines and curve.smooth or curve.high)
end

--- What the axis of x is called.
---@param self gpipe.Panel
---@param time boolean? x are seconds
---@param axis gpipe.Axis of x
---@return string
function panel.x_name(self, time, axis)
  return self.unit or time and ("time (%s)"):format(axis.unit) or "step"
end

--- Whether the panel needs no legend: it has one curve, without a name, and all of it is drawn.
---@param self gpipe.Panel
---@return boolean
function panel.is_plain(self)
  local first = self.curves[1]
  return #self.curves == 1 and first.label == "" and first.left_out == 0
end

return panel
