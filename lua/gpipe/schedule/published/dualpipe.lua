-- lua/gpipe/schedule/published/dualpipe.lua - two directions at once: F of one overlaps B of the
-- other.
--
-- The first half of the micro-batches goes down (stage s on device s), the others up (stage s on
-- device p-1-s); the order on a device is in gpipe.schedule.build.eight_steps. p is even. Below 2p
-- micro-batches the lists are those of 2p without the rest. Idle (p/2-1)(F&B + B - 3W); p+1
-- activations alive on every device; each stage has two copies of its weights, whose gradients are
-- added.
-- Source: DeepSeek-V3 technical report (2024), section 3.2.1.

local new_rows = require("gpipe.core").rows
local errors = require "gpipe.errors"
local eight_steps = require "gpipe.schedule.build.eight_steps"
local placement = require "gpipe.schedule.build.placement"

return function(p, m)
  if p % 2 == 1 then errors.raise("schedule dualpipe: %d devices, expected an even number", p) end
  local rows, down = new_rows(p), (m + 1) // 2
  for r = 0, p - 1 do
    local own = { stage = r, first = 0, count = down }
    local other = { stage = p - 1 - r, first = down, count = m - down }
    local near = r < p // 2
    local phases = { [0] = near and own or other, near and other or own }
    local lane = eight_steps.lane(rows, r, phases)
    eight_steps.run(lane, math.min(r, p - 1 - r), p // 2, math.max(p, down))
  end
  return { placement = placement.both_ways(p), rows = rows }
end
