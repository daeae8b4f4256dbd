-- lua/gpipe/tensor/like.lua - tensors made after others, and what is made of several.

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local more = require "gpipe.tensor.indices"
local options = require "gpipe.options"
local check = require "gpipe.tensor.methods.check"
local is_tensor = require "gpipe.tensor.is"

local like = {}

local common, drawn = create.rules.filled_leaf, create.rules.drawn_leaf

-- Shape and options of a tensor, but for what `opts` says otherwise. A value of a trace has no
-- device of its own: constants go where they are needed.
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
  return more.randint(low, high, shape, o)
end

--- Normal numbers with this mean and standard deviation.
--- ```lua
--- assert(gp.normal(3, 0, {2})[1] == 3)
--- ```
---@param mean number
---@param std number
---@param shape integer[]
---@param opts? {dtype?: gpipe.dtype, device?: string, seed?: integer}
---@return gpipe.Tensor
function like.normal(mean, std, shape, opts)
  local finite = { type = "number", below = math.huge, above = -math.huge, required = true }
  mean = options.argument("gp.normal", "mean", mean, finite)
  std = options.argument("gp.normal", "std", std,
    { type = "number", min = 0, below = math.huge, required = true })
  local o = options.check("gp.normal", opts, create.rules.drawn)
  return create.randn(shape, o) * std + mean
end

--- n numbers from base^a to base^b, both included, each the same multiple of the one before.
--- ```lua
--- assert(gp.logspace(0, 2, 3)[2] == 10)
--- ```
---@param a number
---@param b number
---@param n integer
---@param opts? {base?: number, dtype?: gpipe.dtype, device?: string} base: 10
---@return gpipe.Tensor
function like.logspace(a, b, n, opts)
  local o = options.check("gp.logspace", opts, {
    base = { type = "number", above = 0, default = 10 }, dtype = common.dtype,
    device = common.device,
  })
  n = check.count("gp.logspace: n", n, 1)
  if not math.type(a) or not math.type(b) then
    errors.raise("gp.logspace: the range is %s to %s, expected numbers", errors.show(a),
      errors.show(b))
  end
  local values = more.linspace(a, b, n, { dtype = "f64" }):totable()
  for i, power in ipairs(values) do values[i] = o.base ^ power end
  return create.tensor(values, { dtype = o.dtype, device = o.device })
end

local function tensors(who, ...)
  for i = 1, select("#", ...) do
    local t = (select(i, ...))
    if not is_tensor(t) then
      errors.raise("%s: argument %d is %s, expected a tensor", who, i, errors.show(t))
    end
  end
end

--- Distances of all rows of one tensor from all of another, by the p-norm.
--- ```lua
--- assert(gp.cdist(gp.zeros {1, 2}, gp.tensor {{3, 4}}):item() == 5)
--- ```
---@param a gpipe.Tensor [.., m, d]
---@param b gpipe.Tensor [.., n, d]
---@param p? number 2 unless said
---@return gpipe.Tensor [.., m, n]
function like.cdist(a, b, p)
  tensors("gp.cdist", a, b)
  if a:dim() < 2 or b:dim() < 2 or a:size(-1) ~= b:size(-1) then
    errors.raise("gp.cdist: the tensors are %s and %s, expected rows of one length",
      table.concat(a.shape, "x"), table.concat(b.shape, "x"))
  end
  return (a:unsqueeze(-2) - b:unsqueeze(-3)):norm(p, -1)
end

--- Matrices along the diagonal of one, zeros elsewhere; vectors are rows.
--- ```lua
--- assert(gp.block_diag(gp.ones {1, 2}, gp.ones {2, 1}).shape[1] == 3)
--- ```
---@param ... gpipe.Tensor of at most two dimensions
---@return gpipe.Tensor
function like.block_diag(...)
  tensors("gp.block_diag", ...)
  local list, rows, columns, before = { ... }, {}, 0, 0
  for i, t in ipairs(list) do
    if t:dim() > 2 then
      errors.raise("gp.block_diag: argument %d has %d dimensions, expected at most 2", i, t:dim())
    end
    if t:dim() < 2 then list[i] = t:reshape { 1, t:numel() } end
    columns = columns + list[i]:size(2)
  end
  for i, t in ipairs(list) do
    rows[i] = t:pad { before, columns - before - t:size(2) }
    before = before + t:size(2)
  end
  if #rows == 0 then errors.raise "gp.block_diag: there are no tensors, expected at least one" end
  return core.concat(rows, 1)
end

--- Where values would stand in a sorted vector: the first position whose element is not less, one
--- more than there are where all are less; with `right` the first whose element is greater.
--- ```lua
--- assert(gp.searchsorted(gp.tensor {1, 3, 5}, gp.tensor {3, 4})[2] == 3)
--- ```
---@param sorted gpipe.Tensor of one dimension, ascending
---@param values gpipe.Tensor of the same dtype
---@param opts? {right?: boolean}
---@return gpipe.Tensor i64 positions from 1, in the shape of the values
function like.searchsorted(sorted, values, opts)
  local o = options.check("gp.searchsorted", opts,
    { right = { type = "boolean", default = false } })
  tensors("gp.searchsorted", sorted, values)
  if sorted:dim() ~= 1 then
    errors.raise("gp.searchsorted: the sorted tensor has %d dimensions, expected 1", sorted:dim())
  end
  local each = values:unsqueeze(-1)
  return (o.right and sorted:le(each) or sorted:lt(each)):sum(-1) + 1
end

return like
