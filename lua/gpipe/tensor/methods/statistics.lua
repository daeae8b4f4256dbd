-- lua/gpipe/tensor/methods/statistics.lua - methods that describe data: membership, most frequent
-- values, quantiles without NaN, covariances.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

-- ---- which -----------------------------------------------------------------------------------

--- Whether each element is one of the others. `gp.tensor({1, 5}):isin({5, 6})[2] == true`
---@param others gpipe.Tensor|number[]
---@return gpipe.Tensor bool
function Tensor:isin(others)
  if type(others) == "table" then
    check.no_names("isin", others)
    others = beside(self, core.tensor(#others > 0 and others or { {} }, self.dtype))
  end
  if not is_tensor(others) then
    errors.raise("isin: the others are %s, expected a tensor or a list", errors.show(others))
  end
  local flat = others:reshape(-1):to(self.dtype)
  if flat:numel() == 0 then return self:ne(self):logical_and(self:eq(self)) end
  return self:unsqueeze(-1):eq(flat):any(-1)
end

--- The number of the interval between boundaries that each element is in: 1 up to the first
--- boundary. With right a boundary belongs to the interval after it.
--- `gp.tensor({0, 3}):bucketize(gp.tensor {1, 3, 5})[2] == 2`
---@param boundaries gpipe.Tensor of one dimension, ascending
---@param opts? {right?: boolean} false
---@return gpipe.Tensor i64 from 1
function Tensor:bucketize(boundaries, opts)
  check.tensor("bucketize", boundaries, "boundaries")
  local o = options.check("bucketize", opts, { right = { type = "boolean", default = false } })
  return require("gpipe.tensor.indices").searchsorted(boundaries, self, o)
end

--- The positions of the elements that are not zero, one row each: nonzero.
--- `gp.tensor({0, 5}):argwhere()[1][1] == 2` Errors: while tracing.
---@return gpipe.Tensor i64 [count, dimensions]
function Tensor:argwhere() return self:nonzero() end

--- The elements of a vector that differ from the one before, and how often each is repeated.
--- `gp.tensor({1, 1, 2, 1}):unique_consecutive()[3] == 1` Errors: while tracing.
---@return gpipe.Tensor values
---@return gpipe.Tensor counts i64
function Tensor:unique_consecutive()
  local flat = self:reshape(-1)
  local size = flat:numel()
  if size == 0 then return flat, flat:to "i64" end
  local changes = flat:narrow(1, 2, size - 1):ne(flat:narrow(1, 1, size - 1))
  local firsts = core.concat({ beside(self, core.tensor({ 1 }, "i64")),
    changes:to("i64"):nonzero():reshape(-1) + 1 }, 1)
  local count = firsts:numel()
  local ends = core.concat({ firsts:narrow(1, 2, count - 1),
    beside(self, core.tensor({ size + 1 }, "i64")) }, 1)
  return flat:index_select(1, firsts), ends - firsts
end

--- The most frequent value along a dimension, by default the last (the smallest of several), and
--- the last position that has it. `gp.tensor({2, 1, 2}):mode():item() == 2`
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor values
---@return gpipe.Tensor positions i64
function Tensor:mode(d, keep)
  d = check.dim("mode", d or -1, self:dim())
  if self:size(d) == 0 then
    errors.raise("mode: dimension %d has no elements, expected at least one", d)
  end
  local moved = core.sort(self, d):movedim(d, -1)
  local counts = moved:unsqueeze(-1):eq(moved:unsqueeze(-2)):to("i64"):sum(-1)
  local first = counts:argmax(-1) -- the first of equal counts, whose value is the smallest
  local value = moved:take_along_dim(first:unsqueeze(-1), -1)
  local line = beside(self, core.arange(1, self:size(d), 1, "i64"))
  local same = self:movedim(d, -1):eq(value)
  local at = core.where(same, line, 0):max(-1)
  value = value:squeeze(-1)
  if keep then return value:unsqueeze(d), at:unsqueeze(d) end
  return value, at
end

-- ---- without NaN -----------------------------------------------------------------------------

-- Sort lines with NaN after all numbers; return also how many numbers each has, and where they
-- were.
local function numbers_first(tensor, d)
  local missing = tensor:isnan()
  local sorted, positions = core.sort(core.where(missing, math.huge, tensor), d)
  return sorted, missing:logical_not():to("i64"):sum(d, true), positions
end

--- The value that the share q of the elements that are not NaN is below, over all elements or along
--- a dimension; between two elements it is interpolated linearly.
--- `gp.tensor({1, 0 / 0, 3}):nanquantile(0.5):item() == 2`
---@param q number from 0 to 1
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:nanquantile(q, d, keep)
  if not math.type(q) or not (q >= 0 and q <= 1) then
    errors.raise("nanquantile: q is %s, expected a number from 0 to 1", errors.show(q))
  end
  local x = d == nil and self:reshape(-1) or self
  d = check.dim("nanquantile", d or 1, x:dim())
  local sorted, count = numbers_first(x, d)
  local at = (count - 1):clamp({ min = 0 }):to(x.dtype) * q
  local low = at:floor()
  local function value(place) return sorted:gather(d, place:to "i64" + 1) end
  local below, above = value(low), value(at:ceil())
  local y = core.where(at:eq(low), below, below + (above - below) * (at - low))
  y = core.where(count:eq(0), 0 / 0, y)
  return keep and y or y:squeeze(d)
end

--- The median of the elements that are not NaN, over all elements or along a dimension: the lower
--- of two in the middle; along a dimension also its position.
--- `gp.tensor({1, 0 / 0, 3, 4}):nanmedian():item() == 3`
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor values
---@return gpipe.Tensor? positions i64, along a dimension
function Tensor:nanmedian(d, keep)
  local x = d == nil and self:reshape(-1) or self
  local dim = check.dim("nanmedian", d or 1, x:dim())
  local sorted, count, positions = numbers_first(x, dim)
  local middle = ((count - 1):clamp { min = 0 } // 2) + 1
  local y = core.where(count:eq(0), 0 / 0, sorted:gather(dim, middle))
  local at = positions:gather(dim, middle)
  if not keep then y, at = y:squeeze(dim), at:squeeze(dim) end
  if d == nil then return y end
  return y, at
end

-- ---- together --------------------------------------------------------------------------------

--- The covariances of variables: each row is a variable, and its columns are observations.
--- `gp.tensor({{1, 2, 3}, {3, 2, 1}}):cov()[1][2] == -1`
---@param opts? {correction?: integer} 1
---@return gpipe.Tensor [variables, variables], for one variable a scalar
function Tensor:cov(opts)
  local correction = options.check("cov", opts, { correction = { type = "integer", default = 1 } })
    .correction
  if self:dim() < 1 or self:dim() > 2 then
    errors.raise("cov: the tensor has %d dimensions, expected 1 or 2", self:dim())
  end
  local rows = self:dim() == 1 and self:unsqueeze(1) or self
  local apart = rows - rows:mean(2, true)
  local y = apart:matmul(apart:t()) / math.max(rows:size(2) - correction, 0)
  return rows:size(1) == 1 and y:reshape {} or y
end

--- cov divided by both standard deviations, from -1 to 1.
--- `gp.tensor({{1, 2, 3}, {3, 2, 1}}):corrcoef()[1][2] == -1`
---@return gpipe.Tensor [variables, variables], for a vector one number
function Tensor:corrcoef()
  local c = self:cov()
  if c:dim() == 0 then return c / c end
  local deviation = c:diagonal():sqrt()
  return (c / deviation:unsqueeze(1) / deviation:unsqueeze(2)):clamp(-1, 1)
end

--- The area up to each point along a dimension, by default the last, by trapezoids. The points are
--- 1 apart, or x apart, or at the coordinates in a vector x.
--- `gp.tensor({1, 2, 3}):cumulative_trapezoid()[2] == 4`
---@param x? number|gpipe.Tensor
---@param d? integer
---@return gpipe.Tensor one element less along d
function Tensor:cumulative_trapezoid(x, d)
  d = check.dim("cumulative_trapezoid", d or -1, self:dim())
  local size, width = self:size(d), x or 1
  if is_tensor(width) then
    local shape = {}
    for k = 1, self:dim() do shape[k] = k == d and math.max(size - 1, 0) or 1 end
    width = width:diff():reshape(shape)
  elseif not math.type(width) then
    errors.raise("cumulative_trapezoid: x is %s, expected a number or a tensor", errors.show(width))
  end
  if size < 2 then return self:narrow(d, 1, 0) end
  return ((self:narrow(d, 1, size - 1) + self:narrow(d, 2, size - 1)) / 2 * width):cumsum(d)
end

--- Shrink each select(d, i) to a p-norm of at most most.
--- `gp.tensor({{3, 4}}):renorm(2, 1, 1)[1][1] < 0.61`
---@param p number
---@param d integer
---@param most number
---@return gpipe.Tensor
function Tensor:renorm(p, d, most)
  d = check.dim("renorm", d, self:dim())
  most = options.argument("renorm", "most", most, { type = "number", min = 0, required = true })
  local others = {}
  for k = 1, self:dim() do if k ~= d then others[#others + 1] = k end end
  local norm = self:norm(p, others, true)
  return self * core.where(norm:gt(most), most / (norm + 1e-7), 1)
end

return Tensor
