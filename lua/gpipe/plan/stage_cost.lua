-- lua/gpipe/plan/stage_cost.lua - what a policy of recomputation costs a stage: seconds that run
-- again for a micro-batch, and bytes that are kept.
--
-- Every other file of the planner asks here, so a new policy is an entry of this table. A policy
-- says by which word of option `checkpoint` the schedule is lowered, so that R stands where it will
-- run, and what a range of layers then takes.

local core = require "gpipe.core"
local sums = require "gpipe.plan.sums"

local stage_cost = {}

---@class gpipe.StageSituation how a stage lives in its schedule; a policy says there what is held
---@field live integer micro-batches between their forward and their backward, at most
---@field held integer of which saved values are held at once: after F, or after R
---@field share number of the micro-batches that run R
---@field carried integer micro-batches between I and W
---@field away number|false seconds of a byte on its way to the host's memory
---@field room number bytes that may be kept
---@field moments integer[][] what is held at the same time: rows of four numbers of micro-batches
---@field plain? integer[][] the same where nothing runs again
---@field times number[] bytes of a micro-batch, for each of these four numbers
---@field once number bytes beside that
---@field plainly boolean the numbers are those of `plain`

---@class gpipe.RematPolicy
---@field lowered string the word that the schedule is lowered by
---@field all? "live" of so many micro-batches all saved (or kept) values lie there, at least
---@field runs_again? boolean what is saved may lie there from R on
---@field drops? boolean F keeps nothing of micro-batches that run again
---@field kept? string the sums of what is kept, if they are not those of saved_bytes
---@field head? string likewise of what of it W does not read
---@field plainly? boolean it asks what is held where nothing runs again ahead of backward
---@field linear? boolean seconds are the sum of the layers' recompute, or near it
---@field spares? boolean it is tried where not everything can be kept with the best cut
---@field needs_selective? boolean it needs what profiles say of selective recomputation
---@field fills? boolean it keeps what there is room for: all, where `never` fits
---@field offloads? boolean what is saved waits in the host's memory, so devices have to say how they
--- reach it
---@field cost fun(s: gpipe.LayerSums, i: integer, j: integer, at: gpipe.StageSituation): number, number
--- seconds, and bytes with what I leaves for W

-- The most that is held at one of these moments, of so many bytes for each number.
local function most(moments, times)
  local most_bytes = 0
  for _, row in ipairs(moments) do
    local bytes = row[1] * times[1] + row[2] * times[2] + row[3] * times[3] + row[4] * times[4]
    if bytes > most_bytes then most_bytes = bytes end
  end
  return most_bytes
end

-- Say what a stage holds of each micro-batch: from F on whatever runs again, from F or R on until
-- W, the same until I, and once; returns the bytes.
local function hold(at, live, rest, head, once)
  local times = at.times
  times[1], times[2], times[3], at.once, at.plainly = live, rest, head, once, false
  return most(at.moments, times) + once
end

-- The same where nothing runs again ahead of backward.
local function hold_plainly(at, rest, head, once)
  local times = at.times
  times[1], times[2], times[3], at.once, at.plainly = 0, rest, head, once, true
  return most(at.plain, times) + once
end

-- Everything is kept from F on.
local function never(s, i, j, at)
  local rest, head = sums.parts(s, i, j)
  return 0, hold(at, 0, rest, head, 0)
end

-- Layers run again as often as the lowered schedule says: where I and W run apart all of them at
-- once, in R; else each right before its backward, from its input.
local function again(s, i, j, at)
  local seconds = at.share * sums.range(s.recompute, i, j)
  local rest, head = sums.parts(s, i, j)
  local bytes = hold(at, 0, rest, head, 0)
  if at.share == 0 or at.carried > 0 then return seconds, bytes end
  local inputs, layer = sums.by_layer(s, i, j)
  local plain = at.share < 1 and rest + head or 0 -- of a micro-batch that runs nothing again
  local less = hold(at, inputs, 0, 0, math.max(layer, plain))
  return seconds, less <= bytes and less or hold(at, 0, rest, head, 0)
end

-- What is expensive is kept, and the rest is made again within backward, for one layer of one
-- micro-batch at a time.
local function selective(s, i, j, at)
  local kept, all = sums.range(s.selective_bytes, i, j), sums.range(s.saved_bytes, i, j)
  local head = math.min(sums.range(s.selective_head, i, j), kept)
  return at.share * sums.range(s.selective_recompute, i, j),
    hold_plainly(at, kept - head, head, math.max(0, all - kept) / (j - i + 1))
end

-- With "offload" a device holds what so many micro-batches have saved: one at work, one on its way
-- to the host, one on its way back.
local ON_DEVICE = 3

-- Nothing runs again, and what does not lie on the device waits on the host: the moments of its
-- schedule know when. What W reads stays.
local offload = never

--- Whether a stage of so many live micro-batches gains by sending them to the host's memory.
---@param live integer
---@return boolean
function stage_cost.goes(live) return live > ON_DEVICE end

--- Bytes of the host's memory in which micro-batches of a stage wait.
---@param s gpipe.LayerSums
---@param i integer
---@param j integer
---@param live integer
---@return number
function stage_cost.on_host(s, i, j, live)
  return stage_cost.goes(live) and (live - ON_DEVICE + 1) * sums.saved(s, i, j) or 0
end

-- ---- auto ---------------------------------------------------------------------------------------

-- Layers in the order in which they are worth keeping: most seconds per byte first.
local function order_of(s)
  if s.order then return s.order end
  local order = {}
  for i = 1, s.count do order[i] = i end
  local function worth(i)
    local layer = s.layers[i]
    return layer.saved_bytes > 0 and layer.recompute / layer.saved_bytes or math.huge
  end
  table.sort(order, function(a, b)
    local first, second = worth(a), worth(b)
    if first ~= second then return first > second end
    return a < b
  end)
  s.order = order
  return order
end

-- What all layers on the host cost beside F and backward, by which copies run; and the share of
-- the live micro-batches that lie on the device.
local function all_away(s, i, j, at)
  local copy = at.away * sums.saved(s, i, j)
  return 2 * math.max(0, copy - sums.range(s.forward, i, j)),
    math.min(1, (ON_DEVICE + at.carried) / at.live)
end

-- Keep all where nothing runs again; nil where there is no room for that.
local function keep_all(s, i, j, at)
  local rest, head = sums.parts(s, i, j)
  local bytes = hold_plainly(at, rest, head, 0)
  return bytes <= at.room and bytes or nil
end

-- An approximation of what the stage DP of the runtime will find: each layer is kept or made again,
-- those worth most being kept while there is room (a knapsack filled by density); or all wait on
-- the host. Options within a layer and offloading some of the layers are not considered.
local function auto(s, i, j, at)
  local all = keep_all(s, i, j, at)
  if all then return 0, all end
  local away, part, there = math.huge, 0, math.huge
  if at.away and stage_cost.goes(at.live) then
    away, part = all_away(s, i, j, at)
    there = hold(at, part * sums.saved(s, i, j), 0, 0, 0)
  end
  local seconds, bytes = again(s, i, j, at)
  local live, rest, head, once = at.times[1], at.times[2], at.times[3], at.once
  if bytes > at.room and there < bytes then
    return away, hold(at, part * sums.saved(s, i, j), 0, 0, 0)
  end
  for _, layer in ipairs(order_of(s)) do
    local one = s.layers[layer]
    local kept = at.carried > 0 and 0 or s.output[layer]
    local more = at.live * (one.saved_bytes - kept)
      - (at.carried > 0 and at.held * one.saved_bytes or 0)
    if layer >= i and layer <= j and more > 0 and bytes + more <= at.room then
      seconds, bytes = seconds - at.share * one.recompute, bytes + more
      live = live + one.saved_bytes - kept
      if at.carried > 0 then
        local dropped = math.min(rest, one.saved_bytes - one.head_bytes)
        rest, head = rest - dropped, math.max(0, head - one.head_bytes)
      end
    end
  end
  if there <= at.room and away < seconds then
    return away, hold(at, part * sums.saved(s, i, j), 0, 0, 0)
  end
  return math.max(0, seconds), hold(at, live, rest, head, once)
end

---@type table<string, gpipe.RematPolicy>
stage_cost.policies = {
  never = { lowered = "never", cost = never, linear = true, all = "live" },
  except_last = { lowered = "except_last", cost = again, linear = true, runs_again = true,
    drops = true },
  always = { lowered = "always", cost = again, linear = true, runs_again = true, drops = true },
  selective = { lowered = "always", cost = selective, linear = true,
    all = "live", kept = "selective_bytes", head = "selective_head", plainly = true,
    needs_selective = true, spares = true },
  offload = { lowered = "never", cost = offload, linear = true, spares = true, offloads = true },
  auto = { lowered = "always", cost = auto, linear = true, fills = true, plainly = true,
    runs_again = true, spares = true },
}

--- The policies that a pipeline of this build can run, in descending order of what they keep.
---@return string[]
function stage_cost.names()
  local names = {}
  for _, name in ipairs(core.checkpoints) do
    if stage_cost.policies[name] then names[#names + 1] = name end
  end
  return names
end

return stage_cost
