-- gpipe/data/tensors.lua - a pair of tensors as a dataset: row i of both is item i.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local dataset = require "gpipe.data.dataset"

local tensors = {}

local Source = { gap = 0 }
Source.__index = Source

function Source:gather(positions)
  return core.gather_rows(self.x, positions), core.gather_rows(self.y, positions)
end

function Source:open_items() return core.items_rows(self.x, self.y) end

function Source:describe()
  return ("%s [%s]"):format(self.x.dtype, table.concat(self.x.shape, "x", 2))
end

local function check(name, value)
  if getmetatable(value) ~= "gpipe.Tensor" then
    errors.raise("data.tensors: %s is %s, expected a tensor", name, errors.show(value))
  end
  if value:dim() == 0 then
    errors.raise("data.tensors: %s is a scalar, expected a tensor of rows", name)
  end
  return value:contiguous()
end

--- Two tensors with the same number of rows as a dataset. They are kept, not copied.
--- ```lua
--- local d = gp.data.tensors(gp.rand{100, 8}, gp.zeros({100}, {dtype = "i64"}))
--- for x, y in d:shuffle(1):batches(10) do print(x, y) end
--- ```
---@param x gpipe.Tensor [N, ...] inputs
---@param y gpipe.Tensor [N, ...] targets
---@param classes? string[] the name of id 0, 1, ... of y
---@return gpipe.Dataset
function tensors.open(x, y, classes)
  x, y = check("x", x), check("y", y)
  local rows, targets = x:size(1), y:size(1)
  if rows ~= targets or rows == 0 then
    errors.raise("data.tensors: x has %d rows and y has %d, expected the same number, at least 1",
      rows, targets)
  end
  return dataset(setmetatable({ x = x, y = y, count = rows, classes = classes }, Source))
end

return tensors
