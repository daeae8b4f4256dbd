-- lua/gpipe/schedule/published/interleaved_1f1b.lua - 1F1B with v stages per device: 1/v of its
-- bubble.
--
-- Device r holds stages r, p+r, 2p+r, ... and takes micro-batches in groups of G (default p)
-- through them; w = (v-1) G + 2 (p-1-r) forwards first, then F and B in turn. Idle (p-1)(F+B)/v;
-- up to (v-1) G + 2 (p-1-r) + 1 activations of one stage alive; v times as many messages as 1F1B.
-- Source: Narayanan et al. 2021 (Megatron-LM), section 2.2.

local new_rows = require("gpipe.core").rows
local interleaving = require "gpipe.schedule.build.interleaving"
local placement = require "gpipe.schedule.build.placement"

return function(p, m, opts)
  local v, rows = opts.stages_per_device, new_rows(p)
  local chunk, micro, group = interleaving(p, m, v, opts.group)
  local total = m * v
  for r = 0, p - 1 do
    local w = math.min((v - 1) * group + 2 * (p - 1 - r), total)
    for i = 0, w - 1 do rows:F(r, chunk[i] * p + r, micro[i]) end
    for i = 0, total - 1 do
      local next = w + i
      if next < total then rows:F(r, chunk[next] * p + r, micro[next]) end
      rows:B(r, (v - 1 - chunk[i]) * p + r, micro[i])
    end
  end
  return { placement = placement.loop(p, v), rows = rows }
end
