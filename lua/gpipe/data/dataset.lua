-- gpipe/data/dataset.lua - items of a source in some order: splitting, shuffling, batches.
--
-- A dataset never changes and copies no data: splitting and shuffling make new datasets over the
-- same source. Item i lies at position base + order[i] of the source, or base + i without an order.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local batches = require "gpipe.data.batches"
local mapped = require "gpipe.data.item.map"
local random = require "gpipe.random"

-- Items that are looked at together, and batches within which items are sorted.
local PIECE, POOL = 256, 64

---@class gpipe.Dataset
local Dataset = { __name = "gpipe.Dataset", methods = {} }
local methods = Dataset.methods

-- The object's own fields, apart from what users index.
local fields = setmetatable({}, { __mode = "k" }) ---@type table<gpipe.Dataset, table>

---@class gpipe.DataSource
---@field count integer items
---@field gap integer items to leave out between two neighbouring parts, so that they share no target
---@field gather fun(self, positions: integer[], seed: integer, stream: integer): any, any
---@field items? any the same items made in C: what threads can load
---@field open_items? fun(self): any makes those
---@field collate? fun(self, pad: number?, positions: integer[], seed: integer, stream: integer)
---@field workers? integer threads where batches() is not told
---@field classes? string[] the name of id 0, 1, ...
---@field describe fun(self): string

---@param source gpipe.DataSource
---@return gpipe.Dataset
local function new(source, base, count, order, key)
  local dataset = setmetatable({}, Dataset)
  fields[dataset] = { source = source, base = base, count = count, order = order, key = key }
  return dataset
end

-- Seed and stream of what is drawn for items (random crops and flips): those of the last shuffle.
local function key_of(f)
  if f.key then return f.key.seed, f.key.stream end
  return random.current(), 0
end

-- ---- items -----------------------------------------------------------------------------------

-- Positions in the source of items first .. first + n - 1.
local function positions(f, first, n)
  local list = {}
  if f.order then list = f.order:narrow(1, first, n):totable() end
  for i = 1, n do list[i] = f.base + (f.order and list[i] or first + i - 1) end
  return list
end

local function gather(f, first, n)
  return f.source:gather(positions(f, first, n), key_of(f))
end

-- The n items from `first` on, one by one: with their number, input and target. Those of Lua
-- functions may differ in shape, so they are not put together before.
local function items_of(f, first, n)
  local apart = f.source.collate ~= nil
  local x, y, i = nil, nil, 0
  return function()
    i = i + 1
    if i > n then return nil end
    if apart or i == 1 then x, y = gather(f, first + i - 1, apart and 1 or n) end
    local at = apart and 1 or i
    return first + i - 1, x[at], y and y[at]
  end
end

-- All items as `for i, x, y in`, some at a time.
local function each_item(f)
  local first, piece = 1, items_of(f, 1, math.min(PIECE, f.count))
  return function()
    local i, x, y = piece()
    if not i and first + PIECE <= f.count then
      first = first + PIECE
      piece = items_of(f, first, math.min(PIECE, f.count - first + 1))
      i, x, y = piece()
    end
    return i, x, y
  end
end

--- The i-th item: an input and its target.
--- ```lua
--- local d = gp.data.tensors(gp.ones{3, 2}, gp.tensor{1, 2, 3})
--- local x, y = d:item(2)
--- ```
---@param i integer from 1, or negative from the end
---@return gpipe.Tensor x
---@return gpipe.Tensor|number y
function methods:item(i)
  local f = fields[self]
  local at = math.tointeger(i)
  if at and at < 0 then at = f.count + 1 + at end
  if not at or at < 1 or at > f.count then
    errors.raise("data: item %s, expected 1 to %d", errors.show(i), f.count)
  end
  local x, y = gather(f, at, 1)
  return x[1], y and y[1]
end

function Dataset.__len(self) return fields[self].count end

-- d[i] is {x, y}: indexing yields one value in Lua, so the two come as a table.
function Dataset.__index(self, key)
  if math.type(key) then
    local at = math.tointeger(key)
    if at and at > fields[self].count then return nil end -- ends ipairs
    return { self:item(key) }
  end
  if key == "classes" then return fields[self].source.classes end
  local method = methods[key]
  if method == nil and type(key) == "string" then
    local names = {}
    for name in pairs(methods) do names[#names + 1] = name end
    table.sort(names)
    errors.raise("data: there is no '%s'%s", key, errors.hint(key, names, "methods"))
  end
  return method
end

function Dataset.__tostring(self)
  local f = fields[self]
  return ("Dataset(%d items of %s%s)"):format(f.count, f.source:describe(),
    f.order and ", shuffled" or "")
end

-- ---- parts -----------------------------------------------------------------------------------

-- The given fractions and, where they leave some, the rest.
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
  if f.order then return new(f.source, f.base, count, f.order:narrow(1, first, count), f.key) end
  return new(f.source, f.base + first - 1, count, nil, f.key)
end

--- Split into parts that follow one another: the fractions of the items, and the rest if there is
--- one. Overlapping items (windows closer than they are long) are left out between parts.
--- Errors: fractions outside (0, 1] or of a sum above 1; a part without items.
--- ```lua
--- local d = gp.data.tensors(gp.ones{10, 2}, gp.ones{10})
--- local train, valid = d:split(0.8)
--- assert(#train == 8 and #valid == 2)
--- ```
---@param ... number fractions
---@return gpipe.Dataset ...
function methods:split(...)
  local f = fields[self]
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
--- once. Shuffle before, with one seed in all of them.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 5), gp.ones{5})
--- assert(#d:shard(0, 2) == 3 and d:shard(1, 2):item(1) == 2)
--- ```
---@param i integer from 0 to n - 1
---@param n integer shards
---@return gpipe.Dataset
function methods:shard(i, n)
  local f = fields[self]
  n = options.argument("shard", "n", n, { type = "integer", min = 1, required = true })
  i = options.argument("shard", "i", i, {
    type = "integer", min = 0, max = n - 1, required = true,
  })
  if i >= f.count then
    errors.raise("shard: shard %d of %d items would be empty, expected fewer shards", i, f.count)
  end
  local picked = core.arange(i + 1, f.count, n, "i64")
  return new(f.source, f.base, picked:numel(), f.order and core.gather_rows(f.order, picked)
    or picked, f.key)
end

--- The same items in random order. With a seed the order is a function of it alone, which a script
--- that is resumed wants: `d:shuffle(epoch)`, or `d:shuffle(seed, epoch)`. Without one it follows
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
  local f = fields[self]
  local own = options.argument("shuffle", "seed", seed, { type = "integer" })
  epoch = options.argument("shuffle", "epoch", epoch, {
    type = "integer", min = 0, max = 1 << 40,
  })
  local key = {}
  key.seed, key.stream = random.next_shuffle(own)
  if own and epoch then key.stream = epoch end
  local order = core.permutation(f.count, key.seed, key.stream)
  if f.order then order = core.gather_rows(f.order, order) end
  return new(f.source, f.base, f.count, order, key)
end

-- ---- functions of items ------------------------------------------------------------------------

--- Each item as fn gives it: `fn(x, y)` returns the new input and target, tensors, numbers or
--- anything else. It runs on the script's own thread each time an item is used, also where batches
--- has workers; what it returns is put together as the batch: tensors of one shape are stacked,
--- whole numbers become i64, others f32, anything else a list.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 4), gp.ones{4}):map(function(x, y) return 2 * x, y end)
--- assert(d:item(3) == 6)
--- ```
---@param fn fun(x: any, y: any): any, any
---@return gpipe.Dataset
function methods:map(fn)
  local f = fields[self]
  fn = options.argument("map", "fn", fn, { type = "callable", required = true })
  return new(mapped(f.source, fn), f.base, f.count, f.order, f.key)
end

--- The items for which `fn(x, y)` is true. All items are looked at once, here.
--- Errors: none is left.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 4), gp.ones{4}):filter(function(x) return x > 2 end)
--- assert(#d == 2 and d:item(1) == 3)
--- ```
---@param fn fun(x: any, y: any): any
---@return gpipe.Dataset
function methods:filter(fn)
  local f = fields[self]
  fn = options.argument("filter", "fn", fn, { type = "callable", required = true })
  local kept = {}
  for i, x, y in each_item(f) do
    if fn(x, y) then kept[#kept + 1] = i end
  end
  if #kept == 0 then errors.raise("filter: none of %d items is left, expected one", f.count) end
  local picked = core.tensor(kept, "i64")
  return new(f.source, f.base, #kept, f.order and core.gather_rows(f.order, picked) or picked,
    f.key)
end

-- ---- batches ---------------------------------------------------------------------------------

local BATCHES = {
  drop_last = { type = "boolean", default = false },
  workers = { type = "integer", min = 0, max = 256 },
  prefetch = { type = "integer", min = 1, max = 1024, default = 4 },
  pad = { type = "number" },
  sort_by = { type = "callable" },
}

-- The fields of a dataset whose items are sorted by a key within pools of batches.
local function sorted(f, n, key)
  local list, keys = {}, {}
  for i, x, y in each_item(f) do
    local value = key(x, y)
    if type(value) ~= "number" then
      errors.raise("batches: sort_by gave %s, expected a number", errors.show(value))
    end
    list[i], keys[i] = i, value
  end
  for first = 1, f.count, POOL * n do
    local pool = table.move(list, first, math.min(first + POOL * n - 1, f.count), 1, {})
    table.sort(pool, function(a, b)
      if keys[a] ~= keys[b] then return keys[a] < keys[b] end
      return a < b
    end)
    table.move(pool, 1, #pool, first, list)
  end
  local order = core.tensor(list, "i64")
  return { source = f.source, base = f.base, count = f.count, key = f.key,
    order = f.order and core.gather_rows(f.order, order) or order }
end

-- What makes threads that load from item `first` on; nil where the script's own thread does it.
local function loader_of(f, n, usable, opts)
  local source, workers = f.source, opts.workers or f.source.workers or 0
  if workers == 0 or not (source.items or source.open_items) then return nil end
  return function(first)
    local items = source.items or source:open_items()
    local seed, stream = key_of(f)
    return core.loader_new(items, f.order, f.base, usable, first - 1, n, workers, opts.prefetch,
      seed, stream)
  end
end

---@class gpipe.BatchesOptions
---@field drop_last? boolean leave out a last batch of fewer items
---@field workers? integer threads that make batches ahead; 0: the script's own thread, when the
--- batch is asked for. Default: 2 for images, 0 for data that lies in memory
---@field prefetch? integer batches that may be ready or in the making; default 4
---@field pad? number fills up tensors of different lengths, for data of Lua functions
---@field sort_by? fun(x: any, y: any): number a length: items are sorted by it within every 64
--- batches, so that those of a batch are about as long. Looks at all items once

--- Walk over the items n at a time, in order: `for x, y in d:batches(32) do`. The result may be
--- walked again and again, has a length, and `state()` and `restore()` for going on later.
---
--- Items that are made in C (files of bytes and ids, tables, tensors, images) can be loaded by
--- threads ahead of the loop; the batches are the same, bit by bit, whatever their number.
--- Functions given to `map` run on the script's own thread. Threads end with the loop, also on
--- break and on errors.
--- ```lua
--- local d = gp.data.tensors(gp.ones{10, 2}, gp.ones{10})
--- local sizes = {}
--- for x, y in d:batches(4, {workers = 2}) do sizes[#sizes + 1] = x.shape[1] end
--- assert(table.concat(sizes, " ") == "4 4 2")
--- ```
---@param n integer items in a batch
---@param opts? gpipe.BatchesOptions
---@return gpipe.Batches
function methods:batches(n, opts)
  local f = fields[self]
  n = options.argument("batches", "n", n, { type = "integer", min = 1, required = true })
  opts = options.check("batches", opts, BATCHES)
  if opts.pad and not f.source.collate then
    errors.raise("batches: option 'pad' is %s, but all items of this data have one shape; expected "
      .. "it for data of map or gp.data.from", errors.show(opts.pad))
  end
  local usable = opts.drop_last and f.count - f.count % n or f.count
  if opts.sort_by then f = sorted(f, n, opts.sort_by) end
  local function of(first, count)
    if not opts.pad then return gather(f, first, count) end
    return f.source:collate(opts.pad, positions(f, first, count), key_of(f))
  end
  local b = batches.new {
    count = usable, size = n, gather = of, loader = loader_of(f, n, usable, opts),
    mark = function() return core.order_mark(f.order, f.base, f.count) end,
  }
  return b, nil, nil, b -- the fourth value of a generic `for` is closed when the loop is left
end

---@param source gpipe.DataSource
---@return gpipe.Dataset
return function(source) return new(source, 0, source.count) end
