-- tests/support/inputs.lua - how the op table describes an input: shape, kind of values, layout.
--
-- `float{2, 3, layout = "transposed"}` is a 2x3 value that lies column by column. Every layout is
-- written twice: as tensor methods make it from a contiguous base, and as plain arrays do. So
-- gradients can be followed back to the base. Values come from a generator of our own and are exact
-- in the dtype.

local gp = require "gpipe"
local array = require "tests.support.array"

local inputs = {}

-- ---- declaring -------------------------------------------------------------------------------

-- {2, 3, low = 0} -> {kind, shape = {2, 3}, low = 0}
local function declare(kind)
  return function(fields)
    local spec = { kind = kind, shape = {} }
    for key, value in pairs(fields) do
      if math.type(key) then spec.shape[key] = value else spec[key] = value end
    end
    return spec
  end
end

--- Floats of the dtype in which the row runs, in [low, high), -2 to 2 by default. signed: of both
--- signs, low to high away from 0. fixed: the input needs no gradient. values: a list instead of
--- drawn ones.
inputs.float = declare "float"
--- Values of the dtype in which the row runs: integers and booleans where it is one.
inputs.any = declare "any"
--- Integers in [0, below) of `dtype` ("i64" by default).
inputs.ids = declare "ids"
inputs.bools = declare "bools"

-- ---- layouts ---------------------------------------------------------------------------------

local function reverse(rank)
  local order = {}
  for d = 1, rank do order[d] = rank + 1 - d end
  return order
end

local function swap(rank)
  local order = {}
  for d = 1, rank do order[d] = d end
  order[rank - 1], order[rank] = rank, rank - 1
  return order
end

local function permuted(order_of)
  return {
    base = function(shape)
      local base = {}
      for d, from in ipairs(order_of(#shape)) do base[from] = shape[d] end
      return base
    end,
    tensor = function(t, shape) return t:permute(order_of(#shape)) end,
    array = function(a, shape) return array.permute(a, order_of(#shape)) end,
  }
end

-- Cuts a block out of the middle of something larger in every dimension.
local narrowed = {
  base = function(shape)
    local base = {}
    for d, size in ipairs(shape) do base[d] = size + 2 end
    return base
  end,
  tensor = function(t, shape)
    for d, size in ipairs(shape) do t = t:narrow(d, 2, size) end
    return t
  end,
  array = function(a, shape)
    for d, size in ipairs(shape) do a = array.narrow(a, d, 2, size) end
    return a
  end,
}

-- Takes every third element of a line: no two are adjacent.
local spaced = {
  base = function(shape)
    local base = { table.unpack(shape) }
    base[#base + 1] = 3
    return base
  end,
  tensor = function(t) return t:select(-1, 2) end,
  array = function(a, shape)
    return array.reshape(array.narrow(a, #shape + 1, 2, 1), shape)
  end,
}

-- Repeats one line along the first dimension without a copy.
local expanded = {
  base = function(shape)
    local base = { table.unpack(shape) }
    base[1] = 1
    return base
  end,
  tensor = function(t, shape) return t:expand(shape) end,
  array = function(a, shape) return array.expand(a, shape) end,
}

local LAYOUTS = {
  transposed = permuted(reverse), swapped = permuted(swap), narrowed = narrowed, spaced = spaced,
  expanded = expanded,
}

-- ---- values ----------------------------------------------------------------------------------

local FLOATS = { f32 = true, f64 = true, bf16 = true, f16 = true }
local TRAINABLE = { f32 = true, f64 = true } -- dtypes of parameters
local GRAIN = { f32 = 1024, f64 = 1024, bf16 = 16, f16 = 16 } -- values are multiples of 1 / grain

-- A linear congruential generator: Knuth's MMIX constants, the upper bits.
local function generator(seed)
  local state = seed * 2654435761 + 12345
  return function(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n
  end
end

local function draw_float(spec, dtype, draw)
  local grain = GRAIN[dtype]
  local low = spec.low or (spec.signed and 0.25 or -2)
  local steps = math.floor(((spec.high or 2) - low) * grain)
  local x = low + draw(steps) / grain
  return spec.signed and draw(2) == 0 and -x or x
end

local function draw_one(spec, dtype, draw)
  if FLOATS[dtype] then return draw_float(spec, dtype, draw) end
  if dtype == "bool" then return draw(2) end
  if spec.kind == "ids" then return draw(spec.below) end
  return dtype == "u8" and draw(200) or draw(200) - 100
end

local function dtype_of(spec, dtype)
  if spec.dtype then return spec.dtype end
  if spec.kind == "ids" then return "i64" end
  return spec.kind == "bools" and "bool" or dtype
end

-- ---- making ----------------------------------------------------------------------------------

--- Make one input of one run: its spec, dtype and the array that its memory holds first.
---@param spec table
---@param dtype string of the run
---@param seed integer
function inputs.make(spec, dtype, seed)
  local own, layout = dtype_of(spec, dtype), LAYOUTS[spec.layout]
  local base = layout and layout.base(spec.shape) or spec.shape
  local draw, given = generator(seed), spec.values
  return {
    spec = spec, dtype = own, layout = layout, differentiable = TRAINABLE[own] and not spec.fixed,
    base = array.build(base, function(_, flat)
      return given and given[flat] or draw_one(spec, own, draw)
    end),
  }
end

--- Return the value that the op sees, as an array; base may be another one of the same shape.
function inputs.logical(input, base)
  base = base or input.base
  return input.layout and input.layout.array(base, input.spec.shape) or base
end

--- Return the base as a contiguous tensor.
function inputs.tensor(input)
  return gp.tensor({ table.unpack(input.base) }, { dtype = input.dtype }):reshape(input.base.shape)
end

--- Return a tensor of the base's shape (real or symbolic) in the layout that the op shall see.
function inputs.view(input, t)
  return input.layout and input.layout.tensor(t, input.spec.shape) or t
end

--- Return "f32 2x3 transposed", for messages.
function inputs.show(spec, dtype)
  local shape = #spec.shape == 0 and "scalar" or table.concat(spec.shape, "x")
  return ("%s %s%s"):format(dtype_of(spec, dtype), shape, spec.layout and " " .. spec.layout or "")
end

return inputs
