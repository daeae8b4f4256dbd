-- examples/shared/stripes.lua - generated images, so that nothing has to be downloaded: each class
-- has stripes of its own direction, at a random place, in noise. Any network that sees at all tells
-- them apart.
local gp = require "gpipe"

--- A dataset of f32 images [3, side, side] in about -1 .. 1 with i64 classes 0 .. classes - 1.
---@param count integer images
---@param classes integer
---@param side integer pixels
---@param seed integer
---@return gpipe.Dataset
return function(count, classes, side, seed)
  local class = gp.randint(0, classes, { count }, { seed = seed })
  local angle = (class:to "f32" * (math.pi / classes)):reshape { count, 1, 1 }
  local phase = gp.rand({ count, 1, 1 }, { seed = seed + 1 }) * (2 * math.pi)
  local at = gp.linspace(-8, 8, side)
  local x, y = at:reshape { 1, 1, side }, at:reshape { 1, side, 1 }
  local waves = (x * angle:cos() + y * angle:sin() + phase):sin():reshape { count, 1, side, side }
  local noise = gp.randn({ count, 3, side, side }, { seed = seed + 2 })
  return gp.data.tensors(waves + 0.3 * noise, class)
end
