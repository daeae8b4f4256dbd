-- lua/gpipe/tensor/methods/write.lua - methods that write: random numbers in place, and copies with
-- elements set or added by position.

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local beside = require "gpipe.tensor.methods.beside"
local check = require "gpipe.tensor.methods.check"
local random = require "gpipe.tensor.random"
local is_tensor = require "gpipe.tensor.is"

local Tensor = {}

-- ---- gradients -------------------------------------------------------------------------------

--- Let gradients reach the tensor (in grad, after loss:backward()), or stop that.
--- `gp.ones({2}):requires_grad_().requires_grad`
---@param on? boolean true by default
---@return gpipe.Tensor self
function Tensor:requires_grad_(on)
  if on ~= nil and type(on) ~= "boolean" then
    errors.raise("requires_grad_: on is %s, expected true or false", errors.show(on))
  end
  self.requires_grad = on ~= false
  return self
end

-- ---- drawn in place --------------------------------------------------------------------------

local NUMBER = { type = "number", below = math.huge, above = -math.huge }

-- Read two numbers and {seed =}, which may take the place of either number.
local function read(who, opts, ...)
  local numbers, given = { ... }, opts
  for i = 1, 2 do
    if type(numbers[i]) == "table" and given == nil then given, numbers[i] = numbers[i], nil end
  end
  local o = options.check(who, given, { seed = { type = "integer" } })
  return o.seed, options.argument(who, "the first number", numbers[1], NUMBER),
    options.argument(who, "the second number", numbers[2], NUMBER)
end

local function drawn(who, tensor, make, seed)
  if not tensor.dtype:find "^[fb]%d?f?%d" then
    errors.raise('%s: the tensor is %s, expected a float one (convert with to("f32"))', who,
      tensor.dtype)
  end
  if core.tracing() then
    errors.raise("%s: in forward nothing is drawn in place, expected gp.rand or gp.randn", who)
  end
  return make(tensor.shape, { dtype = tensor.dtype == "f64" and "f64" or "f32", seed = seed })
end

--- Fill with normal numbers, in place. `gp.zeros({4}):normal_(5, 0)[1] == 5`
---@param mean? number 0 by default
---@param std? number 1 by default
---@param opts? {seed?: integer} else of gp.seed's streams
---@return gpipe.Tensor self
function Tensor:normal_(mean, std, opts)
  local seed, m, s = read("normal_", opts, mean, std)
  if s and s < 0 then errors.raise("normal_: std is %g, expected a number >= 0", s) end
  return self:copy_(drawn("normal_", self, create.randn, seed) * (s or 1) + (m or 0))
end

--- Fill with uniform numbers of [low, high), in place.
--- `gp.zeros({4}):uniform_(5, 6):floor()[1] == 5`
---@param low? number 0 by default
---@param high? number 1 by default
---@param opts? {seed?: integer} else of gp.seed's streams
---@return gpipe.Tensor self
function Tensor:uniform_(low, high, opts)
  local seed, a, b = read("uniform_", opts, low, high)
  a, b = a or 0, b or 1
  if a > b then
    errors.raise("uniform_: low is %g and high %g, expected the lower one first", a, b)
  end
  return self:copy_(drawn("uniform_", self, create.rand, seed) * (b - a) + a)
end

--- Fill with 1, each with probability p, else with 0, in place.
--- `gp.zeros({4}):bernoulli_(1):sum():item() == 4`
---@param p? number 0.5 by default
---@param opts? {seed?: integer} else of gp.seed's streams
---@return gpipe.Tensor self
function Tensor:bernoulli_(p, opts)
  local seed, chance = read("bernoulli_", opts, p)
  if core.tracing() then
    errors.raise "bernoulli_: in forward nothing is drawn in place, expected gp.bernoulli"
  end
  return self:copy_(random.bernoulli(chance or 0.5, self.shape, { seed = seed }))
end

--- Fill with numbers from the exponential distribution, in place.
--- `gp.zeros({4}):exponential_():ge(0):all():item()`
---@param rate? number 1 by default
---@param opts? {seed?: integer} else of gp.seed's streams
---@return gpipe.Tensor self
function Tensor:exponential_(rate, opts)
  local seed, by = read("exponential_", opts, rate)
  if by and by <= 0 then errors.raise("exponential_: rate is %g, expected a number > 0", by) end
  return self:copy_((-drawn("exponential_", self, create.rand, seed)):log1p() / -(by or 1))
end

--- Draw n positions (from 1) for each row, with the probabilities in the last dimension; each
--- position at most once, unless replacement is true. `gp.tensor({0, 1}):multinomial(1)[1] == 2`
--- Errors: while tracing.
---@param n integer
---@param opts? {replacement?: boolean, seed?: integer}
---@return gpipe.Tensor i64 [.., n]
function Tensor:multinomial(n, opts)
  local o = options.check("multinomial", opts, {
    replacement = { type = "boolean", default = false }, seed = { type = "integer" },
  })
  local rank, p = self:dim(), self:detach():to "f64"
  local size = rank > 0 and self:size(-1) or 0
  if rank < 1 or rank > 2 or size == 0 then
    errors.raise("multinomial: the tensor has %d dimensions, expected 1 or 2 with elements", rank)
  end
  n = check.count("multinomial: n", n, 1)
  local sums, positive = p:sum(-1, true), -(-p:gt(0):sum(-1)):amax():item()
  if not (p:ge(0):all():item() and sums:gt(0):all():item() and sums:isfinite():all():item()) then
    errors.raise "multinomial: probabilities are negative, not finite or all 0, expected >= 0"
  end
  if not o.replacement and n > positive then
    errors.raise("multinomial: n is %d, expected at most %d, the positions with a probability", n,
      positive)
  end
  local shape = self.shape
  if not o.replacement then -- take the first of exponential times with these rates
    local numbers = beside(p, create.rand(shape, { dtype = "f64", seed = o.seed }))
    local times = (-numbers):log1p() / -p
    local _, positions = times:topk(n, -1, { largest = false })
    return positions
  end
  shape[rank] = n
  local at = beside(p, create.rand(shape, { dtype = "f64", seed = o.seed })) * sums
  local below = p:cumsum(-1):unsqueeze(-2):le(at:unsqueeze(-1)):sum(-1)
  local last = core.where(p:gt(0), beside(p, core.arange(0, size - 1, 1, "i64")), 0)
    :amax(-1, true)
  return below:minimum(last) + 1
end

-- ---- by position -----------------------------------------------------------------------------

-- Expand a vector of positions of dimension d to all elements of the tensor.
local function spread(who, tensor, d, positions)
  local like = tensor.shape
  if type(positions) == "table" then positions = beside(tensor, core.tensor(positions, "i64")) end
  if not is_tensor(positions) or positions.dtype ~= "i64" or positions:dim() ~= 1 then
    errors.raise("%s: the positions are %s, expected a vector of i64 or a list", who,
      is_tensor(positions) and ("%s of %d dimensions"):format(positions.dtype, positions:dim())
        or errors.show(positions))
  end
  local shape = {}
  for k = 1, #like do shape[k] = k == d and positions:numel() or 1 end
  like[d] = positions:numel()
  return positions:reshape(shape):expand(like)
end

--- Add every row of the source along dimension d at its position; rows for one position are added
--- in their order. `gp.zeros({3}):index_add(1, {1, 3, 3}, gp.ones({3}))[3] == 2`
---@param d integer
---@param positions gpipe.Tensor|integer[] i64, one for each row of the source
---@param source gpipe.Tensor
---@return gpipe.Tensor
function Tensor:index_add(d, positions, source)
  d = check.dim("index_add", d, self:dim())
  return self:scatter_add(d, spread("index_add", self, d, positions), source)
end

-- Mark the positions, as a bool tensor of the tensor's shape.
local function hit(tensor, d, positions)
  local ones = beside(tensor, create.ones(positions.shape))
  return beside(tensor, create.zeros(tensor.shape)):scatter_add(d, positions, ones)
end

--- Set the given positions of dimension d to a number.
--- `gp.zeros({3}):index_fill(1, {1, 3}, 7)[3] == 7`
---@param d integer
---@param positions gpipe.Tensor|integer[] i64
---@param value number|gpipe.Tensor a scalar
---@return gpipe.Tensor
function Tensor:index_fill(d, positions, value)
  d = check.dim("index_fill", d, self:dim())
  local number = is_tensor(value) and value:dim() == 0 and value
    or options.argument("index_fill", "value", value, { type = "number", required = true })
  local at = spread("index_fill", self, d, positions)
  return core.where(hit(self, d, at):gt(0), number, self)
end

--- Set elements to a number, or to the elements of a source, at their positions along dimension d:
--- for d = 1, y[positions[i][j]][j] = source[i][j]. With gradient.
--- `gp.zeros({3}):scatter(1, gp.tensor({2}, {dtype = "i64"}), 1)[2] == 1`
---
--- Errors: a source has a position twice, so it is not clear which element to take. In a pipeline's
--- forward, where positions are not known in advance, elements of a source for one position are
--- added up.
---@param d integer
---@param positions gpipe.Tensor i64, of as many dimensions as the tensor
---@param source gpipe.Tensor|number
---@return gpipe.Tensor
function Tensor:scatter(d, positions, source)
  d = check.dim("scatter", d, self:dim())
  if not is_tensor(positions) or positions.dtype ~= "i64" then
    errors.raise("scatter: the positions are %s, expected an i64 tensor",
      is_tensor(positions) and positions.dtype or errors.show(positions))
  end
  if not is_tensor(source) and not math.type(source) then
    errors.raise("scatter: the source is %s, expected a tensor or a number", errors.show(source))
  end
  local counts = hit(self, d, positions)
  if not is_tensor(source) then return core.where(counts:gt(0), source, self) end
  if not core.tracing() and counts:gt(1):any():item() then
    errors.raise "scatter: a position occurs twice, expected each once (scatter_add adds them up)"
  end
  local zeros = beside(self, create.zeros(self.shape, { dtype = self.dtype }))
  return core.where(counts:gt(0), zeros:scatter_add(d, positions, source), self)
end

--- The elements at positions in row-major order, in the shape of the positions.
--- `gp.tensor({{1, 2}, {3, 4}}):take(gp.tensor({3}, {dtype = "i64"}))[1] == 3`
---@param positions gpipe.Tensor i64
---@return gpipe.Tensor
function Tensor:take(positions)
  if not is_tensor(positions) or positions.dtype ~= "i64" then
    errors.raise("take: the positions are %s, expected an i64 tensor",
      is_tensor(positions) and positions.dtype or errors.show(positions))
  end
  return self:reshape { self:numel() }:index_select(1, positions:reshape { positions:numel() })
    :reshape(positions.shape)
end

return Tensor
