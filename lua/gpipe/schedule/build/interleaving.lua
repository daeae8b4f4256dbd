-- lua/gpipe/schedule/build/interleaving.lua - how a device with v stages orders (chunk,
-- micro-batch).
--
-- Micro-batches go in groups: those of a group pass chunk 0, then chunk 1, ... before the next
-- group starts. A group needs p micro-batches to fill p devices; with fewer, the device where it
-- comes round again waits, and with a short last group for ever. So no group is shorter than p,
-- unless it is the only one.
-- Source: Narayanan et al. 2021 (Megatron-LM), section 2.2; the group size of Megatron and torch.

local errors = require "gpipe.errors"

-- Sizes of the groups: `group` each and the rest last; a rest below p is spread over the groups.
local function sizes_of(p, m, group)
  local n, rest = math.max(1, m // group), m % group
  if m > group and rest >= p then
    local sizes = {}
    for g = 1, n do sizes[g] = group end
    sizes[n + 1] = rest
    return sizes
  end
  local sizes = {}
  for g = 1, n do sizes[g] = m // n + (g <= m % n and 1 or 0) end
  return sizes
end

--- The order of forwards: its i-th (from 0) is chunk[i], micro[i]; the i-th backward is
--- v-1-chunk[i], micro[i]. Also the size of the largest group, by which a device must run ahead
--- for each chunk.
---@param p integer devices
---@param m integer micro-batches
---@param v integer chunks: stages per device
---@param group integer? micro-batches in a group, default p
---@return integer[] chunk, integer[] micro, integer group
return function(p, m, v, group)
  if group and group < math.min(p, m) then
    local text = "schedule: option 'group' is %d, expected >= %d: a shorter group stalls %d devices"
    errors.raise(text, group, math.min(p, m), p)
  end
  local sizes = sizes_of(p, m, group or p)
  local chunk, micro, n, first = {}, {}, 0, 0
  for _, size in ipairs(sizes) do
    for c = 0, v - 1 do
      for i = first, first + size - 1 do
        chunk[n], micro[n], n = c, i, n + 1
      end
    end
    first = first + size
  end
  return chunk, micro, sizes[1]
end
