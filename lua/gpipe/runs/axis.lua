-- lua/gpipe/runs/axis.lua - the axes of curves: where a value lies, and ticks that people would
-- choose.

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

-- The smallest of 1, 2, 5 times a power of ten that is at least `least`.
local function round_step(least)
  local power = 10.0 ^ math.floor(math.log(least, 10))
  for _, digit in ipairs { 1, 2, 5 } do
    if digit * power >= least * (1 - 1e-9) then return digit * power end
  end
  return 10 * power
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
  local digits = math.ceil(math.log(size / step, 10)) + 2
  if size < 1e6 then digits = math.max(digits, math.floor(math.log(size, 10)) + 1) end
  local text = ("%." .. math.min(math.max(digits, 3), 15) .. "g"):format(value)
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

local function linear_ticks(from, to, most, divisor)
  divisor = divisor or 1
  local step = round_step((to - from) / divisor / math.max(1, most))
  local list = {}
  for i = math.ceil(from / divisor / step - 1e-9), math.floor(to / divisor / step + 1e-9) do
    list[#list + 1] = { at = i * step * divisor, text = number_text(i * step, step) }
  end
  return list
end

-- Powers of ten, with 2 and 5 times those where there are few.
local function log_ticks(from, to, most)
  local first, last = math.floor(math.log(from, 10)), math.ceil(math.log(to, 10))
  local every = math.max(1, math.ceil((last - first) / math.max(1, most)))
  local digits = (last - first) * 3 <= most and { 1, 2, 5 } or { 1 }
  local list = {}
  for power = first, last, every do
    for _, digit in ipairs(digits) do
      local at = digit * 10.0 ^ power
      if at >= from * (1 - 1e-9) and at <= to * (1 + 1e-9) then
        list[#list + 1] = { at = at, text = number_text(at, at) }
      end
    end
  end
  return #list >= 2 and list or linear_ticks(from, to, most)
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

-- Room around values that are all the same, so that there is an extent.
local function widened(from, to)
  if to > from then return from, to end
  local room = from == 0 and 1 or math.abs(from) * 0.05
  return from - room, to + room
end

--- An axis that shows from .. to.
---@param from number
---@param to number
---@param opts {most: integer, log?: boolean, time?: boolean} most: ticks
---@return gpipe.Axis
function axis.new(from, to, opts)
  local log = opts.log == true and from > 0
  if not log then
    from, to = widened(from, to)
  elseif to <= from then
    from, to = from / 2, to * 2
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

--- Where a value lies: 0 at the begin of the axis, 1 at its end.
---@param value number
---@return number
function Axis:place(value)
  if self.log then
    return (math.log(value) - math.log(self.from)) / (math.log(self.to) - math.log(self.from))
  end
  return (value - self.from) / (self.to - self.from)
end

return axis
