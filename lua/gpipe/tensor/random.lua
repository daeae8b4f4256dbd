-- lua/gpipe/tensor/random.lua - drawn tensors beside gp.rand and gp.randn: normal, randint,
-- randperm, bernoulli.

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local random = require "gpipe.random"
local check = require "gpipe.tensor.methods.check"

local drawn = {}

local MOST_DRAWN = 1 << 53 -- integers that one draw of f64 tells apart

local rules = create.rules.drawn

--- Normal numbers with this mean and standard deviation.
--- ```lua
--- assert(gp.normal(3, 0, {2})[1] == 3)
--- ```
---@param mean number
---@param std number
---@param shape integer[]
---@param opts? {dtype?: gpipe.dtype, device?: string, seed?: integer}
---@return gpipe.Tensor
function drawn.normal(mean, std, shape, opts)
  local finite = { type = "number", below = math.huge, above = -math.huge, required = true }
  mean = options.argument("gp.normal", "mean", mean, finite)
  std = options.argument("gp.normal", "std", std,
    { type = "number", min = 0, below = math.huge, required = true })
  local o = options.check("gp.normal", opts, rules)
  return create.randn(shape, o) * std + mean
end

--- Integers from low to high - 1, uniformly distributed, i64.
--- ```lua
--- assert(gp.randint(3, 4, {2})[1] == 3)
--- ```
---@param low integer
---@param high integer excluded; at most 2^53 above low
---@param shape integer[]
---@param opts? {seed?: integer, device?: string}
---@return gpipe.Tensor i64
function drawn.randint(low, high, shape, opts)
  low = check.count("gp.randint: low", low, math.mininteger)
  high = check.count("gp.randint: high", high, low < math.maxinteger and low + 1 or low)
  if high - low <= 0 or high - low > MOST_DRAWN then
    errors.raise("gp.randint: from %d to %d are %s, expected at most 2^53", low, high,
      high == low and "no integers" or "too many integers")
  end
  local o = options.check("gp.randint", opts, { device = rules.device, seed = rules.seed })
  local shares = create.rand(shape, { dtype = "f64", seed = o.seed, device = o.device })
  return (shares * (high - low)):to "i64" + low
end

--- The positions 1 .. n in random order, i64.
--- ```lua
--- assert(gp.randperm(4):sum():item() == 10)
--- ```
---@param n integer
---@param opts? {seed?: integer}
---@return gpipe.Tensor i64
function drawn.randperm(n, opts)
  n = check.count("gp.randperm: n", n, 0)
  local o = options.check("gp.randperm", opts, { seed = rules.seed })
  return core.permutation(n, random.next(o.seed))
end

--- One with probability p, else zero.
--- ```lua
--- assert(gp.bernoulli(1, {3}):sum():item() == 3)
--- ```
---@param p number
---@param shape integer[]
---@param opts? {dtype?: gpipe.dtype, seed?: integer, device?: string}
---@return gpipe.Tensor
function drawn.bernoulli(p, shape, opts)
  if not math.type(p) or not (p >= 0 and p <= 1) then -- NaN is neither
    errors.raise("gp.bernoulli: p is %s, expected a number from 0 to 1", errors.show(p))
  end
  local o = options.check("gp.bernoulli", opts, rules)
  local shares = create.rand(shape, { seed = o.seed, device = o.device })
  return shares:lt(p):to(o.dtype)
end

return drawn
