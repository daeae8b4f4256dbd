-- gpipe/data/item/collate.lua - items of Lua put together as a batch.
--
-- Tensors are stacked, whole numbers become i64, others f32, anything else a list. With `pad`
-- tensors of one dimension may differ in length.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"

local collate = {}

local function numbers(list)
  local whole = true
  for _, v in ipairs(list) do whole = whole and math.type(v) == "integer" end
  return core.tensor(list, whole and "i64" or "f32")
end

-- [n, longest]: the rows, and the padding behind them.
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

local function shape_text(t) return "[" .. table.concat(t.shape, ", ") .. "]" end

local function stacked(list, pad)
  local first = list[1]
  if pad and first:dim() > 0 then list = padded(list, pad) end
  local rows = {}
  for i, t in ipairs(list) do
    if not is_tensor(t) or t.dtype ~= first.dtype or shape_text(t) ~= shape_text(list[1]) then
      errors.raise("batches: item %d of a batch is %s, the first one %s %s, expected one shape and "
        .. "dtype (pad = 0 fills up)", i, is_tensor(t) and t.dtype .. " " .. shape_text(t)
        or errors.show(t), first.dtype, shape_text(list[1]))
    end
    local shape = t.shape
    table.insert(shape, 1, 1)
    rows[i] = t:reshape(shape)
  end
  return core.concat(rows, 1)
end

local function is_number(v) return type(v) == "number" end

--- One value of a batch from those of its items.
---@param list any[]
---@param pad? number
---@return any
function collate.join(list, pad)
  if #list == 0 then return nil end
  if is_tensor(list[1]) then return stacked(list, pad) end
  for _, v in ipairs(list) do
    if not is_number(v) then return list end
  end
  return numbers(list)
end

return collate
