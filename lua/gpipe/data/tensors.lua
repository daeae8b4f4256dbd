-- gpipe/data/tensors.lua - rows of tensors as a dataset: row i of all of them is item i. A list of
-- tensors is several inputs, or several targets.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local dataset = require "gpipe.data.dataset"
local is_tensor = require "gpipe.tensor.is"
local several = require "gpipe.data.item.several"

local tensors = {}

local Source = { gap = 0 }
Source.__index = Source

local function rows_of(value, positions)
  if is_tensor(value) then return core.gather_rows(value, positions) end
  local rows = {}
  for i, tensor in ipairs(value) do rows[i] = core.gather_rows(tensor, positions) end
  return several.mark(rows)
end

function Source:gather(positions)
  return rows_of(self.x, positions), rows_of(self.y, positions)
end

-- Make items for the loader's threads, which load pairs; rows of more tensors are gathered on the
-- script's thread.
local function open_items(self) return core.items_rows(self.x, self.y) end

local function shape_of(value)
  if is_tensor(value) then
    return ("%s [%s]"):format(value.dtype, table.concat(value.shape, "x", 2))
  end
  local shapes = {}
  for i, tensor in ipairs(value) do shapes[i] = shape_of(tensor) end
  return table.concat(shapes, ", ")
end

function Source:describe() return shape_of(self.x) end

local function check_tensor(name, value)
  if not is_tensor(value) then
    errors.raise("data.tensors: %s is %s, expected a tensor, or a list of tensors", name,
      errors.show(value))
  end
  if value:dim() == 0 then
    errors.raise("data.tensors: %s is a scalar, expected a tensor of rows", name)
  end
  return value:contiguous()
end

local function check(name, value)
  if type(value) ~= "table" or getmetatable(value) ~= nil then return check_tensor(name, value) end
  if #value == 0 then
    errors.raise("data.tensors: %s is an empty list, expected a tensor, or a list of tensors", name)
  end
  local list = {}
  for i = 1, #value do list[i] = check_tensor(("%s[%d]"):format(name, i), value[i]) end
  return list
end

-- Count the rows, which all tensors must share. Errors: tensors with another number of rows.
local function count_rows(x, y)
  local rows = (is_tensor(x) and x or x[1]):size(1)
  for name, value in pairs { x = x, y = y } do
    for i, tensor in ipairs(is_tensor(value) and { value } or value) do
      if tensor:size(1) ~= rows or rows == 0 then
        errors.raise("data.tensors: x has %d rows and %s has %d, expected the same number, at "
          .. "least 1", rows, is_tensor(value) and name or ("%s[%d]"):format(name, i),
          tensor:size(1))
      end
    end
  end
  return rows
end

--- A dataset over tensors with the same number of rows. The tensors are kept, not copied. A list of
--- tensors is several inputs (or targets): a batch's x is then a list, as `pipe:step(x, y)` takes
--- it.
--- ```lua
--- local d = gp.data.tensors(gp.rand{100, 8}, gp.zeros({100}, {dtype = "i64"}))
--- for x, y in d:shuffle(1):batches(10) do print(x, y) end
--- local two = gp.data.tensors({gp.rand{100, 8}, gp.rand{100, 3}}, gp.zeros{100, 1})
--- for x, y in two:batches(50) do assert(x[1].shape[2] == 8 and x[2].shape[2] == 3) end
--- ```
---@param x gpipe.Tensor|gpipe.Tensor[] [N, ...] inputs
---@param y gpipe.Tensor|gpipe.Tensor[] [N, ...] targets
---@param classes? string[] the name of id 0, 1, ... of y
---@return gpipe.Dataset
function tensors.open(x, y, classes)
  x, y = check("x", x), check("y", y)
  local pair = is_tensor(x) and is_tensor(y)
  return dataset(setmetatable({ x = x, y = y, count = count_rows(x, y), classes = classes,
    open_items = pair and open_items or nil }, Source))
end

return tensors
