-- lua/gpipe/plan/stage_cost.lua - what a policy of recomputation costs a stage: seconds that run
-- again for a micro-batch, and bytes that are kept.
--
-- Every other file of the planner asks here, so a new policy is an entry of this table. A policy
-- says by which word of option `checkpoint` the schedule is lowered, so that R stands where it will
-- run, and what a range of layers then takes.

local core = require "gpipe.core"
local sums = require "gpipe.plan.sums"

local stage_cost = {}

---@class gpipe.StageSituation how a stage lives in its schedule
---@field live integer micro-batches between their forward and their backward, at most
---@field held integer of which saved values are held at once: after F, or after R
---@field share number of the micro-batches that run R
---@field carried integer micro-batches between I and W
---@field away number|false seconds of a byte on its way to the host's memory
---@field room number bytes that may be kept

---@class gpipe.RematPolicy
---@field lowered string the word that the schedule is lowered by
---@field all? "live" of so many micro-batches all saved (or kept) values lie there, at least
---@field runs_again? boolean what is saved may lie there from R on
---@field drops? boolean F keeps nothing of micro-batches that run again
---@field kept? string the sums of what is kept, if they are not those of saved_bytes
---@field linear? boolean seconds are the sum of the layers' recompute, or near it
---@field spares? boolean it is tried where not everything can be kept with the best cut
---@field needs_selective? boolean it needs what profiles say of selective recomputation
---@field fills? boolean it keeps what there is room for: all, where `never` fits
---@field offloads? boolean what is saved waits in the host's memory, so devices have to say how they
--- reach it
---@field cost fun(s: gpipe.LayerSums, i: integer, j: integer, at: gpipe.StageSituation): number, number

-- Everything is kept from F on.
local function never(s, i, j, at) return 0, at.live * sums.saved(s, i, j) end

-- Layers run again as often as the lowered schedule says: where I and W run apart all of them at
-- once, in R; else each right before its backward, from its input.
local function again(s, i, j, at)
  local seconds, saved = at.share * sums.range(s.recompute, i, j), sums.saved(s, i, j)
  if at.share == 0 or at.carried > 0 then return seconds, at.held * saved end
  local inputs, layer = sums.by_layer(s, i, j)
  local plain = at.share < 1 and saved or 0 -- of a micro-batch that runs nothing again
  return seconds, math.min(at.held * saved, at.live * inputs + math.max(layer, plain))
end

-- What is expensive is kept, and the rest is made again within backward, for one layer of one
-- micro-batch at a time.
local function selective(s, i, j, at)
  local kept, all = sums.range(s.selective_bytes, i, j), sums.range(s.saved_bytes, i, j)
  return at.share * sums.range(s.selective_recompute, i, j),
    at.live * kept + math.max(0, all - kept) / (j - i + 1)
end

-- With "offload" a device holds what so many micro-batches have saved: one at work, one on its way
-- to the host, one on its way back.
local ON_DEVICE = 3

-- Nothing runs again, and what does not lie on the device waits on the host. What W reads stays.
local function offload(s, i, j, at)
  return 0, math.min(at.live, ON_DEVICE + at.carried) * sums.saved(s, i, j)
end

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

-- What all layers on the host cost beside F and backward, by which copies run.
local function all_away(s, i, j, at)
  local _, bytes = offload(s, i, j, at)
  local copy = at.away * sums.saved(s, i, j)
  return 2 * math.max(0, copy - sums.range(s.forward, i, j)), bytes
end

-- An approximation of what the stage DP of the runtime will find: each layer is kept or made again,
-- those worth most being kept while there is room (a knapsack filled by density); or all wait on
-- the host. Options within a layer and offloading some of the layers are not considered.
local function auto(s, i, j, at)
  local seconds, bytes = never(s, i, j, at)
  if bytes <= at.room then return seconds, bytes end
  local away, there = math.huge, math.huge
  if at.away and stage_cost.goes(at.live) then away, there = all_away(s, i, j, at) end
  seconds, bytes = again(s, i, j, at)
  if bytes > at.room and there < bytes then return away, there end
  for _, layer in ipairs(order_of(s)) do
    local one = s.layers[layer]
    local more = at.live * one.saved_bytes
      - (at.carried > 0 and at.held * one.saved_bytes or at.live * s.output[layer])
    if layer >= i and layer <= j and more > 0 and bytes + more <= at.room then
      seconds, bytes = seconds - at.share * one.recompute, bytes + more
    end
  end
  if there <= at.room and away < seconds then return away, there end
  return math.max(0, seconds), bytes
end

---@type table<string, gpipe.RematPolicy>
stage_cost.policies = {
  never = { lowered = "never", cost = never, linear = true, all = "live" },
  except_last = { lowered = "except_last", cost = again, linear = true, runs_again = true,
    drops = true },
  always = { lowered = "always", cost = again, linear = true, runs_again = true, drops = true },
  selective = { lowered = "always", cost = selective, linear = true,
    all = "live", kept = "selective_bytes", needs_selective = true, spares = true },
  offload = { lowered = "never", cost = offload, linear = true, spares = true, offloads = true },
  auto = { lowered = "always", cost = auto, linear = true, fills = true, runs_again = true,
    spares = true },
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
