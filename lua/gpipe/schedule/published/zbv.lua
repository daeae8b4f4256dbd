-- lua/gpipe/schedule/published/zbv.lua - zero bubble on a V, with the memory of 1F1B.
--
-- Device r holds stages r and 2p-1-r (0 and 1 below), in the order of `fill`: warm-up, rounds of
-- both stages' F, I and W, drain. It is meant for m >= 2p-1; between p and that the list is that
-- of 2p-1 without the rest, and up to m = p a greedy one, which is shorter. With F = I = W no
-- device idles between its first and its last action (it wants an update without a barrier); 2p
-- activations of a stage alive on every device.
-- Source: Qi et al. 2024 (zero bubble pipeline parallelism), section 6.

local new_rows = require("gpipe.core").rows
local deepest_first = require "gpipe.schedule.build.deepest_first"
local placement = require "gpipe.schedule.build.placement"

-- A function that appends the op's next micro-batch, until all m are appended.
local function appender(rows, op, r, stage, m)
  local append, next = rows[op], 0
  return function()
    if next < m then append(rows, r, stage, next) end
    next = next + 1
  end
end

local function fill(rows, p, m, r)
  local add = {}
  for _, op in ipairs { "F", "I", "W" } do
    add[op .. 0] = appender(rows, op, r, r, m)
    add[op .. 1] = appender(rows, op, r, 2 * p - 1 - r, m)
  end
  local F0, I0, W0, F1, I1, W1 = add.F0, add.I0, add.W0, add.F1, add.I1, add.W1
  for _ = 1, 2 * (p - r) - 1 do F0() end
  for _ = 1, r do F1(); F0() end
  for _ = 1, p - r do F1(); I1(); W1() end
  for _ = 1, math.max(2 * p - 1, m) - p do F0(); I0(); W0(); F1(); I1(); W1() end
  for _ = 1, r do I0(); I1() end
  for _ = 1, p - r do I0(); W0() end
  for _ = 1, r do W1() end
  for _ = 1, r do W0() end
end

return function(p, m)
  local rows = new_rows(p)
  if m <= p then
    deepest_first(rows, p, m)
  else
    for r = 0, p - 1 do fill(rows, p, m, r) end
  end
  return { placement = placement.vee(p), rows = rows }
end
