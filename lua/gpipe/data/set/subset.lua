-- gpipe/data/set/subset.lua - `gp.data.subset`: some items of a dataset, by their positions.

local class = require "gpipe.data.set.class"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local WHO = "gp.data.subset"

-- Resolve a position among n items; negative ones count from the end.
local function position(given, n, what)
  local at = type(given) == "number" and math.tointeger(given)
  if at and at < 0 then at = n + 1 + at end
  if not at or at < 1 or at > n then
    errors.raise("%s: %s is %s, expected 1 to %d, or negative from the end", WHO, what,
      errors.show(given), n)
  end
  return at
end

local function range(from, to, n)
  local first, last = position(from, n, "from"), position(to, n, "to")
  if first > last then
    errors.raise("%s: the range is from %d to %d, expected from <= to (two positions alone are a "
      .. 'tensor: gp.tensor({9, 2}, {dtype = "i64"}))', WHO, first, last)
  end
  return core.arange(first, last, 1, "i64")
end

local function list(positions, n)
  if #positions == 0 then errors.raise("%s: no positions, expected at least one", WHO) end
  local checked = {}
  for i, given in ipairs(positions) do
    checked[i] = position(given, n, ("position %d"):format(i))
  end
  if #checked ~= #positions then errors.raise("%s: position %d is nil", WHO, #checked + 1) end
  return core.tensor(checked, "i64")
end

-- Turn the argument into positions, as an i64 tensor.
local function positions_of(given, n)
  if is_tensor(given) then
    if given.dtype ~= "i64" or given:dim() ~= 1 then
      errors.raise("%s: positions is %s of %d dimensions, expected an i64 tensor of one", WHO,
        given.dtype, given:dim())
    end
    return list(given:to("cpu"):totable(), n)
  end
  if type(given) ~= "table" then
    errors.raise("%s: positions is %s, expected {from, to}, a list or an i64 tensor", WHO,
      errors.show(given))
  end
  for key in next, given do
    if math.type(key) ~= "integer" and key ~= "from" and key ~= "to" then
      errors.raise("%s: positions has the field %s, expected {from, to} or a list", WHO,
        errors.show(key))
    end
  end
  if given.from ~= nil or given.to ~= nil then
    return range(given.from or 1, given.to or n, n)
  end
  if #given == 2 then return range(given[1], given[2], n) end
  return list(given, n)
end

--- Select some items of a dataset. Two numbers are a range, `{from, to}`, both included. Any other
--- list, and an i64 tensor of any length, are positions; items come in their order, as often as
--- they are listed. Negative positions count from the end. Nothing is copied.
--- Errors: positions outside the dataset, no positions, a range that ends before it begins.
--- ```lua
--- local d = gp.data.tensors(gp.arange(1, 10), gp.ones{10})
--- assert(#gp.data.subset(d, {3, 6}) == 4 and #gp.data.subset(d, {-2, -1}) == 2)
--- local some = gp.data.subset(d, gp.tensor({9, 2}, {dtype = "i64"}))
--- assert(some:item(1) == 9 and some:item(2) == 2)
--- ```
---@param d gpipe.Dataset
---@param positions table|gpipe.Tensor {from, to}, a list of positions, or i64 [n]
---@return gpipe.Dataset
return function(d, positions)
  local f = class.fields(d)
  if not f then errors.raise("%s: d is %s, expected a dataset", WHO, errors.show(d)) end
  return class.pick(f, positions_of(positions, f.count))
end
