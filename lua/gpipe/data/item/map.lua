-- gpipe/data/item/map.lua - two sources over another one: its items mapped by a function of the
-- script, and its items put together as batches by a function.

local made = require "gpipe.data.item.made"

local map = {}

local Mapped, Collated = made.class(), made.class()

function Mapped:items_at(positions, seed, stream)
  local inputs, targets = made.items_of(self.from, positions, seed, stream)
  for i = 1, #positions do inputs[i], targets[i] = self.fn(inputs[i], targets[i]) end
  return inputs, targets
end

function Mapped:describe() return self.from:describe() .. ", mapped" end

function Collated:items_at(positions, seed, stream, lent)
  return made.items_of(self.from, positions, seed, stream, lent)
end

function Collated:describe() return self.from:describe() .. ", collated" end

local function over(class, from, fields)
  fields.from, fields.count, fields.gap, fields.classes = from, from.count, from.gap, from.classes
  return setmetatable(fields, class)
end

--- The items that `fn(x, y)` returns for those of another source.
---@param from gpipe.DataSource
---@param fn fun(x: any, y: any): any, any
---@return gpipe.DataSource
function map.mapped(from, fn) return over(Mapped, from, { fn = fn, join = from.join }) end

--- The same items in batches that `fn(items)` makes.
---@param from gpipe.DataSource
---@param fn fun(items: any[][]): any, any
---@return gpipe.DataSource
function map.collated(from, fn) return over(Collated, from, { join = fn }) end

return map
