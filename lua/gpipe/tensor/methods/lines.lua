-- lua/gpipe/tensor/methods/lines.lua - methods along one dimension that are composed of ops:
-- running products and extremes, differences, quantiles.

local core = require "gpipe.core"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

-- ---- running ---------------------------------------------------------------------------------

-- Combine every prefix of a line by `join(earlier, later)`, in as many rounds as the length has
-- binary digits: each round doubles how far back a result reaches.
local function running(parts, d, join)
  local size, reach = parts[1]:size(d), 1
  while reach < size do
    local earlier, later, kept = {}, {}, {}
    for k, part in ipairs(parts) do
      kept[k] = part:narrow(d, 1, reach)
      earlier[k] = part:narrow(d, 1, size - reach)
      later[k] = part:narrow(d, reach + 1, size - reach)
    end
    local joined = { join(earlier, later) }
    for k in ipairs(parts) do parts[k] = core.concat({ kept[k], joined[k] }, d) end
    reach = 2 * reach
  end
  return table.unpack(parts)
end

--- The product of the elements up to each position along a dimension; integers are multiplied as
--- i64. The gradient is correct where elements are zero. `gp.tensor({2, 3, 4}):cumprod(1)[3] == 24`
---@param d integer
---@return gpipe.Tensor
function Tensor:cumprod(d)
  d = check.dim("cumprod", d, self:dim())
  local x = ({ i32 = true, u8 = true, bool = true })[self.dtype] and self:to "i64" or self
  return (running({ x }, d, function(a, b) return a[1] * b[1] end))
end

-- Running extremes with positions: the later of equals, as in PyTorch; NaN beats all numbers, and
-- the last NaN is taken.
local function extremes(who, tensor, d, is_better)
  d = check.dim(who, d, tensor:dim())
  local shape = {}
  for k, size in ipairs(tensor.shape) do shape[k] = k == d and size or 1 end
  local size = tensor:size(d)
  if size == 0 then return tensor, tensor:to "i64" end
  local line = beside(tensor, core.arange(1, size, 1, "i64"))
  local at = line:reshape(shape):expand(tensor.shape)
  local values = core.tracing() and tensor or tensor:detach() -- gather computes their gradient
  local _, positions = running({ values, at }, d, function(a, b)
    local later = is_better(b[1], a[1]):logical_and(a[1]:isnan():logical_not())
      :logical_or(b[1]:isnan())
    return core.where(later, b[1], a[1]), core.where(later, b[2], a[2])
  end)
  return tensor:gather(d, positions), positions
end

--- The largest of the elements up to each position along a dimension, and its position, the last of
--- equals. With gradient. `gp.tensor({1, 3, 2}):cummax(1)[3] == 3`
---@param d integer
---@return gpipe.Tensor values
---@return gpipe.Tensor positions i64
function Tensor:cummax(d) return extremes("cummax", self, d, self.ge) end

--- The smallest of the elements up to each position along a dimension, and its position, the last
--- of equals. With gradient. `gp.tensor({3, 1, 2}):cummin(1)[3] == 1`
---@param d integer
---@return gpipe.Tensor values
---@return gpipe.Tensor positions i64
function Tensor:cummin(d) return extremes("cummin", self, d, self.le) end

--- log(sum of exp(x)) of the elements up to each position along a dimension.
--- `gp.zeros({2}):logcumsumexp(1)[2] > 0.69`
---@param d integer
---@return gpipe.Tensor
function Tensor:logcumsumexp(d)
  d = check.dim("logcumsumexp", d, self:dim())
  return (running({ self }, d, function(a, b) return a[1]:logaddexp(b[1]) end))
end

-- ---- differences and areas -------------------------------------------------------------------

--- The differences of neighbours along a dimension, by default the last, taken n times.
--- `gp.tensor({1, 4, 9}):diff()[2] == 5`
---@param n? integer 1 by default
---@param d? integer
---@return gpipe.Tensor
function Tensor:diff(n, d)
  n, d = check.count("diff: n", n or 1, 0), check.dim("diff", d or -1, self:dim())
  local y = self
  for _ = 1, n do
    local size = math.max(y:size(d) - 1, 0)
    if y:size(d) == 0 then return y end
    y = y:narrow(d, 2, size) - y:narrow(d, 1, size)
  end
  return y
end

--- The area under points along a dimension, by default the last, by trapezoids. The points are 1
--- apart, or x apart, or at the coordinates in a vector x.
--- `gp.tensor({1, 2, 3}):trapezoid():item() == 4`
---@param x? number|gpipe.Tensor
---@param d? integer
---@return gpipe.Tensor
function Tensor:trapezoid(x, d)
  d = check.dim("trapezoid", d or -1, self:dim())
  local size, width = self:size(d), x or 1
  if is_tensor(width) then
    if width:dim() ~= 1 or width:numel() ~= size then
      errors.raise("trapezoid: x has %d elements in %d dimensions, expected a vector of %d",
        width:numel(), width:dim(), size)
    end
    local shape = {}
    for k = 1, self:dim() do shape[k] = k == d and math.max(size - 1, 0) or 1 end
    width = width:diff():reshape(shape)
  elseif not math.type(width) then
    errors.raise("trapezoid: x is %s, expected a number or a tensor", errors.show(width))
  end
  if size < 2 then return self:narrow(d, 1, 0):sum(d) end
  return ((self:narrow(d, 1, size - 1) + self:narrow(d, 2, size - 1)) / 2 * width):sum(d)
end

-- ---- quantiles -------------------------------------------------------------------------------

local PLACES = {
  lower = math.floor, higher = math.ceil,
  nearest = function(at) -- the even one of two
    local low = math.floor(at)
    return (at - low > 0.5 or at - low == 0.5 and low % 2 == 1) and low + 1 or low
  end,
}

-- Quantile q of sorted lines of n numbers; it lies at position q * (n - 1) + 1, which may be
-- between two.
local function quantile_at(values, d, q, way)
  local at = q * (values:size(d) - 1)
  if PLACES[way] then return values:narrow(d, math.tointeger(PLACES[way](at)) + 1, 1) end
  local low = math.floor(at)
  local below = values:narrow(d, low + 1, 1)
  if at == low then return below end
  local part = way == "midpoint" and 0.5 or at - low
  return below + (values:narrow(d, low + 2, 1) - below) * part
end

--- The value that the share q of the elements is below, over all elements or along a dimension.
--- Between two elements it is interpolated linearly unless interpolation says otherwise. It is NaN
--- if an element is. A list of q adds a first dimension.
--- `gp.tensor({1, 2, 3, 4}):quantile(0.5):item() == 2.5`
---@param q number|number[] from 0 to 1
---@param d? integer
---@param opts? {keep?: boolean, interpolation?: "linear"|"lower"|"higher"|"nearest"|"midpoint"}
---@return gpipe.Tensor
function Tensor:quantile(q, d, opts)
  local o = options.check("quantile", opts, {
    keep = { type = "boolean", default = false },
    interpolation = {
      choices = { "linear", "lower", "higher", "nearest", "midpoint" }, default = "linear",
    },
  })
  local x = d == nil and self:reshape { self:numel() } or self
  local dim, list = check.dim("quantile", d or 1, x:dim()), type(q) == "table" and q or { q }
  if x:size(dim) == 0 or #list == 0 then
    errors.raise("quantile: there are no %s, expected at least one",
      #list == 0 and "numbers q" or "elements")
  end
  local sorted, parts = core.sort(x, dim), {}
  local last = sorted:narrow(dim, x:size(dim), 1)
  for i, part in ipairs(list) do
    if not math.type(part) or not (part >= 0 and part <= 1) then
      errors.raise("quantile: q is %s, expected a number from 0 to 1", errors.show(part))
    end
    local y = quantile_at(sorted, dim, part, o.interpolation)
    y = core.where(last:isnan(), last, y)
    if not o.keep then y = y:squeeze(dim) end
    parts[i] = type(q) == "table" and y:unsqueeze(1) or y
  end
  return type(q) == "table" and core.concat(parts, 1) or parts[1]
end

--- The k-th smallest element along a dimension, by default the last, and its position.
--- `gp.tensor({3, 1, 2}):kthvalue(2):item() == 2`
---@param k integer
---@param d? integer
---@param keep? boolean
---@return gpipe.Tensor values
---@return gpipe.Tensor positions i64
function Tensor:kthvalue(k, d, keep)
  d = check.dim("kthvalue", d or -1, self:dim())
  k = check.position("kthvalue: k", k, self:size(d))
  local values, positions = core.sort(self, d)
  values, positions = values:narrow(d, k, 1), positions:narrow(d, k, 1)
  if keep then return values, positions end
  return values:squeeze(d), positions:squeeze(d)
end

-- ---- of all ----------------------------------------------------------------------------------

--- The largest values over a dimension, a list of them, or all; without positions.
--- `gp.tensor({1, 3, 2}):amax():item() == 3`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:amax(dim, keep)
  check.dims("amax", dim, self.shape)
  return (self:max(dim, keep))
end

--- The smallest values over a dimension, a list of them, or all; without positions.
--- `gp.tensor({3, 1, 2}):amin():item() == 1`
---@param dim? integer|integer[]
---@param keep? boolean
---@return gpipe.Tensor
function Tensor:amin(dim, keep)
  check.dims("amin", dim, self.shape)
  return (self:min(dim, keep))
end

--- The p-norm of the difference. `gp.tensor({3, 0}):dist(gp.tensor {0, 4}):item() == 5`
---@param other gpipe.Tensor
---@param p? number 2 by default
---@return gpipe.Tensor
function Tensor:dist(other, p)
  if not is_tensor(other) then
    errors.raise("dist: the other is %s, expected a tensor", errors.show(other))
  end
  return (self - other):norm(p)
end

--- How many elements are in each of bins intervals of equal width from low to high, by default from
--- the smallest to the largest element. Elements outside do not count; high itself belongs to the
--- last interval. `gp.tensor({1, 2, 2, 5}):histc(2)[1] == 3` Errors: while tracing.
---@param bins? integer 100 by default
---@param low? number
---@param high? number
---@return gpipe.Tensor of the tensor's dtype
function Tensor:histc(bins, low, high)
  local number = { type = "number", below = math.huge, above = -math.huge }
  bins = check.count("histc: bins", bins or 100, 1)
  low = options.argument("histc", "low", low, number)
  high = options.argument("histc", "high", high, number)
  local x = self:reshape { self:numel() }:to "f64"
  if x:numel() == 0 then return self:reshape { 0 }:pad { 0, bins } end
  low, high = low or x:min():item(), high or x:max():item()
  if low == high then low, high = low - 1, high + 1 end
  if not (low < high and high - low < math.huge) then
    errors.raise("histc: the range is %g to %g, expected finite numbers, the lower one first", low,
      high)
  end
  local inside = x:ge(low):logical_and(x:le(high))
  local at = core.where(inside, (x - low) * (bins / (high - low)), 0):clamp(0, bins - 1)
  return at:floor():to("i64"):bincount({ weights = inside:to "f64", minlength = bins })
    :to(self.dtype)
end

return Tensor
