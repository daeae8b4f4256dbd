-- lua/gpipe/pipeline/areas/short.lua - says which devices of a report have less memory than they
-- need.

local sizes = require "gpipe.sizes"

local short = {}

-- The largest area; of equal ones that whose name comes first.
local function largest_of(areas)
  local largest
  for name, bytes in pairs(areas) do
    local most = largest and areas[largest]
    if not most or bytes > most or bytes == most and name < largest then largest = name end
  end
  return largest
end

-- Whether more would wait in the host's memory than may.
local function is_short_there(one)
  return one.host and one.host.cap and one.host.planned > one.host.cap
end

local function host_line(one)
  return ("%s needs %s of the host's memory and may take %s there (option 'host_memory')"):format(
    one.name, sizes.text(one.host.planned), sizes.text(one.host.cap))
end

local function line(one)
  local largest = largest_of(one.areas)
  local work = 0
  for _, name in ipairs { "saved", "recomputed", "carried", "transient" } do
    work = work + (one.areas[name] or 0)
  end
  return ("%s needs %s and may take %s (option 'memory'): %s too much; the largest part are its "
    .. "%s, %s, and what micro-batches keep and temporaries take %s"):format(one.name,
    sizes.text(one.planned), sizes.text(one.cap), sizes.text(one.planned - one.cap), largest,
    sizes.text(one.areas[largest]), sizes.text(work))
end

--- A line for each device that needs more than its cap; nil if there is none.
---@param memory gpipe.Memory
---@return string?
function short.text(memory)
  local lines = {}
  for _, one in ipairs(memory) do
    if one.cap and one.planned > one.cap then lines[#lines + 1] = line(one) end
    if is_short_there(one) then lines[#lines + 1] = host_line(one) end
  end
  return lines[1] and table.concat(lines, "\n")
end

return short
