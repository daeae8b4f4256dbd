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
    rows:series(r, w, "F", r, 0)
    rows:series(r, m - w, "F", r, w, "B", r, 0)
    rows:series(r, w, "B", r, m - w)
  end
  return { placement = placement.line(p), rows = rows }
end
