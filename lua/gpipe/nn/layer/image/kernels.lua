-- lua/gpipe/nn/layer/image/kernels.lua - what the elements of a line of another size are made of:
-- the nearest one, two neighbours, or four.
--
-- A line is told by {mode, n, new, step, corners}: its size, the new size, how far apart the new
-- elements lie among the old ones, and whether the corners of both are the same points.
-- Source: PyTorch's upsampling; Keys 1981 for cubic convolution, with a = -0.75.

local kernels = {}

--- The positions, from 1, of the nearest elements.
---@param spec {mode: string, n: integer, new: integer, step: number}
---@return integer[]
function kernels.nearest(spec)
  local positions, shift = {}, spec.mode == "nearest-exact" and 0.5 or 0
  for i = 1, spec.new do
    local place = math.floor((i - 1 + shift) * spec.step)
    positions[i] = math.min(math.tointeger(place), spec.n - 1) + 1
  end
  return positions
end

-- Where new element i lies among the old ones, from 0.
local function place_of(spec, i)
  if spec.corners then return spec.new > 1 and (i - 1) * (spec.n - 1) / (spec.new - 1) or 0 end
  local place = (i - 0.5) * spec.step - 0.5
  return spec.mode == "bicubic" and place or math.min(math.max(place, 0), spec.n - 1)
end

local A = -0.75

-- The weight of an element at a distance of at most 1, and of one beyond.
local function near(d) return ((A + 2) * d - (A + 3)) * d * d + 1 end
local function far(d) return ((A * d - 5 * A) * d + 8 * A) * d - 4 * A end

-- {offset, weight} of the neighbours of an element that lies `part` behind another one.
local function neighbours(mode, part)
  if mode ~= "bicubic" then return { { 0, 1 - part }, { 1, part } } end
  return {
    { -1, far(part + 1) }, { 0, near(part) }, { 1, near(1 - part) }, { 2, far(2 - part) },
  }
end

--- What every new element is made of, [new, n]; neighbours beyond the ends are those at the ends.
---@param spec {mode: string, n: integer, new: integer, step: number, corners: boolean}
---@return number[][]
function kernels.weights(spec)
  local rows = {}
  for i = 1, spec.new do
    local row, place = {}, place_of(spec, i)
    local low = math.floor(place)
    for k = 1, spec.n do row[k] = 0.0 end
    for _, each in ipairs(neighbours(spec.mode, place - low)) do
      local k = math.min(math.max(low + each[1], 0), spec.n - 1) + 1
      row[k] = row[k] + each[2]
    end
    rows[i] = row
  end
  return rows
end

return kernels
