-- gpipe/data/dataset.lua - items of a source in some order: splitting, shuffling, batches.
--
-- A dataset never changes and copies no data: splitting and shuffling make new datasets over the
-- same source. Item i lies at position base + order[i] of the source, or base + i without an order.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local batches = require "gpipe.data.batches"
local random = require "gpipe.random"

---@class gpipe.Dataset
local Dataset = { __name = "gpipe.Dataset", methods = {} }
local methods = Dataset.methods

-- The object's own fields, apart from what users index.
local fields = setmetatable({}, { __mode = "k" }) ---@type table<gpipe.Dataset, table>

---@class gpipe.DataSource
---@field count integer items
---@field gap integer items to leave out between two neighbouring parts, so that they share no target
---@field gather fun(self, positions: integer[]): gpipe.Tensor, gpipe.Tensor
---@field describe fun(self): string

---@param source gpipe.DataSource
---@return gpipe.Dataset
local function new(source, base, count, order)
  local dataset = setmetatable({}, Dataset)
  fields[dataset] = { source = source, base = base, count = count, order = order }
  return dataset
end

-- ---- items -----------------------------------------------------------------------------------

-- Positions in the source of items first .. first + n - 1.
local function positions(f, first, n)
  local list = {}
  if f.order then list = f.order:narrow(1, first, n):totable() end
  for i = 1, n do list[i] = f.base + (f.order and list[i] or first + i - 1) end
  return list
end

local function gather(f, first, n) return f.source:gather(positions(f, first, n)) end

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
  return x[1], y[1]
end

function Dataset.__len(self) return fields[self].count end

-- d[i] is {x, y}: indexing yields one value in Lua, so the two come as a table.
function Dataset.__index(self, key)
  if math.type(key) then
    local at = math.tointeger(key)
    if at and at > fields[self].count then return nil end -- ends ipairs
    return { self:item(key) }
  end
  local method = methods[key]
  if method == nil and type(key) == "string" then
    errors.raise("data: there is no '%s'%s", key,
      errors.hint(key, { "item", "split", "shuffle", "batches" }, "methods"))
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
  if f.order then return new(f.source, f.base, count, f.order:narrow(1, first, count)) end
  return new(f.source, f.base + first - 1, count)
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

--- The same items in random order. With a seed the order is a function of it alone, which a script
--- that is resumed wants: `d:shuffle(epoch)`. Without one it follows gp.seed, and every call gives
--- another order.
--- ```lua
--- local d = gp.data.tensors(gp.ones{10, 2}, gp.ones{10})
--- for epoch = 1, 3 do
---   for x, y in d:shuffle(epoch):batches(4) do print(x.shape[1]) end
--- end
--- ```
---@param seed? integer of this shuffle
---@return gpipe.Dataset
function methods:shuffle(seed)
  local f = fields[self]
  local own = options.argument("shuffle", "seed", seed, { type = "integer" })
  local order = core.permutation(f.count, random.next_shuffle(own))
  if f.order then order = core.gather_rows(f.order, order) end
  return new(f.source, f.base, f.count, order)
end

-- ---- batches ---------------------------------------------------------------------------------

--- Walk over the items n at a time, in order: `for x, y in d:batches(32) do`. The result may be
--- walked again and again, and has a length.
--- ```lua
--- local d = gp.data.tensors(gp.ones{10, 2}, gp.ones{10})
--- local sizes = {}
--- for x, y in d:batches(4) do sizes[#sizes + 1] = x.shape[1] end
--- assert(table.concat(sizes, " ") == "4 4 2")
--- ```
---@param n integer items in a batch
---@param opts? {drop_last?: boolean} leave out a last batch of fewer items
---@return gpipe.Batches
function methods:batches(n, opts)
  local f = fields[self]
  n = options.argument("batches", "n", n, { type = "integer", min = 1, required = true })
  opts = options.check("batches", opts, { drop_last = { type = "boolean", default = false } })
  local usable = opts.drop_last and f.count - f.count % n or f.count
  return batches.new(usable, n, function(first, count) return gather(f, first, count) end)
end

---@param source gpipe.DataSource
---@return gpipe.Dataset
return function(source) return new(source, 0, source.count) end
