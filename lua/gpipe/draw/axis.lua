-- lua/gpipe/draw/axis.lua - one axis for every drawing: where a value lies, and round ticks.
--
-- A value may be any finite number. The difference of two huge values would overflow, and the step
-- between two neighbours may vanish in rounding. So values are halved before they are subtracted,
-- ticks are counted by integers, and their number has a limit.

local axis = {}

---@class gpipe.Axis
---@field from number
---@field to number above from
---@field log boolean
---@field unit string of times, "" for plain numbers
---@field ticks {at: number, text: string}[]
local Axis = {}
Axis.__index = Axis

-- ---- numbers -----------------------------------------------------------------------------------

local LEAST, LARGEST = 2.3e-308, 1.7e308 -- normal floats; anything finer counts as equal

local function clamp(value, low, high) return math.max(low, math.min(value, high)) end

-- log10, finite for every positive number.
local function decade(value) return math.log(clamp(value, LEAST, LARGEST), 10) end

-- 10 ^ n, within the range of floats.
local function power_of(n) return clamp(10.0 ^ clamp(n, -307, 308), LEAST, LARGEST) end

-- The smallest of 1, 2, 5 times a power of ten that is at least `least`.
local function round_step(least)
  local power = power_of(math.floor(decade(least)))
  for _, digit in ipairs { 1, 2, 5 } do
    if digit * power >= least * (1 - 1e-9) then return digit * power end
  end
  return math.min(10 * power, LARGEST)
end

local UNITS = { { 1e9, "G", 1e9 }, { 1e6, "M", 1e6 }, { 1e3, "k", 1e4 } } -- used from the third on

-- The text of a value that is told apart from its neighbours `step` away.
local function number_text(value, step)
  if value == 0 then return "0" end
  local size = math.max(math.abs(value), step)
  for _, unit in ipairs(UNITS) do
    if size >= unit[3] and step >= unit[1] / 100 then
      return ("%.6g%s"):format(value / unit[1], unit[2])
    end
  end
  local digits = math.ceil(decade(size) - decade(step)) + 2
  if size < 1e6 then digits = math.max(digits, math.floor(decade(size)) + 1) end
  local text = ("%%.%dg"):format(clamp(digits, 3, 15)):format(value)
  return (text:gsub("e([+-])0*(%d)", function(sign, digit)
    return "e" .. (sign == "-" and sign or "") .. digit
  end))
end

--- A value in few characters, to stand beside a curve.
---@param value number
---@return string
function axis.number(value)
  if value ~= value then return "nan" end
  if math.abs(value) == math.huge then return value > 0 and "inf" or "-inf" end
  return number_text(value, math.abs(value) / 1000 + 1e-300)
end

-- ---- times -------------------------------------------------------------------------------------

--- Units of time: {seconds from which on a unit is used, seconds in it, name}.
axis.TIMES = {
  { 2 * 86400, 86400, "d" }, { 2 * 3600, 3600, "h" }, { 120, 60, "min" }, { 1, 1, "s" },
  { 1e-3, 1e-3, "ms" }, { 1e-6, 1e-6, "\u{b5}s" }, { 0, 1e-9, "ns" },
}

-- Seconds in the unit that suits times up to `extent`, and its name.
local function unit_of(extent)
  for _, entry in ipairs(axis.TIMES) do
    if extent >= entry[1] then return entry[2], entry[3] end
  end
end

--- A time in three or four digits with its unit: "12.5 ms", "22".
---@param value number
---@param unit string "s", or "" for the unit of a schedule's costs
---@return string
function axis.time(value, unit)
  local divisor, name = 1, ""
  if unit == "s" then divisor, name = unit_of(math.abs(value)) end
  local scaled = value / divisor
  local text = scaled >= 1000 and ("%.0f"):format(scaled) or ("%.4g"):format(scaled)
  return name == "" and text or text .. " " .. name
end

-- ---- ticks -------------------------------------------------------------------------------------

local MOST_TICKS = 100

-- Call f(i) for the integers from first to last. There are too many of them where the step vanishes
-- beside the values; then call it for none.
local function count(first, last, f)
  if last - first >= MOST_TICKS then return end
  for k = 0, last - first do f(first + k) end
end

-- whole: no step below 1 where `most` ticks have room for steps of 1.
local function linear_ticks(from, to, most, divisor, whole)
  local step = round_step((to / 2 - from / 2) / divisor / math.max(1, most) * 2)
  if whole and step < 1 and to - from >= 1 and most >= to - from then step = 1.0 end
  local list = {}
  count(math.ceil(from / divisor / step - 1e-9), math.floor(to / divisor / step + 1e-9), function(i)
    list[#list + 1] = { at = i * step * divisor, text = number_text(i * step, step) }
  end)
  return list
end

-- Powers of ten, with 2 and 5 times those where there are few.
local function log_ticks(from, to, most)
  local first, last = math.floor(decade(from)), math.ceil(decade(to))
  local every = math.max(1, math.ceil((last - first) / math.max(1, most)))
  local digits = (last - first) * 3 <= most and { 1, 2, 5 } or { 1 }
  local list = {}
  for power = first, last, every do
    for _, digit in ipairs(digits) do
      local at = digit * power_of(power)
      if at >= from * (1 - 1e-9) and at <= to * (1 + 1e-9) then
        list[#list + 1] = { at = at, text = number_text(at, at) }
      end
    end
  end
  if #list >= 2 then return list end
  local few = {}
  for _, tick in ipairs(linear_ticks(from, to, most, 1)) do
    if tick.at >= from and tick.at <= to then few[#few + 1] = tick end
  end
  return #few > #list and few or list
end

-- ---- axes --------------------------------------------------------------------------------------

-- Whether floats tell enough places between the two apart to draw them.
local function is_wide(from, to)
  local span = to / 2 - from / 2
  return span > LEAST and span > math.max(math.abs(from), math.abs(to)) * 1e-14
end

-- Add room around values that are equal, or nearly, so that the axis has an extent.
local function widened(from, to)
  from, to = clamp(from, -LARGEST, LARGEST), clamp(to, -LARGEST, LARGEST)
  if to > from and is_wide(from, to) then return from, to end
  local middle = from / 2 + to / 2
  local room = math.abs(middle) < LEAST / 0.01 and 1 or math.abs(middle) * 0.05
  return clamp(middle - room, -LARGEST, LARGEST), clamp(middle + room, -LARGEST, LARGEST)
end

--- Make an axis that shows from .. to.
---@param from number
---@param to number
---@param opts {most: integer, log?: boolean, time?: boolean, whole?: boolean} most: ticks; time:
---  values are seconds; whole: steps of at least 1 where there is room for them
---@return gpipe.Axis
function axis.new(from, to, opts)
  local log, most = opts.log == true and not opts.time and from > 0, opts.most
  if not log then
    from, to = widened(from, to)
  else
    from, to = clamp(from, LEAST, LARGEST), clamp(to, LEAST, LARGEST)
    if to <= from or not is_wide(from, to) then
      from, to = math.max(from / 2, LEAST), math.min(to, LARGEST / 2) * 2
    end
  end
  most = math.min(most, MOST_TICKS - 2) -- a step of 1, 2 or 5 leaves at most two ticks more
  local made = setmetatable({ from = from, to = to, log = log, unit = "" }, Axis)
  if log then
    made.ticks = log_ticks(from, to, most)
    return made
  end
  local divisor = 1
  if opts.time then divisor, made.unit = unit_of(to - from) end
  made.ticks = linear_ticks(from, to, most, divisor, opts.whole and not opts.time)
  return made
end

--- Where a value lies: 0 at the begin of the axis, 1 at its end. A value outside the axis lies
--- slightly outside, so that a line to it can be drawn.
---@param value number
---@return number
function Axis:place(value)
  local share
  if self.log then
    local from = decade(self.from)
    share = (decade(value) - from) / (decade(self.to) - from)
  else
    share = (value / 2 - self.from / 2) / (self.to / 2 - self.from / 2)
  end
  return share == share and clamp(share, -1, 2) or 0
end

return axis
