-- lua/gpipe/schedules/zbv.lua - zero bubble on a V, with the memory of 1F1B.
--
-- Device r holds stages r and 2p-1-r (0 and 1 below) and runs
--   2(p-r)-1 x F0;  r x (F1, F0);  p-r x (F1, I1, W1);
--   (F0 while there are, I0, W0, F1, I1, W1) until every F is done;
--   r x (I0, I1);  p-r x (I0, W0);  the W1 that are left;  the W0 that are left.
-- This order is for m >= 2p-1; between p and that it is the one of 2p-1 without the rest; up to m = p a
-- greedy order is shorter. With F = I = W no device idles between its first and its last action (it
-- wants an update without a barrier); 2p activations of a stage alive on every device.
-- Source: Qi et al. 2024 (zero bubble pipeline parallelism), section 6.

local new_rows = require("gpipe.core").rows
local deepest_first = require "gpipe.schedule.deepest_first"
local placement = require "gpipe.schedule.placement"

-- What appends "F0", "I1W1", ... to device r's list, with the next micro-batch of each; those from m on are left
-- out. Also how many of each there have been.
local function appender(rows, p, m, r)
  local stage, count = { ["0"] = r, ["1"] = 2 * p - 1 - r }, { F0 = 0, F1 = 0, I0 = 0, I1 = 0, W0 = 0, W1 = 0 }
  local function run(times, passes)
    for _ = 1, times do
      for pass, op, chunk in passes:gmatch "((%a)(%d))" do
        local k = count[pass]
        if k < m then rows[op](rows, r, stage[chunk], k) end
        count[pass] = k + 1
      end
    end
  end
  return run, count
end

local function fill(rows, p, m, r)
  local n = math.max(2 * p - 1, m)
  local run, count = appender(rows, p, m, r)
  run(2 * (p - r) - 1, "F0")
  run(r, "F1F0")
  run(p - r, "F1I1W1")
  while count.F1 < n do
    if count.F0 < n then run(1, "F0") end
    run(1, "I0W0F1I1W1")
  end
  run(r, "I0I1")
  run(p - r, "I0W0")
  run(n - count.W1, "W1")
  run(n - count.W0, "W0")
end

return function(p, m)
  local rows = new_rows(p)
  if m <= p then deepest_first(rows, p, m) end
  for r = 0, m <= p and -1 or p - 1 do fill(rows, p, m, r) end
  return { placement = placement.vee(p), rows = rows }
end
