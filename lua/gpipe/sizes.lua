-- lua/gpipe/sizes.lua - counts bytes, and writes their numbers for people. (The CUDA plugin imports
-- nothing, so it writes its own in the same form.)

local sizes = {}

local UNITS = { "bytes", "KiB", "MiB", "GiB", "TiB" }

--- "1.5 GiB"; below a KiB the plain number: "64 bytes".
---@param bytes number
---@return string
function sizes.text(bytes)
  local unit = 1
  while bytes >= 1024 and unit < #UNITS do bytes, unit = bytes / 1024, unit + 1 end
  return (unit == 1 and "%d %s" or "%.1f %s"):format(bytes, UNITS[unit])
end

--- The same, but never less than the bytes: what has so much has enough.
---@param bytes number
---@return string
function sizes.at_least(bytes)
  local unit, size = 1, 1
  while bytes / size >= 1024 and unit < #UNITS do unit, size = unit + 1, 1024 * size end
  local tenths = size == 1 and 10 * math.ceil(bytes) or math.ceil(10 * bytes / size)
  return sizes.text(tenths / 10 * size)
end

local WIDTHS = { f64 = 8, i64 = 8, f32 = 4, i32 = 4, f16 = 2, bf16 = 2, u8 = 1, bool = 1 }

--- The bytes of the elements of a shape in a dtype.
---@param shape integer[]
---@param dtype gpipe.dtype
---@return integer
function sizes.bytes(shape, dtype)
  local bytes = WIDTHS[dtype]
  for _, size in ipairs(shape) do bytes = bytes * size end
  return bytes
end

--- The bytes of the elements of a tensor.
---@param tensor gpipe.Tensor
---@return integer
function sizes.of(tensor) return tensor:numel() * WIDTHS[tensor.dtype] end

--- What the parts of something take together.
---@param parts table<string, integer> bytes
---@return integer
function sizes.sum(parts)
  local sum = 0
  for _, bytes in pairs(parts) do sum = sum + bytes end
  return sum
end

return sizes
