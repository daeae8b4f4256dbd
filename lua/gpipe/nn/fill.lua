-- lua/gpipe/nn/fill.lua - the functions of `nn.init` that write into a tensor or a parameter at
-- once; they have PyTorch's names, which end in "_".
--
-- A recipe (initial.lua) draws when a value is first needed. These functions draw now, from
-- gp.seed's streams or from their own seed, and return the tensor.
-- Source: PyTorch 2.x torch/nn/init.py; Saxe et al. 2013 (orthogonal); Martens 2010 (sparse).

local core = require "gpipe.core"
local create = require "gpipe.tensor.create"
local errors = require "gpipe.errors"
local initial = require "gpipe.nn.initial"
local check = require "gpipe.nn.check"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"

local fill = {}

local SEED = { seed = { type = "integer" } }

local function check_float(who, t)
  if not is_tensor(t) then
    errors.raise("%s: the first argument is %s, expected a tensor or a parameter", who,
      errors.show(t))
  end
  if not t.dtype:find "^b?f%d" then
    errors.raise("%s: the tensor is %s, expected a float one", who, t.dtype)
  end
  if core.tracing() then
    errors.raise("%s: in forward no parameter is written, expected it in init", who)
  end
end

-- The seed in the options, which are the last argument.
local function seed_of(who, opts) return options.check(who, opts, SEED).seed end

-- Copy values that were computed on the host into the tensor, on whatever device it lies; no
-- gradient records this.
local function put(t, values)
  return require("gpipe.gradient").no_grad(function() return t:copy_(values:to(t.dtype)) end)
end

local FILLS = {
  constant = function(t, value) return create.full(t.shape, value) end,
  normal = function(t, mean, std, seed)
    return create.randn(t.shape, { seed = seed }) * std + mean
  end,
  uniform = function(t, low, high, seed)
    return create.rand(t.shape, { seed = seed }) * (high - low) + low
  end,
}

-- Fill the tensor as a recipe says for its shape.
local function follow(who, t, recipe, opts)
  check_float(who, t)
  local seed = seed_of(who, opts)
  local kind, a, b = recipe.resolve(t.shape)
  return put(t, FILLS[kind](t, a, b, seed))
end

--- All elements 0.
--- ```lua
--- assert(nn.init.zeros_(gp.ones {3})[1] == 0)
--- ```
---@param t gpipe.Tensor
---@return gpipe.Tensor t
function fill.zeros_(t) return follow("nn.init.zeros_", t, initial.zeros()) end

--- All elements 1.
--- ```lua
--- assert(nn.init.ones_(gp.zeros {3})[1] == 1)
--- ```
---@param t gpipe.Tensor
---@return gpipe.Tensor t
function fill.ones_(t) return follow("nn.init.ones_", t, initial.ones()) end

--- All elements `value`.
--- ```lua
--- assert(nn.init.constant_(gp.zeros {3}, 0.5)[1] == 0.5)
--- ```
---@param t gpipe.Tensor
---@param value number
---@return gpipe.Tensor t
function fill.constant_(t, value) return follow("nn.init.constant_", t, initial.constant(value)) end

--- Normal numbers.
--- ```lua
--- local w = nn.init.normal_(nn.Linear(4, 2).weight, 0, 0.02)
--- ```
---@param t gpipe.Tensor
---@param mean? number 0
---@param std? number 1
---@param opts? {seed?: integer}
---@return gpipe.Tensor t
function fill.normal_(t, mean, std, opts)
  return follow("nn.init.normal_", t, initial.normal(mean, std), opts)
end

--- Uniform numbers of [low, high).
--- ```lua
--- local w = nn.init.uniform_(nn.Linear(4, 2).weight, -0.1, 0.1)
--- ```
---@param t gpipe.Tensor
---@param low? number 0
---@param high? number 1
---@param opts? {seed?: integer}
---@return gpipe.Tensor t
function fill.uniform_(t, low, high, opts)
  return follow("nn.init.uniform_", t, initial.uniform(low, high), opts)
end

--- Uniform with variance 2 / (fan_in + fan_out), times gain squared.
--- ```lua
--- local w = nn.init.xavier_uniform_(nn.Linear(4, 2).weight)
--- ```
---@param t gpipe.Tensor of at least two dimensions
---@param gain? number 1
---@param opts? {seed?: integer}
---@return gpipe.Tensor t
function fill.xavier_uniform_(t, gain, opts)
  return follow("nn.init.xavier_uniform_", t, initial.xavier_uniform(gain), opts)
end

--- Normal with variance 2 / (fan_in + fan_out), times gain squared.
--- ```lua
--- local w = nn.init.xavier_normal_(nn.Linear(4, 2).weight)
--- ```
---@param t gpipe.Tensor of at least two dimensions
---@param gain? number 1
---@param opts? {seed?: integer}
---@return gpipe.Tensor t
function fill.xavier_normal_(t, gain, opts)
  return follow("nn.init.xavier_normal_", t, initial.xavier_normal(gain), opts)
end

-- Split the options into those of a kaiming recipe and the seed.
local function parted(opts)
  if type(opts) ~= "table" then return opts end
  local recipe = {}
  for name, value in pairs(opts) do
    if name ~= "seed" then recipe[name] = value end
  end
  return recipe, { seed = opts.seed }
end

--- Uniform with variance gain^2 / fan; for relu and similar functions.
--- ```lua
--- local w = nn.init.kaiming_uniform_(nn.Linear(4, 2).weight, {nonlinearity = "relu"})
--- ```
---@param t gpipe.Tensor of at least two dimensions
---@param opts? {a?: number, mode?: "fan_in"|"fan_out", nonlinearity?: string, seed?: integer}
---@return gpipe.Tensor t
function fill.kaiming_uniform_(t, opts)
  local recipe, drawn = parted(opts)
  return follow("nn.init.kaiming_uniform_", t, initial.kaiming_uniform(recipe), drawn)
end

--- Normal with variance gain^2 / fan.
--- ```lua
--- local w = nn.init.kaiming_normal_(nn.Linear(4, 2).weight, {mode = "fan_out"})
--- ```
---@param t gpipe.Tensor of at least two dimensions
---@param opts? {a?: number, mode?: "fan_in"|"fan_out", nonlinearity?: string, seed?: integer}
---@return gpipe.Tensor t
function fill.kaiming_normal_(t, opts)
  local recipe, drawn = parted(opts)
  return follow("nn.init.kaiming_normal_", t, initial.kaiming_normal(recipe), drawn)
end

-- The probability that a normally distributed number is below x.
local function part_below(x) return core.tensor(-x / math.sqrt(2), "f64"):erfc():item() / 2 end

--- Normal numbers between low and high; numbers outside are drawn again.
--- ```lua
--- assert(nn.init.trunc_normal_(gp.zeros {100}, 0, 1, -2, 2):abs():max():item() <= 2)
--- ```
---@param t gpipe.Tensor
---@param mean? number 0
---@param std? number 1
---@param low? number -2
---@param high? number 2
---@param opts? {seed?: integer}
---@return gpipe.Tensor t
function fill.trunc_normal_(t, mean, std, low, high, opts)
  local who = "nn.init.trunc_normal_"
  check_float(who, t)
  mean, std = check.number(who, "mean", mean or 0), check.number(who, "std", std or 1)
  low, high = check.number(who, "low", low or -2), check.number(who, "high", high or 2)
  if std <= 0 then check.fail(who, "std", std, "a positive number") end
  if low >= high then
    errors.raise("%s: the range is %g to %g, expected low < high", who, low, high)
  end
  -- Invert the distribution function, on the side where the range lies in the thinner tail.
  local turned = low + high > 2 * mean
  local from, to = (low - mean) / std, (high - mean) / std
  if turned then from, to = -to, -from end
  local a, b = part_below(from), part_below(to)
  local u = create.rand(t.shape, { seed = seed_of(who, opts), dtype = "f64" }) * (b - a) + a
  local y = (2 * u - 1):erfinv() * math.sqrt(2)
  y = (turned and -y or y) * std + mean
  return put(t, y:clamp(low, high))
end

--- Orthogonal rows of length gain (or columns, if there are fewer); dimensions behind the first
--- count as one.
--- ```lua
--- local w = nn.init.orthogonal_(gp.zeros {2, 3})
--- assert(w:matmul(w:t()):allclose(gp.eye(2), {atol = 1e-5}))
--- ```
---@param t gpipe.Tensor of at least two dimensions
---@param gain? number 1
---@param opts? {seed?: integer}
---@return gpipe.Tensor t
function fill.orthogonal_(t, gain, opts)
  local who = "nn.init.orthogonal_"
  check_float(who, t)
  gain = check.number(who, "gain", gain or 1)
  if t:dim() < 2 then
    errors.raise("%s: the tensor has %d dimensions, expected at least 2", who, t:dim())
  end
  local seed = seed_of(who, opts)
  if t:numel() == 0 then return t end
  local rows, columns = t.shape[1], t:numel() // t.shape[1]
  local drawn = create.randn({ rows, columns }, { seed = seed }):to "f64"
  local q, r = require("gpipe.linalg.factor").qr(rows < columns and drawn:t() or drawn)
  q = q * r:diagonal():sign()
  return put(t, (rows < columns and q:t() or q):reshape(t.shape) * gain)
end

--- Ones on the diagonal of a matrix, zeros elsewhere.
--- ```lua
--- assert(nn.init.eye_(gp.zeros {2, 3})[2][2] == 1)
--- ```
---@param t gpipe.Tensor of two dimensions
---@return gpipe.Tensor t
function fill.eye_(t)
  check_float("nn.init.eye_", t)
  if t:dim() ~= 2 then
    errors.raise("nn.init.eye_: the tensor has %d dimensions, expected 2", t:dim())
  end
  local rows = core.arange(1, math.max(t.shape[1], 1), 1, "i64"):narrow(1, 1, t.shape[1])
  local columns = core.arange(1, math.max(t.shape[2], 1), 1, "i64"):narrow(1, 1, t.shape[2])
  return put(t, rows:unsqueeze(2):eq(columns):to "f32")
end

--- The weight of a convolution that passes its channels through: a one in the middle of window i of
--- output i, in each group.
--- ```lua
--- local c = nn.Conv1d(2, 2, 3, {padding = 1, bias = false})
--- nn.init.dirac_(c.weight)
--- assert(c(gp.ones {1, 2, 4}):allclose(gp.ones {1, 2, 4}))
--- ```
---@param t gpipe.Tensor of three to five dimensions, [out, in, window..]
---@param groups? integer 1; divides the outputs
---@return gpipe.Tensor t
function fill.dirac_(t, groups)
  local who = "nn.init.dirac_"
  check_float(who, t)
  groups = check.integer(who, "groups", groups or 1)
  if t:dim() < 3 or t:dim() > 5 then
    errors.raise("%s: the tensor has %d dimensions, expected 3 to 5", who, t:dim())
  end
  if groups < 1 or t.shape[1] % groups ~= 0 then
    errors.raise("%s: groups are %d, expected a divisor of %d outputs", who, groups, t.shape[1])
  end
  local shape = t.shape
  local each, values = shape[1] // groups, create.zeros(shape)
  for group = 0, groups - 1 do
    for i = 1, math.min(each, shape[2]) do
      local at = { group * each + i, i }
      for d = 3, #shape do at[d] = shape[d] // 2 + 1 end
      values[at] = 1
    end
  end
  return put(t, values)
end

--- Normal numbers; a part of each column is set to 0.
--- ```lua
--- assert(nn.init.sparse_(gp.ones {10, 2}, 0.3):eq(0):sum():item() == 6)
--- ```
---@param t gpipe.Tensor of two dimensions
---@param sparsity number 0 to 1, the part of the rows (rounded up)
---@param std? number 0.01
---@param opts? {seed?: integer}
---@return gpipe.Tensor t
function fill.sparse_(t, sparsity, std, opts)
  local who = "nn.init.sparse_"
  check_float(who, t)
  sparsity, std = check.number(who, "sparsity", sparsity), check.number(who, "std", std or 0.01)
  if sparsity < 0 or sparsity > 1 then
    check.fail(who, "sparsity", sparsity, "a number from 0 to 1")
  end
  if t:dim() ~= 2 then
    errors.raise("%s: the tensor has %d dimensions, expected 2", who, t:dim())
  end
  local seed, zeros = seed_of(who, opts), math.ceil(sparsity * t.shape[1])
  local order = create.rand(t.shape, { seed = seed }):argsort(1):argsort(1)
  local values = create.randn(t.shape, { seed = seed and seed + 1 }) * std
  return put(t, core.where(order:le(zeros), 0, values))
end

for name, f in pairs(fill) do initial[name] = f end

return initial
