-- lua/gpipe/ranks/gpus.lua - the GPUs that each rank sees, and which of them are the same one.
--
-- Ranks of one machine may all see all of its GPUs, or each its own (CUDA_VISIBLE_DEVICES, SLURM's
-- --gpus-per-task). A GPU is known by its identity, not by its number.

local core = require "gpipe.core"
local dry_mode = require "gpipe.dry_mode"
local errors = require "gpipe.errors"
local ranks = require "gpipe.ranks"
local share = require "gpipe.ranks.share"

local gpus = {}

---@class gpipe.RankGpus
---@field machine string
---@field gpus {id: string, memory: integer}[] in the order of their numbers
---@field why? string why there is none

local known -- of all ranks, asked once

-- What this rank sees. A GPU without an identity is told by its number.
local function own()
  local found, why = core.gpus()
  local list, seen = {}, {}
  for i, gpu in ipairs(found or {}) do
    local id = seen[gpu.id] and gpu.id .. " " .. i or gpu.id
    seen[gpu.id] = true
    list[i] = { id = id, memory = gpu.memory }
  end
  return { machine = ranks.machine(), gpus = list, why = why }
end

-- What the ranks of a job see that is only planned: the GPUs of this host, on each of its hosts.
local function imagined()
  local list = share.by_rank("gpus", own)
  for r, host in ipairs(ranks.hosts()) do list[r].machine = host.machine end
  return list
end

--- The GPUs that each rank sees, by rank from 1. Every rank has to make the first call.
---@return gpipe.RankGpus[]
function gpus.by_rank()
  if dry_mode.job() then return imagined() end
  known = known or share.by_rank("gpus", own)
  return known
end

-- ---- dealing ------------------------------------------------------------------------------------

-- A key that is equal for ranks that see the same GPUs.
local function sight_of(rank)
  local words = { rank.machine }
  for i, gpu in ipairs(rank.gpus) do words[i + 1] = gpu.id end
  return table.concat(words, "\n")
end

--- The devices of a job that names none: the GPUs of each rank in order, or a CPU device for a rank
--- without. Ranks that see the same GPUs get an equal part of them each, at least one.
---@param all gpipe.RankGpus[] by rank
---@return string[]? names "0/cuda:0"; nil: no rank has a GPU
function gpus.deal(all)
  local count, place, any = {}, {}, false -- ranks with the same sight; each one's place among them
  for r, rank in ipairs(all) do
    local sight = sight_of(rank)
    place[r], count[sight] = count[sight] or 0, (count[sight] or 0) + 1
    any = any or #rank.gpus > 0
  end
  if not any then return nil end
  local names = {}
  for r, rank in ipairs(all) do
    local n, of = #rank.gpus, count[sight_of(rank)]
    local first = place[r] * n // of
    local last = math.max(first, (place[r] + 1) * n // of - 1)
    for k = first, n > 0 and last or -1 do names[#names + 1] = ("%d/cuda:%d"):format(r - 1, k) end
    if n == 0 then names[#names + 1] = ("%d/cpu:0"):format(r - 1) end
  end
  return names
end

-- ---- a pipeline's devices -----------------------------------------------------------------------

local function count_text(n) return n == 1 and "1 GPU" or ("%d GPUs"):format(n) end

-- The GPU that a device means, on its rank.
local function find(who, device, all)
  local rank = all[device.rank + 1]
  local number = math.tointeger(tonumber(device.memory:match "%d+$"))
  local gpu = rank.gpus[number + 1]
  if gpu then return gpu, rank.machine .. " " .. gpu.id end
  errors.raise("%s: device '%s' cannot be used: rank %d sees %s", who, device.name, device.rank,
    #rank.gpus > 0 and count_text(#rank.gpus) or "no GPU: " .. tostring(rank.why))
end

--- Check that each rank has the GPUs that it is to drive, and note which GPU a device is: `place`,
--- its `capacity` in bytes, and how many ranks drive it. Every rank has to make the call.
---@param who string
---@param list table[] devices with ranks
function gpus.settle(who, list)
  local drivers = {} -- by place: the set of ranks, and its size
  for _, device in ipairs(list) do
    if device.kind == "cuda" then
      local gpu, place = find(who, device, gpus.by_rank())
      local set = drivers[place] or { count = 0 }
      drivers[place] = set
      if not set[device.rank] then set[device.rank], set.count = true, set.count + 1 end
      device.place, device.capacity, device.drivers = place, gpu.memory, set
    end
  end
  for _, device in ipairs(list) do
    device.drivers = device.drivers and device.drivers.count
  end
end

return gpus
