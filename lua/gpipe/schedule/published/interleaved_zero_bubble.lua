-- lua/gpipe/schedule/published/interleaved_zero_bubble.lua - interleaved 1F1B with W in its bubble.
--
-- Device r holds stages r, p+r, 2p+r, ...; w = (v-1) G + (p-1-r) forwards first, then F and I in
-- turn, from the r-th I on each followed by the oldest W. Idle (p-1)(F+I-W)/v; v p activations of
-- one stage alive on every device. With one stage per device this is ZB-H1.
-- Source: torch.distributed.pipelining (ScheduleInterleavedZeroBubble), after Qi et al. 2024.

local new_rows = require("gpipe.core").rows
local interleaving = require "gpipe.schedule.build.interleaving"
local placement = require "gpipe.schedule.build.placement"

return function(p, m, opts)
  local v, rows = opts.stages_per_device, new_rows(p)
  local chunk, micro, group = interleaving(p, m, v, opts.group)
  local total = m * v
  for r = 0, p - 1 do
    local w = math.min((v - 1) * group + p - 1 - r, total)
    for i = 0, w - 1 do rows:F(r, chunk[i] * p + r, micro[i]) end
    for i = 0, total + r - 1 do
      local next, oldest = w + i, i - r
      if next < total then rows:F(r, chunk[next] * p + r, micro[next]) end
      if i < total then rows:I(r, (v - 1 - chunk[i]) * p + r, micro[i]) end
      if oldest >= 0 then rows:W(r, (v - 1 - chunk[oldest]) * p + r, micro[oldest]) end
    end
  end
  return { placement = placement.loop(p, v), rows = rows }
end
