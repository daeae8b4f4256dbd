-- lua/gpipe/nn/layer/image/slide.lua - windows along one dimension, cut out and put back: what
-- layers over volumes, positions of maxima and nn.Unfold are made of.
--
-- `cut` and `lay` are each other's transpose: elements are only moved and added, so nothing is
-- rounded that need not be. They hold as many elements as the windows have together.

local core = require "gpipe.core"

local slide = {}

local function with_size(shape, dim, ...)
  local made = table.move(shape, 1, dim - 1, 1, {})
  for _, size in ipairs { ... } do made[#made + 1] = size end
  return table.move(shape, dim + 1, #shape, #made + 1, made)
end

--- Zeros before and behind a dimension; negative numbers take elements away.
---@param x gpipe.Tensor
---@param dim integer
---@param before integer
---@param behind integer
---@return gpipe.Tensor
function slide.pad(x, dim, before, behind)
  local first, n = 1 + math.max(-before, 0), x:size(dim)
  local left = n - math.max(-before, 0) - math.max(-behind, 0)
  if left < n then x = x:narrow(dim, first, left) end
  before, behind = math.max(before, 0), math.max(behind, 0)
  if before + behind == 0 then return x end
  return core.pad(x, { dim = dim, start = before, full = before + left + behind })
end

--- Elements first, first + step, ...: so many of a dimension.
---@param x gpipe.Tensor
---@param dim integer
---@param first integer from 1
---@param count integer
---@param step integer
---@return gpipe.Tensor
function slide.every(x, dim, first, count, step)
  if step == 1 then return x:narrow(dim, first, count) end
  local missing = first - 1 + count * step - x:size(dim)
  if missing > 0 then x = slide.pad(x, dim, 0, missing) end
  x = x:narrow(dim, first, count * step)
  return x:reshape(with_size(x.shape, dim, count, step)):narrow(dim + 1, 1, 1)
    :reshape(with_size(x.shape, dim, count))
end

--- How many windows there are along n elements.
---@param n integer with the padding
---@param spec {kernel: integer, stride: integer, dilation: integer}
---@return integer less than 1 where there is none
function slide.count(n, spec)
  return (n - spec.dilation * (spec.kernel - 1) - 1) // spec.stride + 1
end

--- [.., n, ..] -> [.., kernel, windows, ..]: element k of every window.
---@param x gpipe.Tensor
---@param dim integer
---@param spec {kernel: integer, stride: integer, dilation: integer}
---@return gpipe.Tensor
function slide.cut(x, dim, spec)
  local parts, count = {}, slide.count(x:size(dim), spec)
  for k = 1, spec.kernel do
    parts[k] = slide.every(x, dim, (k - 1) * spec.dilation + 1, count, spec.stride):unsqueeze(dim)
  end
  return #parts == 1 and parts[1] or core.concat(parts, dim)
end

-- Zeros between the elements of a dimension.
local function spread(x, dim, step)
  if step == 1 then return x end
  local shape = x.shape
  x = slide.pad(x:unsqueeze(dim + 1), dim + 1, 0, step - 1)
  return x:reshape(with_size(shape, dim, shape[dim] * step))
end

--- How many elements so many windows reach over, the strides behind the last one with them.
function slide.reach(count, spec)
  return spec.dilation * (spec.kernel - 1) + count * spec.stride
end

--- [.., kernel, windows, ..] -> [.., n, ..]: every element added where it was cut out.
---@param x gpipe.Tensor
---@param dim integer of the kernel; windows are the next one
---@param spec {kernel: integer, stride: integer, dilation: integer}
---@param n integer at least slide.reach says
---@return gpipe.Tensor
function slide.lay(x, dim, spec, n)
  local sum
  for k = 1, spec.kernel do
    local part = spread(x:select(dim, k), dim, spec.stride)
    local first = (k - 1) * spec.dilation
    part = slide.pad(part, dim, first, n - first - part:size(dim))
    sum = sum and sum + part or part
  end
  return sum
end

return slide
