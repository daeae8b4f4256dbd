-- lua/gpipe/tensor/create.lua - gp.tensor, zeros, ones, full, arange, eye, linspace, logspace,
-- frombytes, rand, randn.
--
-- Only options and defaults are decided here: the default dtype is f32, and draws without a seed
-- come from the streams of gp.seed.

local core = require "gpipe.core"
local check = require "gpipe.tensor.methods.check"
local errors = require "gpipe.errors"
local is_tensor = require "gpipe.tensor.is"
local options = require "gpipe.options"
local random = require "gpipe.random"

local create = {}

local DTYPES = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }

local function check_device(name)
  local good, why = core.device_check(name)
  return not good and "a device that is here: " .. why or nil
end

-- Move a tensor, which was made in host memory, to its device.
local function placed(tensor, o)
  local made = o.device == "cpu" and tensor or tensor:to(o.device)
  if o.requires_grad then made.requires_grad = true end
  return made
end

local common = {
  dtype = { type = "string", choices = DTYPES, default = "f32" },
  device = { type = "string", default = "cpu", check = check_device },
}
local drawn = { dtype = common.dtype, device = common.device, seed = { type = "integer" } }
local LEAF = { type = "boolean" }

local function with_leaf(rules)
  local all = { requires_grad = LEAF }
  for name, rule in pairs(rules) do all[name] = rule end
  return all
end

--- Options for functions built on these: those of all tensors, those of drawn ones, and both with
--- requires_grad.
create.rules = { common = common, drawn = drawn,
  filled_leaf = with_leaf(common), drawn_leaf = with_leaf(drawn) }
common, drawn = create.rules.filled_leaf, create.rules.drawn_leaf
local taken = with_leaf { dtype = { type = "string", choices = DTYPES }, device = common.device }

---@alias gpipe.dtype "f32"|"f64"|"bf16"|"f16"|"i64"|"i32"|"u8"|"bool"
---@class gpipe.TensorOptions
---@field dtype? gpipe.dtype "f32" by default
---@field device? string "cpu" by default, or "cuda:0"
---@field requires_grad? boolean true: gradients reach it, in t.grad after loss:backward()

---@class gpipe.DrawnOptions: gpipe.TensorOptions
---@field seed? integer of the draw; default: the streams of gp.seed

-- A shape is a table; a lone integer is taken as {n}.
local function check_shape(who, shape)
  if math.type(shape) then return { shape } end
  if type(shape) == "table" then return shape end
  errors.raise("%s: shape is %s, expected a table like {32, 128}", who, errors.show(shape))
end

-- Sizes may come one by one, then options: gp.zeros(2, 3, {dtype = "f64"}).
local function read_sizes(shape, opts, ...)
  if not (math.type(shape) and math.type(opts)) then return shape, opts end
  local sizes = { shape, opts, ... }
  local last = type(sizes[#sizes]) == "table" and table.remove(sizes) or nil
  return sizes, last
end

-- ---- from values -----------------------------------------------------------------------------

--- Make a tensor from a number or nested tables; a tensor is copied.
---
--- Values become f32 (bool if the first one is a boolean) unless opts.dtype says otherwise.
--- Errors: tables that are ragged, with the path of the element; values the dtype cannot hold.
--- ```lua
--- local t = gp.tensor {{1, 2, 3}, {4, 5, 6}}             -- f32 2x3
--- local ids = gp.tensor({3, 1, 2}, {dtype = "i64"})
--- ```
---@param x number|boolean|table|gpipe.Tensor
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function create.tensor(x, opts)
  local o = options.check("gp.tensor", opts, taken)
  if is_tensor(x) then
    local copy = x:clone()
    return placed(o.dtype and copy:to(o.dtype) or copy, o)
  end
  return placed(core.tensor(x, o.dtype), o)
end

-- ---- filled ----------------------------------------------------------------------------------

--- Make a tensor with every element set to a value.
--- ```lua
--- local mask = gp.full({4, 4}, -1e9)
--- ```
---@param shape integer[]|integer {} is a scalar
---@param value number|boolean
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function create.full(shape, value, opts)
  local o = options.check("gp.full", opts, common)
  if type(value) ~= "number" and type(value) ~= "boolean" then
    errors.raise("gp.full: value is %s, expected a number", errors.show(value))
  end
  return placed(core.full("gp.full", check_shape("gp.full", shape), value, o.dtype), o)
end

--- Make a tensor of zeros.
--- ```lua
--- local z = gp.zeros {2, 3}              -- or gp.zeros(2, 3)
--- ```
---@param shape integer[]|integer a list, or sizes one by one
---@param opts? gpipe.TensorOptions after the sizes
---@return gpipe.Tensor
function create.zeros(shape, opts, ...)
  shape, opts = read_sizes(shape, opts, ...)
  local o = options.check("gp.zeros", opts, common)
  return placed(core.full("gp.zeros", check_shape("gp.zeros", shape), 0, o.dtype), o)
end

--- Make a tensor of ones.
--- ```lua
--- local o = gp.ones({2, 3}, {dtype = "f64"})
--- ```
---@param shape integer[]|integer a list, or sizes one by one
---@param opts? gpipe.TensorOptions after the sizes
---@return gpipe.Tensor
function create.ones(shape, opts, ...)
  shape, opts = read_sizes(shape, opts, ...)
  local o = options.check("gp.ones", opts, common)
  return placed(core.full("gp.ones", check_shape("gp.ones", shape), 1, o.dtype), o)
end

--- Make the row first, first + step, ... up to `last`, which is included if a step meets it; with
--- one number n, the row 1, 2, ... n.
--- ```lua
--- local t = gp.arange(1, 10)             -- 1, 2, ... 10
--- local u = gp.arange(0, 1, 0.25)        -- 0, 0.25, 0.5, 0.75, 1
--- ```
---@param first number
---@param last? number if it is left out, the range goes from 1 to the given number
---@param step? number 1 by default; not 0
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function create.arange(first, last, step, opts)
  local alone = step == nil and opts == nil and (last == nil or type(last) == "table")
  if alone and math.type(first) then
    first, last, opts = 1, first, last
  end
  if type(step) == "table" and opts == nil then step, opts = nil, step end
  local o = options.check("gp.arange", opts, common)
  return placed(core.arange(first, last, step == nil and 1 or step, o.dtype), o)
end

-- ---- drawn -----------------------------------------------------------------------------------

--- The identity: ones where row and column are equal.
--- ```lua
--- assert(gp.eye(3):sum():item() == 3)
--- ```
---@param n integer
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor [n, n]
function create.eye(n, opts)
  n = check.count("gp.eye: n", n, 1)
  local o = options.check("gp.eye", opts, create.rules.common)
  local row = core.arange(1, n, 1, "i64")
  local t = create.full({ n, n }, 0, o)
  return core.where(row:reshape(n, 1):eq(row), 1, t)
end

--- n numbers from a to b, both included, with equal distances.
--- ```lua
--- assert(gp.linspace(0, 1, 5)[2] == 0.25)
--- ```
---@param a number
---@param b number
---@param n integer
---@param opts? gpipe.TensorOptions
---@return gpipe.Tensor
function create.linspace(a, b, n, opts)
  n = check.count("gp.linspace: n", n, 1)
  local o = options.check("gp.linspace", opts, create.rules.common)
  if not math.type(a) or not math.type(b) then
    errors.raise("gp.linspace: the range is %s to %s, expected numbers", errors.show(a),
      errors.show(b))
  end
  local values = {}
  for i = 1, n do values[i] = n == 1 and a or a + (b - a) * ((i - 1) / (n - 1)) end
  if n > 1 then values[n] = b end
  return create.tensor(values, o)
end

--- n numbers from base^a to base^b, both included, with equal ratios.
--- ```lua
--- assert(gp.logspace(0, 2, 3)[2] == 10)
--- ```
---@param a number
---@param b number
---@param n integer
---@param opts? {base?: number, dtype?: gpipe.dtype, device?: string} base: 10
---@return gpipe.Tensor
function create.logspace(a, b, n, opts)
  local o = options.check("gp.logspace", opts, {
    base = { type = "number", above = 0, default = 10 }, dtype = common.dtype,
    device = common.device,
  })
  n = check.count("gp.logspace: n", n, 1)
  if not math.type(a) or not math.type(b) then
    errors.raise("gp.logspace: the range is %s to %s, expected numbers", errors.show(a),
      errors.show(b))
  end
  local values = create.linspace(a, b, n, { dtype = "f64" }):totable()
  for i, power in ipairs(values) do values[i] = o.base ^ power end
  return create.tensor(values, { dtype = o.dtype, device = o.device })
end

--- Make a tensor of this shape and dtype from the bytes that `t:bytes()` returned.
---
--- Errors: another number of bytes; a byte of bool that is neither 0 nor 1.
--- ```lua
--- local t = gp.randn {2, 3}
--- assert(gp.equal(t, gp.frombytes(t:bytes(), {2, 3}, "f32")))
--- ```
---@param s string
---@param shape integer[]
---@param dtype gpipe.dtype
---@return gpipe.Tensor
function create.frombytes(s, shape, dtype)
  if type(s) ~= "string" then
    errors.raise("gp.frombytes: the first argument is %s, expected a string", errors.show(s))
  end
  return core.frombytes(s, shape, dtype)
end

-- Record a draw in forward as an op, which draws from the step's own stream. (A draw with a seed is
-- a constant instead.)
local function record(who, kind, shape, o, device)
  if device then
    errors.raise("%s: device is %q in forward, expected none: values lie where their stage runs",
      who, device)
  end
  if o.requires_grad then
    errors.raise("%s: requires_grad in forward, expected a parameter of the layer", who)
  end
  return core.draw(who, shape, kind, o.dtype)
end

local function draw(who, kind, shape, opts)
  local o = options.check(who, opts, drawn)
  shape = check_shape(who, shape)
  if core.tracing() and not o.seed then return record(who, kind, shape, o, opts and opts.device) end
  local seed, stream = random.next(o.seed)
  return placed(core.random(who, shape, kind, o.dtype, seed, stream), o)
end

--- Draw from the uniform distribution on [0, 1). In a layer's forward it draws anew in every step,
--- unless opts.seed is given: then the values are constants.
--- ```lua
--- local x = gp.rand({2, 3}, {seed = 1})
--- ```
---@param shape integer[]|integer a list, or sizes one by one
---@param opts? gpipe.DrawnOptions
---@return gpipe.Tensor
function create.rand(shape, opts, ...)
  return draw("gp.rand", "uniform", read_sizes(shape, opts, ...))
end

--- Draw from the normal distribution with mean 0 and deviation 1. In a layer's forward it draws
--- anew in every step, as gp.rand does.
--- ```lua
--- local x = 0.02 * gp.randn {128, 128}
--- ```
---@param shape integer[]|integer a list, or sizes one by one
---@param opts? gpipe.DrawnOptions
---@return gpipe.Tensor
function create.randn(shape, opts, ...)
  return draw("gp.randn", "normal", read_sizes(shape, opts, ...))
end

return create
