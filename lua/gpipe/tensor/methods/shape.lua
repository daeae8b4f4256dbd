-- lua/gpipe/tensor/methods/shape.lua - methods that change the shape of a tensor; unless their name
-- promises a copy they return views.

local beside = require "gpipe.tensor.methods.beside"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

--- Remove dimension d, which has size 1; without d remove all dimensions of size 1. A view.
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

--- Insert a dimension of size 1 at place d. A view. `gp.ones({2, 3}):unsqueeze(2).shape[2] == 1`
---@param d integer from 1 to one more than there are; negative from the end
---@return gpipe.Tensor
function Tensor:unsqueeze(d)
  local shape = self.shape
  table.insert(shape, check.dim("unsqueeze", d, #shape + 1), 1)
  return self:reshape(shape)
end

--- The matrix with rows and columns exchanged, as a view; vectors and scalars are returned as they
--- are. `gp.ones({2, 3}):t().shape[1] == 3` Errors: more than two dimensions.
---@return gpipe.Tensor
function Tensor:t()
  if self:dim() > 2 then
    errors.raise("t: the tensor has %d dimensions, expected at most 2 (transpose takes any)",
      self:dim())
  end
  if self:dim() < 2 then return self end
  return self:transpose(1, 2)
end

-- Copy the result of a method that promises a copy, if the result is the tensor itself.
local function copied(result, from) return result == from and from:clone() or result end

-- Check the counts against the shape; it is an error if the number of elements overflows.
local function check_size(shape, counts)
  local elements = 1
  for d, n in ipairs(counts) do
    local size = shape[d] * n
    if n ~= 0 and size // n ~= shape[d] or size ~= 0 and elements > math.maxinteger // size then
      errors.raise("tile: count %d is %s of %d, the result has more than 2^63 elements", d, n,
        shape[d])
    end
    elements = elements * size
  end
end

local function product(list, first, last)
  local n = 1
  for i = first, last do n = n * list[i] end
  return n
end

-- Repeat n times along dimension d. The first dimension stays separate, because it may hold the
-- rows of a mini-batch.
local function tiled(tensor, d, n)
  local shape = tensor.shape
  local front = d > 1 and { shape[1], product(shape, 2, d - 1) } or {}
  local inner = product(shape, d, #shape)
  local function with(count)
    local list = table.move(front, 1, #front, 1, {})
    list[#list + 1], list[#list + 2] = count, inner
    return list
  end
  shape[d] = shape[d] * n
  return tensor:reshape(with(1)):expand(with(n)):reshape(shape)
end

--- Repeat counts[d] times along each dimension; if there are more counts than dimensions,
--- dimensions are added in front. A copy. `gp.tensor({1, 2}):tile({2})[3] == 1`
---@param counts integer[]|integer
---@param ... integer
---@return gpipe.Tensor
function Tensor:tile(counts, ...)
  if type(counts) ~= "table" then counts = { counts, ... } end
  check.no_names("tile", counts)
  local shape, all = self.shape, {}
  while #shape < #counts do table.insert(shape, 1, 1) end
  for d = 1, #shape do
    local i = d - (#shape - #counts)
    all[d] = i < 1 and 1 or check.count(("tile: count %d"):format(i), counts[i], 0)
  end
  check_size(shape, all)
  local result, moved = self:reshape(shape), false
  for d, n in ipairs(all) do
    if n == 0 and shape[d] > 0 then result = result:narrow(d, 1, 0) end
    if n > 1 then result, moved = tiled(result, d, n), true end
  end
  return moved and result or result:clone()
end

local function parts(tensor, d, sizes)
  local list, first = {}, 1
  for i, size in ipairs(sizes) do
    list[i] = tensor:narrow(d, first, size)
    first = first + size
  end
  return list
end

--- A list of views with size positions of dimension d each, the last one with the rest; or with as
--- many as a list says. `#gp.arange(1, 5):split(2) == 3`
---@param size integer|integer[] positions in a part
---@param d? integer 1 by default
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

--- A list of at most n views of dimension d, of equal size except the last.
--- `#gp.arange(1, 5):chunk(2) == 2`
---@param n integer
---@param d? integer 1 by default
---@return gpipe.Tensor[]
function Tensor:chunk(n, d)
  n = check.count("chunk: n", n, 1)
  local dim = check.dim("chunk", d or 1, self:dim())
  return self:split(math.max(1, math.ceil(self.shape[dim] / n)), dim)
end

--- Windows of size positions of dimension d, every step positions; they are a new last dimension. A
--- copy. `gp.arange(1, 4):unfold(1, 2, 1).shape[1] == 3`
---@param d integer
---@param size integer
---@param step? integer 1 by default
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

--- Reverse the order along these dimensions. A copy. `gp.arange(1, 3):flip(1)[1] == 3`
---@param d integer|integer[]
---@return gpipe.Tensor
function Tensor:flip(d)
  local shape, result = self.shape, self
  for dim in pairs((check.dims("flip", d, shape))) do
    if shape[dim] > 1 then
      local back = core.arange(shape[dim], 1, -1, "i64")
      result = result:index_select(dim, beside(result, back))
    end
  end
  return copied(result, self)
end

--- Join dimensions first .. last into one; by default all of them. A view where possible.
--- `gp.ones({2, 3, 4}):flatten(2).shape[2] == 12`
---@param first? integer 1 by default
---@param last? integer -1 by default
---@return gpipe.Tensor
function Tensor:flatten(first, last)
  local shape, size, flat = self.shape, 1, {}
  if #shape == 0 and first == nil and last == nil then return self:reshape { 1 } end
  first = check.dim("flatten: first", first or 1, #shape)
  last = check.dim("flatten: last", last or -1, #shape)
  if last < first then
    errors.raise("flatten: last is dimension %d, expected at least %d, the first", last, first)
  end
  for d = first, last do size = size * shape[d] end
  table.move(shape, 1, first - 1, 1, flat)
  flat[first] = size
  return self:reshape(table.move(shape, last + 1, #shape, first + 1, flat))
end

local expand = core.methods.expand

--- Expand to a larger shape: dimensions of size 1 and new ones in front are repeated; -1 keeps a
--- size. A view. `gp.ones({2, 1}):expand({3, 2, -1}).shape[1] == 3`
--- Errors: other sizes that differ.
---@param shape integer[]
---@param ... integer
---@return gpipe.Tensor
function Tensor:expand(shape, ...)
  if type(shape) ~= "table" then return expand(self, shape, ...) end
  local sizes, wanted
  for i, size in ipairs(shape) do
    sizes = size == -1 and (sizes or self.shape) or sizes
    local own = size == -1 and sizes[i - #shape + #sizes]
    if own then
      wanted = wanted or table.move(shape, 1, #shape, 1, {})
      wanted[i] = own
    end
  end
  return expand(self, wanted or shape)
end

--- Expand to the shape of another tensor. A view.
--- `gp.ones({1, 2}):expand_as(gp.zeros {3, 2}).shape[1] == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:expand_as(other)
  if not is_tensor(other) then
    errors.raise("expand_as: the argument is %s, expected a tensor", errors.show(other))
  end
  return self:expand(other.shape)
end

local function roll_one(tensor, shift, d)
  local size = tensor:size(d)
  local back = size == 0 and 0 or shift % size
  if back == 0 then return tensor end
  return core.concat({ tensor:narrow(d, size - back + 1, back), tensor:narrow(d, 1, size - back) },
    d)
end

--- Move the elements by shift positions along dimension d; elements that leave at one end enter at
--- the other. Lists give a shift for each of several dimensions; without d the elements move in
--- row-major order. A copy. `gp.tensor({1, 2, 3}):roll(1)[1] == 3`
---@param shift integer|integer[] negative: towards the front
---@param d? integer|integer[]
---@return gpipe.Tensor
function Tensor:roll(shift, d)
  if d == nil then
    local flat = self:reshape { self:numel() }
    local moved = roll_one(flat, check.count("roll: shift", shift, math.mininteger), 1)
    return copied(moved, flat):reshape(self.shape)
  end
  local shifts = type(shift) == "table" and shift or { shift }
  local dims = type(d) == "table" and d or { d }
  if #shifts ~= #dims then
    errors.raise("roll: there are %d shifts and %d dimensions, expected as many", #shifts, #dims)
  end
  local result = self
  for i, by in ipairs(shifts) do
    result = roll_one(result, check.count("roll: shift", by, math.mininteger),
      check.dim("roll", dims[i], self:dim()))
  end
  return copied(result, self)
end

-- Repeat each position as often as its count says.
local function repeated(counts, size)
  if #counts ~= size then
    errors.raise("repeat_interleave: there are %d counts, expected %d, one for each position",
      #counts, size)
  end
  local positions = {}
  for i, n in ipairs(counts) do
    for _ = 1, check.count(("repeat_interleave: count %d"):format(i), n, 0) do
      positions[#positions + 1] = i
    end
  end
  return positions
end

--- Repeat each position of dimension d n times in a row, or as often as a list says for it; without
--- d the elements in row-major order. A copy. `gp.tensor({5, 6}):repeat_interleave(2)[2] == 5`,
--- `gp.tensor({5, 6}):repeat_interleave({1, 2})[3] == 6`
---@param n integer|integer[]
---@param d? integer
---@return gpipe.Tensor
function Tensor:repeat_interleave(n, d)
  if d == nil then return self:reshape { self:numel() }:repeat_interleave(n, 1) end
  d = check.dim("repeat_interleave", d, self:dim())
  if type(n) == "table" then
    local positions = repeated(n, self:size(d))
    if #positions == 0 then return self:narrow(d, 1, 0) end
    return self:index_select(d, positions)
  end
  n = check.count("repeat_interleave: n", n, 0)
  local wide = self.shape
  if n == 0 then return self:narrow(d, 1, 0) end
  table.insert(wide, d + 1, n)
  return self:unsqueeze(d + 1):expand(wide):flatten(d, d + 1)
end

return Tensor
