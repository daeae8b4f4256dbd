-- lua/gpipe/pipeline/plan/replicas.lua - the options `replicas`, `sum_group`, `zero` and
-- `sync_batch_norm`.
--
-- R replicas of m micro-batches each are one pipeline with R * m micro-batches, shared out: replica
-- r runs those from r * m on, on devices of its own. Gradients of micro-batches are added by a tree
-- of their numbers (runtime/plan/sums.h), so that the bits do not depend on R and m, but on R * m
-- and on the group of micro-batches that a leaf of the tree adds one after the other.

local errors = require "gpipe.errors"
local replicate = require "gpipe.schedule.replicate"
local schedule = require "gpipe.schedule"

local replicas = {}

--- Moments lie with the replica that owns a parameter, and nowhere else.
replicas.zero_rule = { check = function(v)
  return v ~= 1 and "1: one replica updates a parameter, and keeps its moments" or nil
end }

-- Whether so many micro-batches of a replica are a block of the tree.
local function is_block(chunks, group)
  local leaves = chunks // group
  return chunks % group == 0 and leaves & (leaves - 1) == 0
end

-- The block that is not larger than so many micro-batches, at least one leaf.
local function block_below(chunks, group)
  local block = group
  while 2 * block <= chunks do block = 2 * block end
  return block
end

local function check_chunks(who, opts)
  local chunks, group = opts.chunks, opts.sum_group
  if is_block(chunks, group) then return end
  local below = block_below(chunks, group)
  errors.raise("%s: chunks = %d in each of %d replicas, expected %d (sum_group) times a power of "
    .. "two: %d or %d, or a sum_group that %d is such a multiple of", who, chunks, opts.replicas,
    group, below, 2 * below, chunks)
end

--- Fill in the defaults and check how the options fit together. `opts.grouped` is the group of the
--- tree, 0 without one; `opts.synced` is the number of replicas whose batch norms normalise
--- together, 1 where each does so by itself.
---@param who string
---@param opts table checked options of a pipeline or a plan, with chunks
function replicas.settle(who, opts)
  if opts.replicas and not opts.sum_group then opts.sum_group = 1 end
  opts.grouped = opts.sum_group or 0
  opts.replicas = opts.replicas or 1
  opts.synced = opts.sync_batch_norm and opts.replicas or 1
  if opts.replicas == 1 then return end
  if schedule.is(opts.schedule) and opts.schedule.replicas > 1 then
    errors.raise("%s: the schedule is for %d replicas, expected that of one: option 'replicas' "
      .. "repeats it", who, opts.schedule.replicas)
  end
  check_chunks(who, opts)
end

--- The least bytes of gradients that replicas exchange at once, as the environment says; 0: the
--- default (runtime/plan/edge/buckets.c).
---@return integer
function replicas.bucket()
  return math.tointeger(tonumber(os.getenv "GPIPE_BUCKET_BYTES" or 0)) or 0
end

--- The devices of one replica, where so many are named for all.
---@param who string
---@param count integer?
---@param opts table
---@return integer?
function replicas.share(who, count, opts)
  if not count or opts.replicas == 1 then return count end
  if count % opts.replicas == 0 then return count // opts.replicas end
  errors.raise("%s: %d devices for %d replicas, expected as many for each: %d or %d", who, count,
    opts.replicas, math.max(1, count // opts.replicas) * opts.replicas,
    (count // opts.replicas + 1) * opts.replicas)
end

--- Repeat the schedule of one replica.
---@param who string
---@param made gpipe.Schedule
---@param opts table
---@return gpipe.Schedule
function replicas.all(who, made, opts)
  if opts.replicas == 1 then return made end
  if made.copies > 1 and opts.barrier == false then
    errors.raise("%s: schedule '%s' runs every stage on %d devices of a replica, whose gradients "
      .. "are added before the update: it needs the barrier", who, made.name, made.copies)
  end
  local each = made.batch > 0 and opts.chunks or made.chunks
  local all = replicate(function() return made end, opts.replicas, each, opts.replicas * each)
  local good, report = all:verify()
  if not good then errors.raise("%s: %s", who, report) end
  return all
end

--- Do replicas of a synchronous schedule update without a barrier? Each then has values of its own,
--- as those of an asynchronous one have.
---@param who string
---@param made gpipe.Schedule of all replicas
---@param opts table
---@return boolean
function replicas.are_free(who, made, opts)
  if made.batch > 0 and opts.barrier ~= nil then
    errors.raise("%s: an asynchronous schedule has no barrier: leave option 'barrier' out", who)
  end
  return opts.barrier == false and opts.replicas > 1
end

--- Do the sums of a step follow a tree of several leaves? Then they are added to earlier gradients
--- as a whole.
---@param pipe table
---@return boolean
function replicas.adds_apart(pipe)
  return pipe.sum_group ~= nil and pipe.replicas * pipe.chunks > pipe.sum_group
end

return replicas
