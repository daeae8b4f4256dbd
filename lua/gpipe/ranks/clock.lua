-- lua/gpipe/ranks/clock.lua - how far apart the clocks of the ranks are.
--
-- Times are those of each machine's steady clock (CLOCK_MONOTONIC), which all processes of a
-- machine share. So ranks of one host need no correction; that is checked, because a container may
-- have a clock of its own. For other ranks the difference is measured by ping-pong with rank 0. It
-- is known to within half of the shortest round trip, which is the error that is stated.

local core = require "gpipe.core"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"

local clock = {}

local ROUNDS = 30 -- of which the shortest counts

---@class gpipe.RankClock
---@field host string
---@field offset number seconds that the rank's clock is ahead of rank 0's
---@field error number seconds: the offset is right to within so much; 0 where the clock is rank 0's
---@field measured number seconds: what ping-pong said
---@field round_trip number seconds of the shortest

-- What rank 0 has measured: {seconds, offset} for each other rank.
local function measure()
  local list = {}
  for r = 1, ranks.ranks() - 1 do
    local seconds, offset = core.rank_probe(0, r, 8, 1, ROUNDS)
    list[r] = { seconds, offset }
  end
  return list
end

-- The same clock as rank 0's: on the same machine, and ping-pong sees no difference.
local function is_common(machine, first, seconds, offset)
  return machine == first and math.abs(offset) <= seconds / 2
end

--- The clock of each rank, by rank from 1. Every rank has to call.
---@return gpipe.RankClock[]
function clock.of_ranks()
  local found = measure()
  local all = share.by_rank("clocks", function()
    return { host = ranks.host(), machine = ranks.machine(),
      found = ranks.rank() == 0 and found or nil }
  end)
  local clocks = { { host = all[1].host, offset = 0, error = 0, measured = 0, round_trip = 0 } }
  for r = 1, ranks.ranks() - 1 do
    local seconds, offset = all[1].found[r][1], all[1].found[r][2]
    local common = is_common(all[r + 1].machine, all[1].machine, seconds, offset)
    clocks[r + 1] = {
      host = all[r + 1].host, offset = common and 0 or offset, error = common and 0 or seconds / 2,
      measured = offset, round_trip = seconds,
    }
  end
  return clocks
end

return clock
