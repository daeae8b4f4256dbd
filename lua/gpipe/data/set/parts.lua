-- gpipe/data/set/parts.lua - splitting, sharding and shuffling of data sets.

local class = require "gpipe.data.set.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local random = require "gpipe.random"

local methods = class.methods

-- The given fractions, and the rest if they leave some.
local function fractions(given)
  local sum, list = 0, {}
  for i, f in ipairs(given) do
    list[i] = options.argument("split", ("fraction %d"):format(i), f, {
      type = "number", above = 0, max = 1,
    })
    sum = sum + f
  end
  if #list == 0 then errors.raise("split: a fraction is missing, expected one such as 0.9") end
  if sum > 1 + 1e-9 then
    errors.raise("split: the fractions sum to %.6g, expected at most 1", sum)
  end
  if sum < 1 - 1e-9 then list[#list + 1] = 1 - sum end
  return list
end

local function part(f, first, count)
  if f.order then
    return class.new(f.source, f.base, count, f.order:narrow(1, first, count), f.key)
  end
  return class.new(f.source, f.base + first - 1, count, nil, f.key)
end

--- Split into parts that follow one another: one for each fraction of the items, and one for the
--- rest if there is one. Items that overlap those of another part (windows closer than they are
--- long) are left out between parts.
--- Errors: fractions outside (0, 1] or of a sum above 1; a part without items.
--- ```lua
--- local d = gp.data.tensors(gp.ones{10, 2}, gp.ones{10})
--- local train, valid = d:split(0.8)
--- assert(#train == 8 and #valid == 2)
--- ```
---@param ... number fractions
---@return gpipe.Dataset ...
function methods:split(...)
  local f = class.fields(self)
  local parts, first, sum = {}, 1, 0
  local gap = f.order and 0 or f.source.gap
  for i, fraction in ipairs(fractions { ... }) do
    sum = sum + fraction
    local last = math.floor(f.count * sum + 0.5)
    if last < first then
      errors.raise("split: part %d of %d items would be empty, expected larger fractions or more "
        .. "data", i, f.count)
    end
    parts[i] = part(f, first, last - first + 1)
    first = last + 1 + gap
  end
  return table.unpack(parts)
end

--- Every n-th item from item i + 1 on, for one of n processes: together the shards hold every item
--- once. Shuffle first, with the same seed in all processes.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 5), gp.ones{5})
--- assert(#d:shard(0, 2) == 3 and d:shard(1, 2):item(1) == 2)
--- ```
---@param i integer from 0 to n - 1
---@param n integer shards
---@return gpipe.Dataset
function methods:shard(i, n)
  local f = class.fields(self)
  n = options.argument("shard", "n", n, { type = "integer", min = 1, required = true })
  i = options.argument("shard", "i", i, {
    type = "integer", min = 0, max = n - 1, required = true,
  })
  if i >= f.count then
    errors.raise("shard: shard %d of %d items would be empty, expected fewer shards", i, f.count)
  end
  return class.pick(f, core.arange(i + 1, f.count, n, "i64"))
end

--- The same items in random order. With a seed the order is a function of the seed alone, which a
--- resumed script needs: `d:shuffle(epoch)`, or `d:shuffle(seed, epoch)`. Without one it follows
--- gp.seed, and every call gives another order. Random crops and flips follow the shuffle.
--- ```lua
--- local d = gp.data.tensors(gp.ones{10, 2}, gp.ones{10})
--- for epoch = 1, 3 do
---   for x, y in d:shuffle(epoch):batches(4) do print(x.shape[1]) end
--- end
--- ```
---@param seed? integer of this shuffle
---@param epoch? integer from 0: another order for each
---@return gpipe.Dataset
function methods:shuffle(seed, epoch)
  local f = class.fields(self)
  local own = options.argument("shuffle", "seed", seed, { type = "integer" })
  epoch = options.argument("shuffle", "epoch", epoch, {
    type = "integer", min = 0, max = 1 << 40,
  })
  local key = {}
  key.seed, key.stream = random.next_shuffle(own)
  if own and epoch then key.stream = epoch end
  return class.pick(f, core.permutation(f.count, key.seed, key.stream), key)
end
