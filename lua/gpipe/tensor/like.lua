-- lua/gpipe/tensor/like.lua - tensors with the shape of another one: zeros_like, ones_like,
-- full_like, rand_like, randn_like, randint_like.

local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local options = require "gpipe.options"
local random = require "gpipe.tensor.random"
local is_tensor = require "gpipe.tensor.is"

local like = {}

local common, drawn = create.rules.filled_leaf, create.rules.drawn_leaf

-- The shape and the options of a tensor; `opts` may replace the options. A traced value has no
-- device: its stage decides where constants go.
local function as(who, t, opts, rules)
  if not is_tensor(t) then
    errors.raise("%s: the first argument is %s, expected a tensor", who, errors.show(t))
  end
  local spec = {}
  for name, rule in pairs(rules) do
    spec[name] = { type = rule.type, choices = rule.choices, check = rule.check }
  end
  local o = options.check(who, opts, spec)
  o.dtype = o.dtype or t.dtype
  o.device = o.device or t.device ~= "traced" and t.device or nil
  return t.shape, o
end

--- Zeros in shape, dtype and device of a tensor.
--- ```lua
--- assert(gp.zeros_like(gp.ones {2, 3}).shape[2] == 3)
--- ```
---@param t gpipe.Tensor
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function like.zeros_like(t, opts) return create.zeros(as("gp.zeros_like", t, opts, common)) end

--- Ones in shape, dtype and device of a tensor.
--- ```lua
--- assert(gp.ones_like(gp.zeros {2, 3})[2][3] == 1)
--- ```
---@param t gpipe.Tensor
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function like.ones_like(t, opts) return create.ones(as("gp.ones_like", t, opts, common)) end

--- One value in shape, dtype and device of a tensor.
--- ```lua
--- assert(gp.full_like(gp.zeros {2}, 7)[1] == 7)
--- ```
---@param t gpipe.Tensor
---@param value number|boolean
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function like.full_like(t, value, opts)
  local shape, o = as("gp.full_like", t, opts, common)
  if type(value) ~= "number" and type(value) ~= "boolean" then
    errors.raise("gp.full_like: value is %s, expected a number", errors.show(value))
  end
  return create.full(shape, value, o)
end

--- gp.rand in shape, dtype and device of a tensor.
--- ```lua
--- assert(gp.rand_like(gp.zeros {2}, {seed = 1})[1] < 1)
--- ```
---@param t gpipe.Tensor
---@param opts? {dtype?: gpipe.dtype, device?: string, seed?: integer}
---@return gpipe.Tensor
function like.rand_like(t, opts) return create.rand(as("gp.rand_like", t, opts, drawn)) end

--- gp.randn in shape, dtype and device of a tensor.
--- ```lua
--- assert(gp.randn_like(gp.zeros {2}, {seed = 1}).shape[1] == 2)
--- ```
---@param t gpipe.Tensor
---@param opts? {dtype?: gpipe.dtype, device?: string, seed?: integer}
---@return gpipe.Tensor
function like.randn_like(t, opts) return create.randn(as("gp.randn_like", t, opts, drawn)) end

--- gp.randint in shape and device of a tensor, from 0 or `low` on.
--- ```lua
--- assert(gp.randint_like(gp.zeros {2}, 3, 4)[1] == 3)
--- ```
---@param t gpipe.Tensor
---@param low integer
---@param high integer excluded
---@param opts? {seed?: integer, device?: string}
---@return gpipe.Tensor i64
function like.randint_like(t, low, high, opts)
  local shape, o = as("gp.randint_like", t, opts, { device = drawn.device, seed = drawn.seed })
  o.dtype = nil
  return random.randint(low, high, shape, o)
end

return like
