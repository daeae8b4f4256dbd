-- lua/gpipe/schedule/published/v_min.lua - two stages on each device in a V, a third of the memory
-- of 1F1B.
--
-- Device r holds stages r and 2p-1-r. Micro-batch 0 runs on it in the slots
--   r (F of r), 2p-1-r (F of 2p-1-r), 2p+q+r (I of 2p-1-r), 4p+q-1-r (I of r),
-- q = 2 where 3 divides p, else 0; micro-batch k 6k slots later; then all is squeezed
-- (building_block). (p+4) div 3 activations of a device alive, about 2/3 of the bubble of 1F1B
-- where F = I = W; slow where they differ.
-- Source: Qi et al. 2024 (pipeline parallelism with controllable memory), V-Min.

local new_rows = require("gpipe.core").rows
local building_block = require "gpipe.schedule.build.building_block"
local placement = require "gpipe.schedule.build.placement"

return function(p, m)
  local rows, q = new_rows(p), p % 3 == 0 and 2 or 0
  building_block.fill(rows, p, m, function(r)
    return r, 2 * p - 1 - r, 2 * p + q + r, 4 * p + q - 1 - r
  end)
  return { placement = placement.vee(p), rows = rows }
end
