-- lua/gpipe/tensor/methods/pieces.lua - methods that rotate and cut tensors, with torch's names.

local check = require "gpipe.tensor.methods.check"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local options = require "gpipe.options"

local Tensor = {}

local MOST_PARTS = 1 << 20 -- parts of a tensor that is cut: more are a mistake

local common = create.rules.common
local MADE = { -- without defaults: missing options come from the tensor
  dtype = { type = "string", check = common.dtype.check, choices = common.dtype.choices },
  device = { type = "string", check = common.device.check },
}

-- ---- like this one ---------------------------------------------------------------------------

local function fresh(who, tensor, opts)
  local o = {}
  for name, value in pairs(options.check(who, opts, MADE)) do o[name] = value end
  o.dtype = o.dtype or tensor.dtype
  if tensor.device ~= "traced" then o.device = o.device or tensor.device end
  return o
end

--- Zeros of a shape, with dtype and device of this tensor. `gp.ones({2}):new_zeros({3})[3] == 0`
---@param shape integer[]
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_zeros(shape, opts)
  return create.zeros(check.shape("new_zeros", shape), fresh("new_zeros", self, opts))
end

--- Ones of a shape, with dtype and device of this tensor. `gp.zeros({2}):new_ones({3})[3] == 1`
---@param shape integer[]
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_ones(shape, opts)
  return create.ones(check.shape("new_ones", shape), fresh("new_ones", self, opts))
end

--- A shape filled with a value, with dtype and device of this tensor.
--- `gp.ones({2}):new_full({3}, 7)[3] == 7`
---@param shape integer[]
---@param value number|boolean
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_full(shape, value, opts)
  check.shape("new_full", shape)
  return create.full(shape, value, fresh("new_full", self, opts))
end

--- The numbers of a table, with dtype and device of this tensor.
--- `gp.ones({2}):new_tensor({3})[1] == 3`
---@param values number|table
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function Tensor:new_tensor(values, opts)
  local kind = type(values)
  if kind ~= "table" and kind ~= "number" and kind ~= "boolean" then
    errors.raise("new_tensor: the values are %s, expected a number or a table", errors.show(values))
  end
  if kind == "table" then check.no_names("new_tensor", values) end
  return create.tensor(values, fresh("new_tensor", self, opts))
end

--- Reshape to the shape of the other. `gp.ones({6}):reshape_as(gp.zeros {2, 3}).shape[2] == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:reshape_as(other) return self:reshape(check.tensor("reshape_as", other).shape) end

--- View in the shape of the other, without a copy.
--- `gp.ones({6}):view_as(gp.zeros {2, 3}).shape[2] == 3`
---@param other gpipe.Tensor
---@return gpipe.Tensor
function Tensor:view_as(other) return self:view(check.tensor("view_as", other).shape) end

-- ---- turned ----------------------------------------------------------------------------------

--- The rows in reverse order. `gp.tensor({1, 2}):flipud()[1] == 2`
---@return gpipe.Tensor
function Tensor:flipud() return self:flip(1) end

--- The columns in reverse order. `gp.tensor({{1, 2}}):fliplr()[1][1] == 2`
---@return gpipe.Tensor
function Tensor:fliplr() return self:flip(2) end

--- Rotate by 90 degrees k times, from the first of two dimensions towards the second.
--- `gp.tensor({{1, 2}, {3, 4}}):rot90()[1][1] == 2`
---@param k? integer 1
---@param dims? integer[] {1, 2}
---@return gpipe.Tensor
function Tensor:rot90(k, dims)
  k, dims = math.tointeger(k or 1), dims or { 1, 2 }
  if not k then errors.raise "rot90: k is no integer, expected one" end
  if type(dims) ~= "table" or #dims ~= 2 then
    errors.raise("rot90: dims are %s, expected two, {1, 2}", errors.show(dims))
  end
  local a, b = check.dim("rot90", dims[1], self:dim()), check.dim("rot90", dims[2], self:dim())
  if a == b then errors.raise("rot90: dimension %d is given twice", a) end
  k = k % 4
  if k == 0 then return self:clone() end
  if k == 2 then return self:flip(a):flip(b) end
  if k == 1 then return self:flip(b):transpose(a, b) end
  return self:transpose(a, b):flip(b)
end

--- All elements in one dimension. `gp.ones({2, 3}):ravel().shape[1] == 6`
---@return gpipe.Tensor
function Tensor:ravel() return self:reshape(-1) end

-- ---- cut -------------------------------------------------------------------------------------

local function cut(who, tensor, parts, d)
  d = check.dim(who, d, tensor:dim())
  local size, ends = tensor.shape[d], {}
  if type(parts) == "table" then
    check.no_names(who, parts)
    for i, last in ipairs(parts) do
      ends[i] = math.max(0, math.min(check.count(who .. ": a position", last, 0), size))
    end
  else
    local n = check.count(who .. ": parts", parts, 1)
    if n > MOST_PARTS then
      errors.raise("%s: parts is %d, expected at most %d", who, n, MOST_PARTS)
    end
    for i = 1, n - 1 do ends[i] = size // n * i + math.min(i, size % n) end
  end
  local list, from = {}, 0
  ends[#ends + 1] = size
  for i, last in ipairs(ends) do
    list[i] = tensor:narrow(d, math.min(from + 1, math.max(size, 1)), math.max(last - from, 0))
    from = last
  end
  return list
end

--- Split into n parts of almost equal size (the first ones have one more), or after each position
--- in a list. `#gp.arange(1, 7):tensor_split(3) == 3`
---@param parts integer|integer[]
---@param d? integer 1
---@return gpipe.Tensor[]
function Tensor:tensor_split(parts, d) return cut("tensor_split", self, parts, d or 1) end
--- tensor_split along the second dimension, for vectors along the only one.
--- `#gp.ones({2, 4}):hsplit(2) == 2`
---@param parts integer|integer[]
---@return gpipe.Tensor[]
function Tensor:hsplit(parts) return cut("hsplit", self, parts, self:dim() == 1 and 1 or 2) end

--- tensor_split along the first dimension. `#gp.ones({4, 2}):vsplit(2) == 2`
---@param parts integer|integer[]
---@return gpipe.Tensor[]
function Tensor:vsplit(parts) return cut("vsplit", self, parts, 1) end

--- The smallest and the largest value of all elements, or along a dimension.
--- `gp.tensor({1, 5, 3}):aminmax():item() == 1`
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor least
---@return gpipe.Tensor greatest
function Tensor:aminmax(d, keep)
  check.dims("aminmax", d, self.shape)
  return self:amin(d, keep), self:amax(d, keep)
end

local SPREAD = {
  correction = { type = "number", default = 1 }, keep = { type = "boolean", default = false },
}

--- std and mean at once. `gp.tensor({3, 3}):std_mean():item() == 0`
---@param d? integer|integer[]
---@param opts? {correction?: number, keep?: boolean}
---@return gpipe.Tensor std
---@return gpipe.Tensor mean
function Tensor:std_mean(d, opts)
  check.dims("std_mean", d, self.shape)
  local o = options.check("std_mean", opts, SPREAD)
  return self:std(d, o), self:mean(d, o.keep)
end

--- var and mean at once. `gp.tensor({1, 3}):var_mean():item() == 2`
---@param d? integer|integer[]
---@param opts? {correction?: number, keep?: boolean}
---@return gpipe.Tensor var
---@return gpipe.Tensor mean
function Tensor:var_mean(d, opts)
  check.dims("var_mean", d, self.shape)
  local o = options.check("var_mean", opts, SPREAD)
  return self:var(d, o), self:mean(d, o.keep)
end

return Tensor
