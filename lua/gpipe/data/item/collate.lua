-- gpipe/data/item/collate.lua - puts items that were made in Lua together as a batch.
--
-- Tensors are stacked; whole numbers become i64, other numbers f32; lists of tensors and numbers
-- are put together place by place; anything else becomes a list. With `pad` tensors may differ in
-- their first dimension.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local several = require "gpipe.data.item.several"

local collate = {}

local function numbers(list)
  local whole = true
  for _, v in ipairs(list) do whole = whole and math.type(v) == "integer" end
  return core.tensor(list, whole and "i64" or "f32")
end

-- ---- tensors -----------------------------------------------------------------------------------

local function show(value)
  if not is_tensor(value) then return errors.show(value) end
  return ("%s [%s]"):format(value.dtype, table.concat(value.shape, ", "))
end

-- Return whether two tensors can be rows of one batch; with `pad` their first dimension may differ.
local function alike(a, b, pad)
  if not is_tensor(b) or a.dtype ~= b.dtype or #a.shape ~= #b.shape then return false end
  local first, second = a.shape, b.shape
  for d = pad and 2 or 1, #first do
    if first[d] ~= second[d] then return false end
  end
  return true
end

-- Stack rows into [n, longest], with padding behind the shorter ones.
local function padded(list, pad)
  local longest = 0
  for _, t in ipairs(list) do longest = math.max(longest, t:size(1)) end
  local rows = {}
  for i, t in ipairs(list) do
    local missing = longest - t:size(1)
    if missing > 0 then
      local shape = t.shape
      shape[1] = missing
      t = core.concat({ t, core.full("batches", shape, pad, t.dtype) }, 1)
    end
    rows[i] = t
  end
  return rows
end

local function stacked(list, pad)
  local first = list[1]
  pad = first:dim() > 0 and pad or nil
  for i, t in ipairs(list) do
    if not alike(first, t, pad) then
      errors.raise("batches: item %d of a batch is %s, the first one %s, expected one shape and "
        .. "dtype%s", i, show(t), show(first), pad and " but for the first dimension"
        or " (pad = 0 fills up)")
    end
  end
  if pad then list = padded(list, pad) end
  local rows = {}
  for i, t in ipairs(list) do
    local shape = t.shape
    table.insert(shape, 1, 1)
    rows[i] = t:reshape(shape)
  end
  return core.concat(rows, 1)
end

-- ---- any value ---------------------------------------------------------------------------------

-- Make a batch for each place of lists that have the same length.
local function place_by_place(list, pad)
  local width, places = #list[1], {}
  for i, item in ipairs(list) do
    if not several.is(item) or #item ~= width then
      errors.raise("batches: item %d of a batch is %s, the first one a list of %d tensors or "
        .. "numbers, expected as many (gp.tensor makes one value of a list of numbers)", i,
        several.is(item) and ("a list of %d"):format(#item) or errors.show(item), width)
    end
  end
  for place = 1, width do
    local column = {}
    for i, item in ipairs(list) do column[i] = item[place] end
    places[place] = collate.join(column, pad)
  end
  return several.mark(places)
end

local function is_number(v) return type(v) == "number" end

--- Make one value of a batch from the values of its items.
---@param list any[]
---@param pad? number
---@return any
function collate.join(list, pad)
  if #list == 0 then return nil end
  if is_tensor(list[1]) then return stacked(list, pad) end
  if several.is(list[1]) then return place_by_place(list, pad) end
  for _, v in ipairs(list) do
    if not is_number(v) then return list end
  end
  return numbers(list)
end

--- The targets of a batch of n items; nil if no item has a target.
---@param list any[] with holes
---@param n integer
---@param pad? number
---@return any
function collate.targets(list, n, pad)
  if next(list) == nil then return nil end
  for i = 1, n do
    if list[i] == nil then
      errors.raise("batches: item %d of a batch has no target, expected one as others have", i)
    end
  end
  return collate.join(list, pad)
end

return collate
