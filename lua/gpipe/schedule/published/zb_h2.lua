-- lua/gpipe/schedule/published/zb_h2.lua - zero bubble: no device waits, with twice the memory of
-- 1F1B.
--
-- Stage r runs 2 (p-r) - 1 forwards, then I and F in turn, from the 2r-th I on with the oldest W
-- between. With F = I = W no device idles between its first and its last action (m >= 2p-1), but
-- they end one after another: it needs an update without a barrier. 2p-1 activations alive.
-- Source: Qi et al. 2024 (zero bubble pipeline parallelism), section 2.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m)
  local rows = new_rows(p)
  for r = 0, p - 1 do
    local n = math.min(2 * (p - r) - 1, m)
    for i = 0, n - 1 do rows:F(r, r, i) end
    for i = 0, m + 2 * r - 1 do
      if i < m then rows:I(r, r, i) end
      if i >= 2 * r then rows:W(r, r, i - 2 * r) end
      if n + i < m then rows:F(r, r, n + i) end
    end
  end
  return { placement = placement.line(p), rows = rows }
end
