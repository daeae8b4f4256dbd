-- tests/support/convolution.lua - references of convolutions, by their definition: N x C x H x W,
-- four loops around the taps.

local array = require "tests.support.array"

local convolution = {}

-- Returns all options with defaults filled in; padding is {top, bottom, left, right}.
local function complete(o)
  return o.stride or { 1, 1 }, o.padding or { 0, 0, 0, 0 }, o.dilation or { 1, 1 }, o.groups or 1
end

-- Calls f(n, o, i, y, x, iy, ix, ky, kx) for all combinations that meet: output (y, x) of channel
-- o, and position (iy, ix) of input channel i, at tap (ky, kx) of the weight's [o, i - first of
-- group].
local function each(image, map, w, o, f)
  local stride, padding, dilation, groups = complete(o)
  local outputs, inputs = map[2] // groups, image[2] // groups
  for n = 1, map[1] do
    array.build({ map[2], inputs, map[3], map[4], w[3], w[4] }, function(at)
      local c, i, y, x, ky, kx = table.unpack(at)
      local iy = (y - 1) * stride[1] - padding[1] + (ky - 1) * dilation[1] + 1
      local ix = (x - 1) * stride[2] - padding[3] + (kx - 1) * dilation[2] + 1
      if iy >= 1 and iy <= image[3] and ix >= 1 and ix <= image[4] then
        f({ n, c, y, x }, { n, (c - 1) // outputs * inputs + i, iy, ix }, { c, i, ky, kx })
      end
      return 0
    end)
  end
end

local function flat(shape, at)
  local index = 0
  for d, size in ipairs(shape) do index = index * size + at[d] - 1 end
  return index + 1
end

local function begin(shape, b)
  return array.build(shape, function(at) return b and b[at[2]] or 0.0 end)
end

--- Convolve x [N, I, H, W] with w [O, I / groups, KH, KW] and b [O].
function convolution.conv2d(o, x, w, b)
  local stride, padding, dilation = complete(o)
  local shape = { x.shape[1], w.shape[1] }
  for d = 1, 2 do
    local window = dilation[d] * (w.shape[2 + d] - 1) + 1
    local padded = x.shape[2 + d] + padding[2 * d - 1] + padding[2 * d]
    shape[2 + d] = (padded - window) // stride[d] + 1
  end
  local y = begin(shape, b)
  each(x.shape, shape, w.shape, o, function(to, from, tap)
    local k = flat(shape, to)
    y[k] = y[k] + array.at(x, from) * array.at(w, tap)
  end)
  return y
end

--- Convolve transposed: x [N, O, h, w], w [O, I / groups, KH, KW], b [I]; o.size is the result's.
function convolution.transposed(o, x, w, b)
  local shape = { x.shape[1], w.shape[2] * (o.groups or 1), o.size[1], o.size[2] }
  local y = begin(shape, b)
  each(shape, x.shape, w.shape, o, function(from, to, tap)
    local k = flat(shape, to)
    y[k] = y[k] + array.at(x, from) * array.at(w, tap)
  end)
  return y
end

return convolution
