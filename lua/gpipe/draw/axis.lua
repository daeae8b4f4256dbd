-- lua/gpipe/draw/axis.lua - the axes of curves: where a value lies, and ticks that people would
-- choose.
--
-- Values may be anything that is finite. Differences of huge ones would overflow, steps between
-- neighbours would vanish in their rounding: so values are halved before they are subtracted, ticks
-- are counted by integers, and there are at most so many of them whatever the rest says.

local axis = {}

---@class gpipe.Axis
---@field from number
---@field to number above from
---@field log boolean
---@field unit string "" or of times
---@field ticks {at: number, text: string}[]
local Axis = {}
Axis.__index = Axis

-- ---- numbers -----------------------------------------------------------------------------------

local LEAST, LARGEST = 2.3e-308, 1.7e308 -- normal floats; nothing finer is told apart

local function clamp(value, low, high) return math.max(low, math.min(value, high)) end

-- log10 that is finite for every positive number.
local function decade(value) return math.log(clamp(value, LEAST, LARGEST), 10) end

-- 10 ^ n, within what floats hold.
local function power_of(n) return clamp(10.0 ^ clamp(n, -307, 308), LEAST, LARGEST) end

-- The smallest of 1, 2, 5 times a power of ten that is at least `least`.
local function round_step(least)
  local power = power_of(math.floor(decade(least)))
  for _, digit in ipairs { 1, 2, 5 } do
    if digit * power >= least * (1 - 1e-9) then return digit * power end
  end
  return math.min(10 * power, LARGEST)
end

local UNITS = { { 1e9, "G", 1e9 }, { 1e6, "M", 1e6 }, { 1e3, "k", 1e4 } } -- from where on

-- Six digits are enough to tell neighbours apart, but not for large values close to each other.
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

--- A value in few characters, as it stands beside a curve.
---@param value number
---@return string
function axis.number(value)
  if value ~= value then return "nan" end
  if math.abs(value) == math.huge then return value > 0 and "inf" or "-inf" end
  return number_text(value, math.abs(value) / 1000 + 1e-300)
end

-- ---- ticks -------------------------------------------------------------------------------------

local MOST_TICKS = 100

-- Calls f(i) for the integers from first to last that doubles can tell apart, at most so many.
local function count(first, last, f)
  if last - first >= MOST_TICKS then return end -- steps that vanish beside the values
  for k = 0, last - first do f(first + k) end
end

local function linear_ticks(from, to, most, divisor)
  divisor = divisor or 1
  local step = round_step((to / 2 - from / 2) / divisor / math.max(1, most) * 2)
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
  for _, tick in ipairs(linear_ticks(from, to, most)) do
    if tick.at >= from and tick.at <= to then few[#few + 1] = tick end
  end
  return #few > #list and few or list
end

local TIMES = { { 2 * 86400, 86400, "d" }, { 2 * 3600, 3600, "h" }, { 120, 60, "min" },
  { 0, 1, "s" } }

local function time_ticks(from, to, most)
  for _, entry in ipairs(TIMES) do
    if to - from >= entry[1] then
      return linear_ticks(from, to, most, entry[2]), entry[3]
    end
  end
end

-- ---- axes --------------------------------------------------------------------------------------

-- Whether doubles tell enough places between the two apart to draw them.
local function is_wide(from, to)
  local span = to / 2 - from / 2
  return span > LEAST and span > math.max(math.abs(from), math.abs(to)) * 1e-14
end

-- Room around values that are all the same, or nearly, so that there is an extent.
local function widened(from, to)
  from, to = clamp(from, -LARGEST, LARGEST), clamp(to, -LARGEST, LARGEST)
  if to > from and is_wide(from, to) then return from, to end
  local middle = from / 2 + to / 2
  local room = math.abs(middle) < LEAST / 0.01 and 1 or math.abs(middle) * 0.05
  return clamp(middle - room, -LARGEST, LARGEST), clamp(middle + room, -LARGEST, LARGEST)
end

--- An axis that shows from .. to.
---@param from number
---@param to number
---@param opts {most: integer, log?: boolean, time?: boolean} most: ticks
---@return gpipe.Axis
function axis.new(from, to, opts)
  local log = opts.log == true and not opts.time and from > 0
  if not log then
    from, to = widened(from, to)
  else
    from, to = clamp(from, LEAST, LARGEST), clamp(to, LEAST, LARGEST)
    if to <= from or not is_wide(from, to) then
      from, to = math.max(from / 2, LEAST), math.min(to, LARGEST / 2) * 2
    end
  end
  local made = setmetatable({ from = from, to = to, log = log, unit = "" }, Axis)
  if opts.time then
    made.ticks, made.unit = time_ticks(from, to, opts.most)
  elseif log then
    made.ticks = log_ticks(from, to, opts.most)
  else
    made.ticks = linear_ticks(from, to, opts.most)
  end
  return made
end

--- Where a value lies: 0 at the begin of the axis, 1 at its end; a value outside of it is a little
--- outside, so that lines to it can be drawn.
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
