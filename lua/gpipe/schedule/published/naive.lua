-- lua/gpipe/schedule/published/naive.lua - inter-layer model parallelism: one micro-batch at a
-- time.
--
-- Stage r runs F(r,0), B(r,0), F(r,1), B(r,1), ...: only one device works at any moment, idle for
-- m (p-1) (F+B) in all, and one activation is alive. A model that is merely spread over devices
-- runs like this.
-- Source: the baseline of PipeDream-2BW (Narayanan et al. 2021).

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.build.placement"

return function(p, m)
  local rows = new_rows(p)
  for r = 0, p - 1 do
    for i = 0, m - 1 do
      rows:F(r, r, i)
      rows:B(r, r, i)
    end
  end
  return { placement = placement.line(p), rows = rows }
end
