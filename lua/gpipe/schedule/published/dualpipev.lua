-- lua/gpipe/schedule/published/dualpipev.lua - DualPipe cut in half: its order on a V, one copy of
-- weights.
--
-- Device r holds stages r and 2p-1-r; F of the one is overlapped with B of the other; the order on
-- a device is in gpipe.schedule.build.eight_steps. Below 2p micro-batches the lists are those of 2p
-- without the rest. Idle (p-1)(F&B + B - 3W) of a stage; 2p+1 activations of a stage alive on
-- every device.
-- Source: Sea AI Lab 2025 (cut-in-half), DualPipe's `dualpipev`; torch.distributed.pipelining.

local new_rows = require("gpipe.core").rows
local eight_steps = require "gpipe.schedule.build.eight_steps"
local placement = require "gpipe.schedule.build.placement"

return function(p, m)
  local rows = new_rows(p)
  for r = 0, p - 1 do
    local phases = {
      [0] = { stage = r, first = 0, count = m },
      { stage = 2 * p - 1 - r, first = 0, count = m },
    }
    eight_steps.run(eight_steps.lane(rows, r, phases), r, p, math.max(2 * p, m))
  end
  return { placement = placement.vee(p), rows = rows }
end
