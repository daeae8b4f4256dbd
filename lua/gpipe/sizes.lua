-- lua/gpipe/sizes.lua - numbers of bytes as people read them. (The CUDA plugin, which imports
-- nothing, writes its own in the same form.)

local sizes = {}

local UNITS = { "bytes", "KiB", "MiB", "GiB", "TiB" }

--- "1.5 GiB"; below a KiB as they are: "64 bytes".
---@param bytes number
---@return string
function sizes.text(bytes)
  local unit = 1
  while bytes >= 1024 and unit < #UNITS do bytes, unit = bytes / 1024, unit + 1 end
  return (unit == 1 and "%d %s" or "%.1f %s"):format(bytes, UNITS[unit])
end

return sizes
