-- lua/gpipe/schedule/published/gpipe.lua - fill and drain: all forwards, then all backwards.
--
-- Stage r runs F(r,0..m-1), then B(r,0..m-1), or B(r,m-1..0) with backward = "lifo" as the paper
-- draws it; both take the same time. Bubble (p-1)/(m+p-1); m activations alive, or m stage inputs
-- and one activation with recomputation.
-- Source: Huang et al. 2019 (GPipe); backwards ascending, as torch.distributed.pipelining has them.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m, opts)
  local rows = new_rows(p)
  for r = 0, p - 1 do
    rows:series(r, m, "F", r, 0)
    if opts.backward == "lifo" then
      for i = m - 1, 0, -1 do rows:B(r, r, i) end
    else
      rows:series(r, m, "B", r, 0)
    end
  end
  return { placement = placement.line(p), rows = rows }
end
