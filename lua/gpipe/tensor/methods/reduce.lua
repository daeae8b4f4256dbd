-- lua/gpipe/tensor/methods/reduce.lua - methods that reduce many elements to few, composed of sum,
-- mean, max and elementwise ops.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"
local root = require "gpipe.tensor.methods.root"

local Tensor = {}

local function floats_only(who, tensor)
  if tensor.dtype:find "^[fb]%d?f?%d" then return end
  errors.raise('%s: the tensor is %s, expected a float one (convert with to("f32"))', who,
    tensor.dtype)
end

local SMALL = { u8 = true, bool = true }
local WHOLE = { i64 = true, i32 = true }

-- Reverse the order, so that the smallest element becomes the largest: -1 - x for integers, which
-- cannot overflow, else -x.
local function turned(tensor)
  if WHOLE[tensor.dtype] then return -1 - tensor end
  return -tensor
end

--- The smallest values along a dimension, and their positions (i64; the first of equals). Without a
--- dimension only the smallest of all is returned, for a list of dimensions only the values.
--- `gp.tensor({4, 1, 2}):min():item() == 1`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor values
---@return gpipe.Tensor? positions
function Tensor:min(dim, keep)
  check.dims("min", dim, self.shape)
  if SMALL[self.dtype] then
    local values, positions = self:to("i32"):min(dim, keep)
    return values:to(self.dtype), positions
  end
  local values, positions = turned(self):max(dim, keep)
  return turned(values), positions
end

--- Positions of the smallest values along a dimension, or among all elements (i64, from 1).
--- `gp.tensor({4, 1, 2}):argmin():item() == 2`
---@param dim? integer
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:argmin(dim, keep)
  if dim ~= nil then check.dim("argmin", dim, self:dim()) end
  return turned(SMALL[self.dtype] and self:to("i32") or self):argmax(dim, keep)
end

--- The classes with the largest scores along the last dimension, as ids: they count from 0, while
--- positions (argmax) count from 1. `gp.tensor({{1, 5, 2}}):classes()[1] == 1`
---@return gpipe.Tensor i64 [..]
function Tensor:classes()
  floats_only("classes", self)
  if self:dim() == 0 then errors.raise "classes: the tensor is a scalar, expected scores" end
  return self:argmax(-1) - 1
end

local function variance(who, self, dim, opts)
  local o = options.check(who, opts, {
    correction = { type = "number", default = 1 }, keep = { type = "boolean", default = false },
  })
  floats_only(who, self)
  local _, n = check.dims(who, dim, self.shape)
  local away = self - self:mean(dim, true)
  return (away * away):sum(dim, o.keep) / math.max(n - o.correction, 0)
end

--- The variance over a dimension, a list of them, or all: the sum of squared distances from the
--- mean, divided by n - correction. `gp.tensor({1, 3}):var():item() == 2`
---@param dim? integer|integer[]
---@param opts? {correction?: number, keep?: boolean} correction: 1
---@return gpipe.Tensor
function Tensor:var(dim, opts) return variance("var", self, dim, opts) end

--- Standard deviation, the root of var. `gp.tensor({1, 3}):std(1, {correction = 0}):item() == 1`
---@param dim? integer|integer[]
---@param opts? {correction?: number, keep?: boolean}
---@return gpipe.Tensor
function Tensor:std(dim, opts) return root.square(variance("std", self, dim, opts)) end

--- The p-norm over a dimension, a list of them, or all: p is any number; 0 counts the elements that
--- are not 0, math.huge is the largest absolute value and -math.huge the smallest.
--- `gp.tensor({3, 4}):norm():item() == 5` The gradient of a norm of 0 is 0.
---@param p? number 2 by default
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:norm(p, dim, keep)
  p = p == nil and 2 or p
  if not math.type(p) or p ~= p then
    errors.raise("norm: p is %s, expected a number", errors.show(p))
  end
  floats_only("norm", self)
  return root.norm(self, p, dim, keep)
end

--- log(sum of exp(x)) over a dimension, a list of them, or all, without overflow or underflow.
--- `gp.zeros({1}):logsumexp():item() == 0`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:logsumexp(dim, keep)
  floats_only("logsumexp", self)
  local shape = self.shape
  local meant = check.dims("logsumexp", dim, shape)
  local list, kept = {}, {}
  for d, size in ipairs(shape) do
    if meant[d] then list[#list + 1] = d end
    kept[d] = meant[d] and 1 or size
  end
  if self:numel() == 0 then return self:exp():sum(list, keep):log() end
  local top = self:max(list, true)
  local huge = core.where(top:eq(math.huge), 1, core.where(top:eq(-math.huge), 1, 0))
  top = core.where(huge:eq(1), 0, top)
  local sum = (self - top):exp():sum(list, true):log() + top
  if keep then return sum end
  for d = #list, 1, -1 do table.remove(kept, list[d]) end
  return sum:reshape(kept)
end

--- Whether any element (along dimensions) is not zero. `gp.tensor({0, 2}):any():item()`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor bool
function Tensor:any(dim, keep)
  check.dims("any", dim, self.shape)
  return self:ne(0):sum(dim, keep):gt(0)
end

--- Whether all elements (along dimensions) are not zero. `not gp.tensor({0, 2}):all():item()`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor bool
function Tensor:all(dim, keep)
  check.dims("all", dim, self.shape)
  return self:eq(0):sum(dim, keep):eq(0)
end

--- How many elements (along dimensions) are not zero, i64.
--- `gp.tensor({0, 2}):count_nonzero():item() == 1`
---@param dim? integer|integer[]
---@return gpipe.Tensor
function Tensor:count_nonzero(dim)
  check.dims("count_nonzero", dim, self.shape)
  return self:ne(0):sum(dim)
end

--- Whether every element is close to the other's: |a - b| <= atol + rtol |b|. Infinities are close
--- if they are equal, NaN only with equal_nan. Both have one dtype; shapes broadcast.
--- `gp.tensor({1, 2}):allclose(gp.tensor {1, 2 + 1e-6})` Errors: while tracing.
---@param other gpipe.Tensor
---@param opts? {rtol?: number, atol?: number, equal_nan?: boolean} 1e-5, 1e-8, false
---@return boolean
function Tensor:allclose(other, opts)
  options.check("allclose", opts, {
    rtol = { type = "number" }, atol = { type = "number" }, equal_nan = { type = "boolean" },
  })
  if not is_tensor(other) then
    errors.raise("allclose: the other is %s, expected a tensor", errors.show(other))
  end
  return self:isclose(other, opts):all():item()
end

return Tensor
