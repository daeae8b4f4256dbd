-- lua/gpipe/schedule/published/pipedream.lua - 1F1B that never flushes: an update after every
-- backward pass.
--
-- Stage s uses weights of version max(0, k - (p-1-s)) for micro-batch k, forward and backward, so
-- it keeps p-s versions; with vertical_sync every stage uses the version that stage 0 does, which
-- is max(0, k - (p-1)), and keeps p. No bubble once the pipeline is full; p-s activations alive.
-- The rows show m micro-batches from fill to drain; with more, they go on in the same way.
-- Source: Narayanan et al. 2019 (PipeDream), section 3.3; vertical sync is in the paper only.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m, opts)
  local rows = new_rows(p)
  for s = 0, p - 1 do
    local w = math.min(p - 1 - s, m)
    local delay = opts.vertical_sync and p - 1 or p - 1 - s
    local function version(k) return math.max(0, k - delay) end
    for i = 0, w - 1 do rows:F(s, s, i, version(i)) end
    for i = 0, m - 1 do
      if w + i < m then rows:F(s, s, w + i, version(w + i)) end
      rows:B(s, s, i, version(i))
      rows:U(s, s, i)
    end
  end
  return { placement = placement.line(p), rows = rows, batch = 1 }
end
