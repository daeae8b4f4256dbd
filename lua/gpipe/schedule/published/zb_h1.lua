-- lua/gpipe/schedule/published/zb_h1.lua - 1F1B with W apart: a third of its bubble, with its
-- memory.
--
-- Stage r runs w = min(p-1-r, m) forwards, then F and I in turn, from the r-th I on each followed
-- by the oldest W; the W that are left fill the drain. Idle (p-1)(F+I-W), full effect for m >= p;
-- p activations alive.
-- Source: Qi et al. 2024 (zero bubble pipeline parallelism), section 2.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m)
  local rows = new_rows(p)
  for r = 0, p - 1 do
    local w = math.min(p - 1 - r, m)
    for i = 0, w - 1 do rows:F(r, r, i) end
    for i = 0, m + r - 1 do
      if w + i < m then rows:F(r, r, w + i) end
      if i < m then rows:I(r, r, i) end
      if i >= r then rows:W(r, r, i - r) end
    end
  end
  return { placement = placement.line(p), rows = rows }
end
