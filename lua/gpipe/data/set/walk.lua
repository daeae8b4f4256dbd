-- gpipe/data/set/walk.lua - `d:batches`: the order of the items, and the threads that load them.

local batches = require "gpipe.data.batches"
local class = require "gpipe.data.set.class"
local core = require "gpipe.core"
local elsewhere = require "gpipe.data.elsewhere"
local errors = require "gpipe.errors"
local options = require "gpipe.options"

local POOL = 64 -- batches within which items are sorted

local methods = class.methods

local BATCHES = {
  drop_last = { type = "boolean", default = false },
  workers = { type = "integer", min = 0, max = 256 },
  prefetch = { type = "integer", min = 1, max = 1024, default = 4 },
  pad = { type = "number" },
  sort_by = { type = "callable" },
}

-- Return the fields of a dataset whose items are sorted by a key, within pools of POOL batches.
local function sorted(f, n, key)
  local list, keys = {}, {}
  for i, x, y in class.each_item(f) do
    local value = key(x, y)
    if type(value) ~= "number" or value ~= value then
      errors.raise("batches: sort_by gave %s, expected a number", errors.show(value))
    end
    list[i], keys[i] = i, value
  end
  local most = POOL * math.min(n, f.count)
  for first = 1, f.count, most do
    local pool = table.move(list, first, math.min(first + most - 1, f.count), 1, {})
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

-- Return a function that starts threads which load from item `first` on; nil if the script's thread
-- makes the batches.
local function loader_of(f, n, usable, opts)
  local source, workers = f.source, opts.workers or f.source.workers or 0
  if workers == 0 or not (source.items or source.open_items) then return nil end
  return function(first)
    local items = source.items or source:open_items()
    local seed, stream = class.key_of(f)
    return core.loader_new(items, f.order, f.base, usable, first - 1, n, workers, opts.prefetch,
      seed, stream)
  end
end

---@class gpipe.BatchesOptions
---@field drop_last? boolean leave out a last batch of fewer items
---@field workers? integer threads that make batches ahead; 0: the script's own thread makes a batch
--- when it is asked for. Default: 2 for images, 0 for data that lies in memory
---@field prefetch? integer batches that may be ready or being made; default 4
---@field pad? number fills up tensors of different lengths, for items made by Lua functions
---@field sort_by? fun(x: any, y: any): number a length: items are sorted by it within every 64
--- batches, so that those of a batch are about as long. Looks at all items once

--- Walk over the items n at a time, in order: `for x, y in d:batches(32) do`. The result can be
--- walked again and again, has a length, and has `state()` and `restore()` to continue later.
---
--- Threads can load items that are made in C (files of bytes and ids, tables, tensors, images)
--- ahead of the loop; the batches are the same, bit by bit, whatever the number of threads.
--- Functions given to `map` run on the script's thread. The threads end with the loop, also after
--- break and errors.
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
  local f = class.fields(self)
  n = options.argument("batches", "n", n, { type = "integer", min = 1, required = true })
  elsewhere.check_options("batches", opts)
  opts = options.check("batches", opts, BATCHES)
  if opts.pad and not f.source.collate then
    errors.raise("batches: option 'pad' is %s, but all items of this data have one shape; expected "
      .. "it for data of map or gp.data.from", errors.show(opts.pad))
  end
  local usable = opts.drop_last and f.count - f.count % n or f.count
  if opts.sort_by then f = sorted(f, n, opts.sort_by) end
  local function of(first, count)
    if not opts.pad then return class.gather(f, first, count) end
    return f.source:collate(opts.pad, class.positions(f, first, count), class.key_of(f))
  end
  local b = batches.new {
    count = usable, size = n, gather = of, loader = loader_of(f, n, usable, opts),
    mark = function() return core.order_mark(f.order, f.base, f.count) end,
  }
  return b, nil, nil, b -- the fourth value of a generic `for` is closed when the loop is left
end
