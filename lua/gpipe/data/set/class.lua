-- gpipe/data/set/class.lua - the class of data sets: items of a source in some order.
--
-- A dataset never changes and copies no data: splitting and shuffling make new datasets over the
-- same source. Item i lies at position base + order[i] of the source, or base + i without an order.
-- The other files of this folder add its methods.

local core = require "gpipe.core"
local elsewhere = require "gpipe.data.elsewhere"
local errors = require "gpipe.errors"
local made = require "gpipe.data.item.made"
local random = require "gpipe.random"
local several = require "gpipe.data.item.several"

local PIECE = 256 -- items that are fetched together

local class = {}

---@class gpipe.Dataset
local Dataset = { __name = "gpipe.Dataset", methods = {} }
local methods = Dataset.methods
class.methods = methods

-- The object's own fields, kept apart from what users index.
local fields = setmetatable({}, { __mode = "k" }) ---@type table<gpipe.Dataset, table>

---@class gpipe.DataSource
---@field count integer items
---@field gap integer items left out between neighbouring parts, so that they share no target
---@field gather fun(self, positions: integer[], seed: integer, stream: integer): any, any
---@field items? any the same items as made in C, which threads can load
---@field open_items? fun(self): any makes `items` when they are needed
---@field items_at? fun(self, positions: integer[], seed: integer, stream: integer, lent: boolean?):
--- any[], any[] inputs and targets of items that are made in Lua
---@field apart? boolean items may differ in shape, so they cannot be gathered together
---@field collate? fun(self, pad: number?, positions: integer[], seed: integer, stream: integer)
---@field join? fun(items: any[][]): any, any the function of d:collate
---@field workers? integer threads if batches() does not say
---@field classes? string[] the name of id 0, 1, ...
---@field describe fun(self): string

--- A dataset of `count` items of a source.
---@param source gpipe.DataSource
---@param base integer
---@param count integer
---@param order? gpipe.Tensor i64 [count], from 1
---@param key? {seed: integer, stream: integer} of the last shuffle
---@return gpipe.Dataset
function class.new(source, base, count, order, key)
  local dataset = setmetatable({}, Dataset)
  fields[dataset] = { source = source, base = base, count = count, order = order, key = key }
  return dataset
end

--- The fields of a dataset; nil for any other value.
---@param value any
---@return table?
function class.fields(value)
  return type(value) == "table" and rawequal(getmetatable(value), Dataset) and fields[value] or nil
end

--- The seed and stream for random crops and flips of items: those of the last shuffle.
---@return integer seed
---@return integer stream
function class.key_of(f)
  if f.key then return f.key.seed, f.key.stream end
  return random.current(), 0
end

-- ---- items -----------------------------------------------------------------------------------

--- Positions in the source of items first .. first + n - 1.
---@return integer[]
function class.positions(f, first, n)
  local list = {}
  if f.order then list = f.order:narrow(1, first, n):totable() end
  for i = 1, n do list[i] = f.base + (f.order and list[i] or first + i - 1) end
  return list
end

--- The same items in another order, or some of them.
---@param f table
---@param picked gpipe.Tensor i64 numbers of items, from 1
---@param key? table
---@return gpipe.Dataset
function class.pick(f, picked, key)
  local order = f.order and core.gather_rows(f.order, picked) or picked
  return class.new(f.source, f.base, picked:numel(), order, key or f.key)
end

--- A batch of the n items from `first` on.
function class.gather(f, first, n)
  return f.source:gather(class.positions(f, first, n), class.key_of(f))
end

local function items_of(f, first, n)
  return made.items_of(f.source, class.positions(f, first, n), class.key_of(f))
end

--- Iterate over all items with `for i, x, y in`, fetching PIECE of them at a time.
function class.each_item(f)
  local first, i, n, inputs, targets = 1, 0, 0, nil, nil
  return function()
    if i == n then
      first = first + n
      i, n = 0, math.min(PIECE, f.count - first + 1)
      if n <= 0 then return nil end
      inputs, targets = items_of(f, first, n)
    end
    i = i + 1
    return first + i - 1, inputs[i], targets[i]
  end
end

--- The i-th item: its input and its target. Several inputs, or several targets, are a list.
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
  if f.source.items_at then
    local inputs, targets = items_of(f, at, 1)
    return inputs[1], targets[1]
  end
  local x, y = class.gather(f, at, 1)
  return several.pick(x, 1), several.pick(y, 1)
end

-- ---- indexing --------------------------------------------------------------------------------

local function refuse(key)
  if elsewhere.methods[key] then
    errors.raise("data: there is no method '%s' (%s)", key, elsewhere.methods[key])
  end
  local names = {}
  for name in pairs(methods) do names[#names + 1] = name end
  table.sort(names)
  errors.raise("data: there is no '%s'%s", errors.name(key), errors.hint(key, names, "methods"))
end

function Dataset.__len(self) return fields[self].count end

-- d[i] is {x, y}: indexing yields a single value in Lua, so input and target come as a table.
function Dataset.__index(self, key)
  if math.type(key) then
    local at = math.tointeger(key)
    if at and at > fields[self].count then return nil end -- ends ipairs
    return { self:item(key) }
  end
  if key == "classes" then return fields[self].source.classes end
  local method = methods[key]
  if method == nil and type(key) == "string" then refuse(key) end
  return method
end

function Dataset.__tostring(self)
  local f = fields[self]
  return ("Dataset(%d items of %s%s)"):format(f.count, f.source:describe(),
    f.order and ", shuffled" or "")
end

return class
