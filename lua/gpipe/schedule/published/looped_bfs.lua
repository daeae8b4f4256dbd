-- lua/gpipe/schedule/published/looped_bfs.lua - breadth first: a stage for all micro-batches, then
-- the next.
--
-- Device r holds stages r, p+r, 2p+r, ... and runs each for all m micro-batches, then all back,
-- last first. For m >= p idle (p-1)(F+B)/v, as interleaved 1F1B; m activations of the whole device
-- alive; the weights of a stage are used once per phase, which is what fully sharded weights want.
-- Source: Lamy-Poirier 2023 (breadth-first pipeline parallelism); backwards descending, as torch
-- has them.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m, opts)
  local v, rows = opts.stages_per_device, new_rows(p)
  for r = 0, p - 1 do
    for c = 0, v - 1 do rows:series(r, m, "F", c * p + r, 0) end
    for c = v - 1, 0, -1 do
      for i = m - 1, 0, -1 do rows:B(r, c * p + r, i) end
    end
  end
  return { placement = placement.loop(p, v), rows = rows }
end
