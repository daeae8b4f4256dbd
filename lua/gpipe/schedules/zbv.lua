-- lua/gpipe/schedules/zbv.lua - zero bubble on a V: the memory of 1F1B.
--
-- Device r holds stages r and 2p-1-r, in the order written below (for m < 2p-1 that of 2p-1 without the
-- rest). With F = I = W no device idles between its first and its last action; 2p activations of a stage
-- alive on every device; it wants an update without a barrier.
-- Source: Qi et al. 2024 (zero bubble pipeline parallelism), section 6.

local new_rows = require("gpipe.core").rows
local placement = require "gpipe.schedule.placement"

-- What appends actions of device r: a method per kind, for stage 0 (r) or 1 (2p-1-r).
local function appender(rows, p, m, r)
  local stages, next = { [0] = r, 2 * p - 1 - r }, { F = { [0] = 0, 0 }, I = { [0] = 0, 0 }, W = { [0] = 0, 0 } }
  return function(op, chunk)
    local micro = next[op][chunk]
    next[op][chunk] = micro + 1
    if micro < m then rows[op](rows, r, stages[chunk], micro) end
  end, next
end

local function fill(rows, p, m, r)
  local n = math.max(2 * p - 1, m)
  local add, next = appender(rows, p, m, r)
  for _ = 1, 2 * (p - r) - 1 do add("F", 0) end
  for _ = 1, r do add("F", 1) add("F", 0) end
  for _ = 1, p - r do add("F", 1) add("I", 1) add("W", 1) end
  while next.F[1] < next.F[0] or next.F[0] < n do
    if next.F[0] < n then add("F", 0) end
    add("I", 0) add("W", 0)
    add("F", 1) add("I", 1) add("W", 1)
  end
  for _ = 1, r do add("I", 0) add("I", 1) end
  for _ = 1, p - r do add("I", 0) add("W", 0) end
  while next.W[1] < n do add("W", 1) end
  while next.W[0] < n do add("W", 0) end
end

return function(p, m)
  local rows = new_rows(p)
  for r = 0, p - 1 do fill(rows, p, m, r) end
  return { placement = placement.vee(p), rows = rows }
end
