-- tests/support/resampling.lua - references of pooling, padding and sampling of images, by their
-- definition: lists of what an output reads along one axis, as {position, weight}.

local array = require "tests.support.array"

local resampling = {}

-- ---- along one axis; positions from 1 --------------------------------------------------------

-- Lists the positions of window i, those in the padding too.
local function window(i, axis)
  local list = {}
  for k = 0, axis.kernel - 1 do
    list[#list + 1] = (i - 1) * axis.stride - axis.before + k * axis.dilation + 1
  end
  return list
end

local function adaptive(i, axis)
  local list = {}
  for p = (i - 1) * axis.size // axis.out + 1, math.ceil(i * axis.size / axis.out) do
    list[#list + 1] = p
  end
  return list
end

local function within(list, first, last)
  local kept = {}
  for _, p in ipairs(list) do
    if p >= first and p <= last then kept[#kept + 1] = p end
  end
  return kept
end

local function average(list, axis, inside)
  local counted = within(list, inside and 1 or -axis.before + 1,
    inside and axis.size or axis.size + axis.behind)
  local taps = {}
  for _, p in ipairs(within(list, 1, axis.size)) do taps[#taps + 1] = { p, 1 / #counted } end
  return taps
end

local readers = {
  window = function(i, axis, o) return average(window(i, axis), axis, o.inside) end,
  adaptive = function(i, axis) return average(adaptive(i, axis), axis, true) end,
  nearest = function(i, axis) return { { (i - 1) * axis.size // axis.out + 1, 1 } } end,
  bilinear = function(i, axis)
    local place = math.max((i - 0.5) * axis.size / axis.out - 0.5, 0)
    local at, share = math.floor(place), place - math.floor(place)
    return { { at + 1, 1 - share }, { math.min(at + 1, axis.size - 1) + 1, share } }
  end,
  zero = function(i, axis)
    local p = i - axis.before
    return p >= 1 and p <= axis.size and { { p, 1 } } or {}
  end,
  reflect = function(i, axis)
    local p = i - axis.before
    if p < 1 then p = 2 - p elseif p > axis.size then p = 2 * axis.size - p end
    return { { p, 1 } }
  end,
}

-- ---- sizes -----------------------------------------------------------------------------------

local function count(axis, o)
  if o.size then return o.size[axis.number] end
  local padded = axis.size + axis.before + axis.behind
  if o.mode == "zero" or o.mode == "reflect" then return padded end
  local places = (padded - axis.dilation * (axis.kernel - 1) - 1) / axis.stride
  local n = (o.ceil and math.ceil(places) or math.floor(places)) + 1
  if o.ceil and (n - 1) * axis.stride >= axis.size + axis.before then n = n - 1 end
  return n
end

local function axis_of(x, o, number)
  local padding, kernel = o.padding or { 0, 0, 0, 0 }, o.kernel and o.kernel[number] or 1
  local axis = {
    number = number, size = x.shape[2 + number], kernel = kernel,
    stride = o.stride and o.stride[number] or kernel,
    before = padding[2 * number - 1], behind = padding[2 * number],
    dilation = o.dilation and o.dilation[number] or 1,
  }
  axis.out = count(axis, o)
  return axis
end

-- Calls f(h, w, at) at each index of what an image becomes.
local function each(x, o, f)
  local h, w = axis_of(x, o, 1), axis_of(x, o, 2)
  return array.build({ x.shape[1], x.shape[2], h.out, w.out }, function(at) return f(h, w, at) end)
end

-- ---- both ops --------------------------------------------------------------------------------

function resampling.resample(o, x)
  local read = readers[o.mode or "window"]
  return each(x, o, function(h, w, at)
    local sum = 0.0
    for _, row in ipairs(read(at[3], h, o)) do
      for _, column in ipairs(read(at[4], w, o)) do
        sum = sum + row[2] * column[2] * array.at(x, { at[1], at[2], row[1], column[1] })
      end
    end
    return sum
  end)
end

function resampling.largest(o, x)
  local list = o.mode == "adaptive" and adaptive or window
  return each(x, o, function(h, w, at)
    local best = -math.huge
    for _, i in ipairs(within(list(at[3], h), 1, h.size)) do
      for _, j in ipairs(within(list(at[4], w), 1, w.size)) do
        local v = array.at(x, { at[1], at[2], i, j })
        if v > best or v ~= v then best = v end
        if best ~= best then return best end
      end
    end
    return best
  end)
end

return resampling
