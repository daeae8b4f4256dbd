-- gpipe/data/item/made.lua - shared by sources whose items are made in Lua, one by one, on the
-- script's thread: the loader's threads run no Lua.

local collate = require "gpipe.data.item.collate"
local errors = require "gpipe.errors"
local several = require "gpipe.data.item.several"

local made = {}

---@class gpipe.MadeSource: gpipe.DataSource
---@field items_at fun(self, positions: integer[], seed: integer, stream: integer, lent: boolean?):
--- any[], any[] inputs and targets; lent: the caller only copies them
---@field join? fun(items: any[][]): any, any puts a batch together
local Source = { gap = 0 }
made.Source = Source

local function together(join, inputs, targets)
  local items = {}
  for i, x in ipairs(inputs) do items[i] = { x, targets[i] } end
  local x, y = join(items)
  if x == nil then errors.raise("collate: the function gave nil, expected a batch's input") end
  return x, y
end

function Source:collate(pad, positions, seed, stream)
  local inputs, targets = self:items_at(positions, seed, stream, self.join == nil)
  if not self.join then
    return collate.join(inputs, pad), collate.targets(targets, #positions, pad)
  end
  if pad then
    errors.raise("batches: option 'pad' is %s, but d:collate's function puts batches together",
      errors.show(pad))
  end
  return together(self.join, inputs, targets)
end

function Source:gather(positions, seed, stream)
  return self:collate(nil, positions, seed, stream)
end

--- Make a class of sources that inherits these methods.
---@return table
function made.class()
  local class = setmetatable({}, { __index = Source })
  class.__index = class
  return class
end

-- Take the batches of a source made in C apart into items. With `apart` items may differ in shape,
-- so they are gathered one at a time.
local function taken_apart(source, positions, seed, stream)
  local inputs, targets, n = {}, {}, source.apart and 1 or #positions
  for first = 1, #positions, n do
    local x, y = source:gather(table.move(positions, first, first + n - 1, 1, {}), seed, stream)
    for i = 1, n do
      inputs[first + i - 1], targets[first + i - 1] = several.pick(x, i), several.pick(y, i)
    end
  end
  return inputs, targets
end

--- The inputs and targets of these items, for any kind of source.
---@param source gpipe.DataSource
---@param positions integer[]
---@param seed integer
---@param stream integer
---@param lent? boolean the caller only copies them
---@return any[] inputs
---@return any[] targets
function made.items_of(source, positions, seed, stream, lent)
  if #positions == 0 then return {}, {} end
  local get = source.items_at or taken_apart
  return get(source, positions, seed, stream, lent)
end

return made
