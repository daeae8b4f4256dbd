-- lua/gpipe/schedule/published/v_half.lua - two stages on each device in a V, half the memory of
-- 1F1B.
--
-- Device r holds stages r and 2p-1-r. Micro-batch 0 runs on it in the slots
--   2r (F of r), 3p-2-r (F of 2p-1-r), 3p+q-1+2r (I of 2p-1-r), 6p+q-2-r (I of r),
-- q = 3 for even p, else 0; micro-batch k 6k slots later; then all is squeezed (building_block).
-- About (p+2)/2 activations of a device alive, about half the bubble of 1F1B where F = I = W.
-- Source: Qi et al. 2024 (pipeline parallelism with controllable memory), V-Half.

local new_rows = require("gpipe.core").rows
local building_block = require "gpipe.schedule.build.building_block"
local placement = require "gpipe.schedule.build.placement"

return function(p, m)
  local rows, q = new_rows(p), p % 2 == 0 and 3 or 0
  building_block.fill(rows, p, m, function(r)
    return 2 * r, 3 * p - 2 - r, 3 * p + q - 1 + 2 * r, 6 * p + q - 2 - r
  end)
  return { placement = placement.vee(p), rows = rows }
end
