-- lua/gpipe/schedule/published/chimera.lua - two pipelines in opposite directions fill each other's
-- bubble.
--
-- The first half of the micro-batches goes down (stage s on device s), the others up (stage s on
-- device p-1-s). The q-th of a direction gets slot k = q mod (p/2) + p (q div (p/2)). On device d:
--   down: F at 2k+d, B at 2k+2p-1-d;   up: F at 2k+p-1-d, B at 2k+p+d,
-- no two at once; a device runs its actions in that order. p is even. Idle p-2 slots for B = F and
-- (p-2)(1+m/p) F for B = 2F; best for m = p; device d keeps min(p/2+1+d, 3p/2-d) activations; each
-- stage has two copies of its weights, whose gradients are added.
-- Source: Li, Hoefler 2021 (Chimera).

local new_rows = require("gpipe.core").rows
local errors = require "gpipe.errors"
local placement = require "gpipe.schedule.build.placement"

-- Place F and B of micro-batches first .. last of one direction at their times on the device that
-- is r devices from where the direction starts.
local function direction(at, p, r, first, last)
  for q = 0, last - first do
    local k = q % (p // 2) + p * (q // (p // 2))
    at[2 * k + r] = { op = "F", stage = r, micro = first + q }
    at[2 * k + 2 * p - 1 - r] = { op = "B", stage = r, micro = first + q }
  end
end

return function(p, m)
  if p % 2 == 1 then errors.raise("schedule chimera: %d devices, expected an even number", p) end
  local rows, down = new_rows(p), (m + 1) // 2
  for d = 0, p - 1 do
    local at = {}
    direction(at, p, d, 0, down - 1)
    direction(at, p, p - 1 - d, down, m - 1)
    for time = 0, 4 * (m + p) do
      local action = at[time]
      if action then rows[action.op](rows, d, action.stage, action.micro) end
    end
  end
  return { placement = placement.both_ways(p), rows = rows }
end
