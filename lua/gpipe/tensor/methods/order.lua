-- lua/gpipe/tensor/methods/order.lua - methods along one dimension: elements by position, running
-- sums and products, sorting.
--
-- Positions count from 1, like those that max and sort return. The ops need positions with the
-- tensor's sizes in all other dimensions; PyTorch allows fewer, so the tensor is cut here.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

local INTEGERS = { i32 = true, u8 = true, bool = true }

-- The dtype in which sums and products of integers are computed, as in sum.
local function widened(tensor) return INTEGERS[tensor.dtype] and tensor:to "i64" or tensor end

local function check_positions(who, tensor, positions)
  if not is_tensor(positions) or positions.dtype ~= "i64" then
    errors.raise("%s: the positions are %s, expected an i64 tensor", who,
      is_tensor(positions) and positions.dtype or errors.show(positions))
  end
  if positions:dim() ~= tensor:dim() then
    errors.raise("%s: the positions have %d dimensions, expected %d, as the tensor", who,
      positions:dim(), tensor:dim())
  end
end

-- Put the method's name before errors of its op; in a trace the layer's name is there instead.
local function named(who) return not core.tracing() and core.enter(who, "") or nil end

-- Cut each dimension except `dim` to its first positions, as many as `shape` says.
local function cut(who, tensor, shape, dim)
  local have = tensor.shape
  for d, size in ipairs(shape) do
    if d ~= dim and size > have[d] then
      errors.raise("%s: the positions have size %d in dimension %d, expected at most %d", who, size,
        d, have[d])
    end
    if d ~= dim and size < have[d] then tensor = tensor:narrow(d, 1, size) end
  end
  return tensor
end

--- The elements whose positions along dimension d are given: y[i][j] = t[positions[i][j]][j] for
--- d = 1, y[i][j] = t[i][positions[i][j]] for d = 2. The result has the shape of the positions.
--- With gradient. `gp.tensor({5, 6, 7}):gather(1, gp.tensor({3, 3}, {dtype = "i64"}))[2] == 7`
---
--- Errors: a position outside of 1 .. size of the dimension; more positions in another dimension
--- than the tensor has.
---@param d integer
---@param positions gpipe.Tensor i64, of as many dimensions as the tensor
---@return gpipe.Tensor
function Tensor:gather(d, positions)
  d = check.dim("gather", d, self:dim())
  check_positions("gather", self, positions)
  local _scope <close> = named "gather"
  return core.gather(cut("gather", self, positions.shape, d), positions, d)
end

--- Add every element of the source at its position along dimension d: for d = 1,
--- y[positions[i][j]][j] += source[i][j]. Elements for one position are added in their order, on
--- every device and with any number of threads. With gradient.
--- `gp.zeros({3}):scatter_add(1, gp.tensor({1, 3, 3}, {dtype = "i64"}), gp.ones({3}))[3] == 2`
---
--- Errors: a position outside of 1 .. size of the dimension; positions and source that do not fit
--- the tensor's other dimensions.
---@param d integer
---@param positions gpipe.Tensor i64, at most as large as the source
---@param source gpipe.Tensor
---@return gpipe.Tensor
function Tensor:scatter_add(d, positions, source)
  d = check.dim("scatter_add", d, self:dim())
  check_positions("scatter_add", self, positions)
  if not is_tensor(source) or source.dtype ~= self.dtype or source:dim() ~= self:dim() then
    errors.raise("scatter_add: the source is %s, expected a tensor of %s with %d dimensions",
      is_tensor(source) and ("%s with %d dimensions"):format(source.dtype, source:dim())
        or errors.show(source), self.dtype, self:dim())
  end
  source = cut("scatter_add", source, positions.shape)
  local shape, sizes = self.shape, positions.shape
  cut("scatter_add", self, sizes, d)
  local _scope <close> = named "scatter_add"
  local sums = core.scatter_sum(source, positions, d, shape[d])
  for i, size in ipairs(shape) do
    if i ~= d and sizes[i] < size then sums = core.pad(sums, i, 0, size) end
  end
  return self + sums
end

--- The sum of the elements up to each position along a dimension; integers are added as i64. With
--- gradient. `gp.tensor({1, 2, 3}):cumsum(1)[3] == 6`
---@param d integer
---@return gpipe.Tensor
function Tensor:cumsum(d)
  return core.cumsum(widened(self), check.dim("cumsum", d, self:dim()))
end

--- The product of all elements, or along a dimension; integers are multiplied as i64. The gradient
--- is correct where elements are zero. `gp.tensor({2, 3, 4}):prod():item() == 24`
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:prod(d, keep)
  local x = widened(self)
  if d == nil then return core.prod(x:reshape { x:numel() }, 1) end
  return core.prod(x, check.dim("prod", d, x:dim()), keep)
end

-- Sort along a dimension; a scalar is sorted as a line of one element.
local function sorted(who, tensor, d, descending)
  if tensor:dim() == 0 and d == nil then
    local values, positions = core.sort(tensor:reshape { 1 }, 1, descending)
    return values:reshape {}, positions:reshape {}
  end
  return core.sort(tensor, check.dim(who, d or -1, tensor:dim()), descending)
end

local SORT = {
  descending = { type = "boolean", default = false }, stable = { type = "boolean", default = true },
}

--- The sorted elements along a dimension, by default the last, and their positions (i64, from 1).
--- Equal elements keep their order; NaN counts as larger than all numbers. The values have a
--- gradient. `gp.tensor({3, 1, 2}):sort()[1] == 1`,
--- `gp.tensor({3, 1, 2}):sort(1, {descending = true})[1] == 3`
---@param d? integer
---@param opts? {descending?: boolean, stable?: boolean} stable: it always is
---@return gpipe.Tensor values
---@return gpipe.Tensor positions
function Tensor:sort(d, opts)
  local o = options.check("sort", opts, SORT)
  return sorted("sort", self, d, o.descending)
end

--- The positions that sort returns. `gp.tensor({3, 1, 2}):argsort()[1] == 2`
---@param d? integer
---@param opts? {descending?: boolean, stable?: boolean}
---@return gpipe.Tensor
function Tensor:argsort(d, opts)
  local o = options.check("argsort", opts, SORT)
  local _, positions = sorted("argsort", self, d, o.descending)
  return positions
end

--- The k largest elements along a dimension, by default the last, and their positions. The largest
--- comes first, of equals the first. The values have a gradient.
--- `gp.tensor({3, 1, 2}):topk(2)[2] == 2`,
--- `gp.tensor({3, 1, 2}):topk(1, 1, {largest = false})[1] == 1`
---
--- Errors: k above the size of the dimension.
---@param k integer
---@param d? integer
---@param opts? {largest?: boolean} largest: true; false returns the k smallest, the smallest first
---@return gpipe.Tensor values
---@return gpipe.Tensor positions
function Tensor:topk(k, d, opts)
  local o = options.check("topk", opts, {
    largest = { type = "boolean", default = true }, sorted = { type = "boolean", default = true },
  })
  d = check.dim("topk", d or -1, self:dim())
  k = check.count("topk: k", k, 0)
  if k > self.shape[d] then
    errors.raise("topk: k is %d, expected at most %d, the size of dimension %d", k, self.shape[d],
      d)
  end
  local values, positions = core.sort(self, d, o.largest)
  return values:narrow(d, 1, k), positions:narrow(d, 1, k)
end

--- The middle element, or the lower of two, of all elements or along a dimension, and its position.
--- It is NaN if an element is. `gp.tensor({3, 1, 2}):median():item() == 2`
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor values
---@return gpipe.Tensor? positions
function Tensor:median(d, keep)
  local x = d == nil and self:reshape { self:numel() } or self
  local dim = check.dim("median", d or 1, x:dim())
  local n = x.shape[dim]
  if n == 0 then errors.raise("median: dimension %d is empty and has no middle", dim) end
  local values, positions = core.sort(x, dim)
  values, positions = values:narrow(dim, (n + 1) // 2, 1), positions:narrow(dim, (n + 1) // 2, 1)
  if x.dtype:find "^[fb]%d?f?%d" then
    local last = core.sort(x, dim):narrow(dim, n, 1)
    values = core.where(last:isnan(), last, values)
  end
  if not keep then values, positions = values:squeeze(dim), positions:squeeze(dim) end
  if d == nil then return values end
  return values, positions
end

return Tensor
