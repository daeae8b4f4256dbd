-- lua/gpipe/schedule/build/placement.lua - the ways to place stages on devices.
--
-- A placement is {[stage] = device} from 0, or {[stage] = {device, device}} where a stage has two
-- copies. Generators share these four; a user's own schedule may return any other.

local placement = {}

--- Stage s on device s.
function placement.line(p)
  local at = {}
  for s = 0, p - 1 do at[s] = s end
  return at
end

--- v rounds over the devices: stage s on device s mod p; device r holds r, p + r, 2p + r, ...
function placement.loop(p, v)
  local at = {}
  for s = 0, p * v - 1 do at[s] = s % p end
  return at
end

--- There and back: device r holds stages r and 2p-1-r; the last device passes on to itself.
function placement.vee(p)
  local at = {}
  for s = 0, p - 1 do at[s], at[2 * p - 1 - s] = s, s end
  return at
end

--- Two directions: stage s on device s for micro-batches that go down, on p-1-s for the others.
function placement.both_ways(p)
  local at = {}
  for s = 0, p - 1 do at[s] = { s, p - 1 - s } end
  return at
end

return placement
