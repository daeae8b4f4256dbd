-- lua/gpipe/tensor/methods/shape.lua - methods that change the shape of a tensor: views where the
-- name promises none.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local check = require "gpipe.tensor.methods.check"

local Tensor = {}

--- Without dimension d, which has size 1; without d: without all that have. A view.
--- `#gp.ones({1, 3, 1}):squeeze().shape == 1`
---@param d? integer
---@return gpipe.Tensor
function Tensor:squeeze(d)
  local shape, kept = self.shape, {}
  local only = d ~= nil and check.dim("squeeze", d, #shape)
  if only and shape[only] ~= 1 then
    errors.raise("squeeze: dimension %d has size %d, expected 1", only, shape[only])
  end
  for i, size in ipairs(shape) do
    if only and i ~= only or not only and size ~= 1 then kept[#kept + 1] = size end
  end
  return self:reshape(kept)
end

--- With one more dimension of size 1, in place d. A view.
--- `gp.ones({2, 3}):unsqueeze(2).shape[2] == 1`
---@param d integer from 1 to one more than there are; negative from the end
---@return gpipe.Tensor
function Tensor:unsqueeze(d)
  local shape = self.shape
  table.insert(shape, check.dim("unsqueeze", d, #shape + 1), 1)
  return self:reshape(shape)
end

--- The matrix with rows and columns exchanged. A view. `gp.ones({2, 3}):t().shape[1] == 3`
--- Errors: other than two dimensions.
---@return gpipe.Tensor
function Tensor:t()
  if self:dim() ~= 2 then
    errors.raise("t: the tensor has %d dimensions, expected 2 (transpose exchanges any two)",
      self:dim())
  end
  return self:transpose(1, 2)
end

--- Repeated counts[d] times along each dimension; more counts than dimensions add some in front.
--- `gp.tensor({1, 2}):tile({2})[3] == 1`
---@param counts integer[]|integer
---@param ... integer
---@return gpipe.Tensor
function Tensor:tile(counts, ...)
  if type(counts) ~= "table" then counts = { counts, ... } end
  check.no_names("tile", counts)
  local result = self
  while result:dim() < #counts do result = result:unsqueeze(1) end
  local before = result:dim() - #counts
  for d, n in ipairs(counts) do
    local copies = {}
    for i = 1, check.count(("tile: count %d"):format(d), n, 1) do copies[i] = result end
    if #copies > 1 then result = core.concat(copies, before + d) end
  end
  return result
end

local function parts(tensor, d, sizes)
  local list, first = {}, 1
  for i, size in ipairs(sizes) do
    list[i] = tensor:narrow(d, first, size)
    first = first + size
  end
  return list
end

--- A list of views: `size` positions of dimension d each, the last one what is left; or as many as
--- a list says. `#gp.arange(1, 5):split(2) == 3`
---@param size integer|integer[]
---@param d? integer 1 unless said
---@return gpipe.Tensor[]
function Tensor:split(size, d)
  local shape = self.shape
  d = check.dim("split", d or 1, #shape)
  if type(size) == "table" then
    local total = 0
    for i, n in ipairs(size) do total = total + check.count(("split: size %d"):format(i), n, 0) end
    if total ~= shape[d] then
      errors.raise("split: the sizes add up to %d, expected %d, dimension %d", total, shape[d], d)
    end
    return parts(self, d, size)
  end
  size = check.count("split: size", size, 1)
  local sizes = {}
  for first = 0, shape[d] - 1, size do sizes[#sizes + 1] = math.min(size, shape[d] - first) end
  return parts(self, d, sizes)
end

--- A list of at most n views of dimension d, of one size but for the last.
--- `#gp.arange(1, 5):chunk(2) == 2`
---@param n integer
---@param d? integer 1 unless said
---@return gpipe.Tensor[]
function Tensor:chunk(n, d)
  n = check.count("chunk: n", n, 1)
  local dim = check.dim("chunk", d or 1, self:dim())
  return self:split(math.max(1, math.ceil(self.shape[dim] / n)), dim)
end

--- Windows of `size` positions of dimension d, every `step`; they come as a new last dimension. A
--- copy. `gp.arange(1, 4):unfold(1, 2, 1).shape[1] == 3`
---@param d integer
---@param size integer
---@param step? integer 1 unless said
---@return gpipe.Tensor
function Tensor:unfold(d, size, step)
  d = check.dim("unfold", d, self:dim())
  size, step = check.count("unfold: size", size, 1), check.count("unfold: step", step or 1, 1)
  local windows = {}
  for first = 1, self.shape[d] - size + 1, step do
    windows[#windows + 1] = self:narrow(d, first, size):unsqueeze(d)
  end
  if #windows == 0 then
    errors.raise("unfold: dimension %d has size %d, expected at least %d", d, self.shape[d], size)
  end
  local order = {}
  for i = 1, self:dim() + 1 do order[i] = i <= d and i or i + 1 end
  order[#order] = d + 1
  return core.concat(windows, d):permute(order)
end

--- With the positions of the dimensions in reverse order. A copy. `gp.arange(1, 3):flip(1)[1] == 3`
---@param d integer|integer[]
---@return gpipe.Tensor
function Tensor:flip(d)
  local shape, result = self.shape, self
  for dim in pairs((check.dims("flip", d, shape))) do
    result = result:index_select(dim, core.arange(shape[dim], 1, -1, "i64"))
  end
  return result
end

return Tensor
