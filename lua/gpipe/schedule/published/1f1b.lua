-- lua/gpipe/schedule/published/1f1b.lua - one forward, one backward: GPipe's bubble with less
-- memory.
--
-- Stage r of p starts with w forwards, then alternates F and B, then drains w backwards;
-- w = min(warmup * (p-1-r), m). At most min(w + 1, m) activations are alive.
-- Source: PipeDream-Flush (Narayanan et al. 2021), DAPPLE (Fan et al. 2021); warmup = 2 is eager
-- 1F1B, which hides the delay of the links at the price of more activations.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m, opts)
  local rows = new_rows(p)
  for r = 0, p - 1 do
    local w = math.min(opts.warmup * (p - 1 - r), m)
    for i = 0, w - 1 do rows:F(r, r, i) end
    for i = 0, m - w - 1 do
      rows:F(r, r, w + i)
      rows:B(r, r, i)
    end
    for i = m - w, m - 1 do rows:B(r, r, i) end
  end
  return { placement = placement.line(p), rows = rows }
end
