-- gpipe/data/item/map.lua - a source whose items are those of another one after a function of the
-- script. The function runs on the script's own thread: threads of the loader know no Lua.

local collate = require "gpipe.data.item.collate"

local Source = {}
Source.__index = Source

function Source:collate(pad, positions, seed, stream)
  local x, y = self.from:gather(positions, seed, stream)
  local inputs, targets = {}, {}
  for i = 1, #positions do inputs[i], targets[i] = self.fn(x[i], y and y[i]) end
  return collate.join(inputs, pad), collate.join(targets, pad)
end

function Source:gather(positions, seed, stream)
  return self:collate(nil, positions, seed, stream)
end

function Source:describe() return self.from:describe() .. ", mapped" end

---@param from gpipe.DataSource
---@param fn fun(x: any, y: any): any, any
---@return gpipe.DataSource
return function(from, fn)
  return setmetatable({ from = from, fn = fn, count = from.count, gap = from.gap,
    classes = from.classes }, Source)
end
