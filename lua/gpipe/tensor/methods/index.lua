-- lua/gpipe/tensor/methods/index.lua - t[{...}], t[mask], t[positions], and writing to them.
--
-- There is one entry for each dimension: a number selects a position (the dimension disappears),
-- {first, last} a range with both ends, {first, last, step} every step-th position of it, {}
-- everything. Dimensions without an entry are taken whole. Numbers and ranges return views, so they
-- can be written to; masks and positions return copies.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

-- {first, last, step} of one dimension -> a view.
local function range(tensor, d, entry, who)
  local size = tensor:size(d)
  for key in pairs(entry) do
    if key ~= 1 and key ~= 2 and key ~= 3 then
      errors.raise("%s has a key %s, expected {first, last, step}", who, errors.show(key))
    end
  end
  local first = entry[1] == nil and 1 or check.position(who .. ": the first", entry[1], size)
  local last = entry[2] == nil and size or check.position(who .. ": the last", entry[2], size)
  local step = entry[3] == nil and 1 or check.count(who .. ": the step", entry[3], 1)
  if first > last then return tensor:narrow(d, 1, 0) end
  local count = (last - first) // step + 1
  if step == 1 then return tensor:narrow(d, first, count) end
  return core.every(tensor, d, first, count, step)
end

local function by_entries(tensor, entries)
  local rank, d, view = tensor:dim(), 1, tensor
  for key in pairs(entries) do
    if math.type(key) ~= "integer" or key < 1 or key > #entries then
      errors.raise("t[{..}] has a key %s, expected one entry for each dimension", errors.show(key))
    end
  end
  if #entries > rank then
    errors.raise("t[{..}] has %d entries, the tensor %d dimensions: expected at most as many",
      #entries, rank)
  end
  for i, entry in ipairs(entries) do
    local who = ("t[{..}]: entry %d"):format(i)
    if type(entry) == "table" then
      if next(entry) ~= nil then view = range(view, d, entry, who) end
      d = d + 1
    elseif math.type(entry) then
      view = view:select(d, check.position(who, entry, view:size(d)))
    else
      errors.raise("%s is %s, expected a position, a range {first, last} or {}", who,
        errors.show(entry))
    end
  end
  return view
end

-- The positions, from 1, that a mask selects among the elements in row-major order.
local function chosen(tensor, mask)
  local have, want = table.concat(mask.shape, "x"), table.concat(tensor.shape, "x")
  if have ~= want then
    errors.raise("t[mask]: the mask is %s, expected %s as the tensor", have, want)
  end
  local positions = {}
  for i, flag in ipairs(mask:reshape(-1):totable()) do
    if flag then positions[#positions + 1] = i end
  end
  return core.tensor(positions, "i64")
end

local function by_tensor(tensor, index)
  if index.dtype == "bool" then
    local positions = chosen(tensor, index)
    if positions:numel() == 0 then return tensor:reshape(-1):narrow(1, 1, 0) end
    return tensor:reshape(-1):index_select(1, positions)
  end
  if index.dtype ~= "i64" then
    errors.raise("t[i]: i is a tensor of %s, expected bool (a mask) or i64 (positions)",
      index.dtype)
  end
  if index:dim() == 1 then return tensor:index_select(1, index) end
  local rest = table.move(tensor.shape, 2, tensor:dim(), index:dim() + 1, index.shape)
  return tensor:index_select(1, index:reshape(-1)):reshape(rest)
end

core.hook("index", function(tensor, index)
  if is_tensor(index) then return by_tensor(tensor, index) end
  local view = by_entries(tensor, index)
  if view:dim() > 0 or core.tracing() or view.requires_grad then return view end
  return view:item()
end)

-- ---- writing -----------------------------------------------------------------------------------

-- Write a value where the value or the tensor may need a gradient: the tensor becomes a copy of
-- itself with the new elements.
local function write_noted(tensor, index, value)
  local places = beside(tensor, core.arange(1, tensor:numel(), 1, "i64")):reshape(tensor.shape)
  local at = math.type(index) and places:narrow(1, check.position("t[i] = v: i", index, #places), 1)
    or is_tensor(index) and by_tensor(places, index) or by_entries(places, index)
  if at:numel() == 0 then return end
  local shape = at.shape
  if math.type(index) then table.remove(shape, 1) end
  if not is_tensor(value) then value = beside(tensor, core.tensor(value, tensor.dtype)) end
  if is_tensor(index) and index.dtype == "bool" then value = value:reshape(-1) end
  value = value:to(tensor.dtype):expand(shape):reshape(-1)
  local whole = tensor:clone():reshape(-1):scatter(1, at:reshape(-1), value)
  tensor:copy_(whole:reshape(tensor.shape))
end

-- Write where the mask is true: a number, or as many values as there are such elements.
local function write_mask(tensor, mask, value)
  if not is_tensor(value) then
    tensor:copy_(core.where(mask, value, tensor))
    return
  end
  local positions, values = chosen(tensor, mask):totable(), value:reshape(-1)
  if values:numel() ~= #positions and values:numel() ~= 1 then
    errors.raise("t[mask] = v: v has %d elements, expected %d, one for each that the mask chooses",
      values:numel(), #positions)
  end
  local all = tensor:reshape(-1):clone()
  for i, at in ipairs(positions) do all[at] = values[values:numel() == 1 and 1 or i] end
  tensor:copy_(all:reshape(tensor.shape))
end

local function write_rows(tensor, positions, value)
  for i = 1, positions:numel() do
    local row = is_tensor(value) and value:dim() == tensor:dim() and value[i] or value
    tensor[positions[i]] = row
  end
end

core.hook("newindex", function(tensor, index, value)
  local noted = core.write_is_noted(tensor, value)
  if noted and not (is_tensor(index) and index.dtype == "i64") then
    write_noted(tensor, index, value)
  elseif not is_tensor(index) then
    by_entries(tensor, index):copy_(value)
  elseif index.dtype == "bool" then
    write_mask(tensor, index, value)
  elseif index.dtype == "i64" and index:dim() == 1 then
    write_rows(tensor, index, value)
  else
    errors.raise("t[i] = v: i is a tensor of %s with %d dimensions, expected a mask or i64 "
      .. "positions", index.dtype, index:dim())
  end
end)
