-- tests/spec/ops/table/shape.lua - views and copies: they move elements and compute nothing.

local gp = require "gpipe"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"
local special = require "tests.support.special"

local x, any, ids, bools = inputs.float, inputs.any, inputs.ids, inputs.bools

local ALL = { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" }

local function row(fields)
  fields.tolerance, fields.dtypes = fields.tolerance or "exact", fields.dtypes or ALL
  fields.gradient = true
  return fields
end

-- ---- reshape, permute ------------------------------------------------------------------------

local reshape = row {
  op = "reshape",
  call = function(o, a)
    if o.view then return a:view(o.to) end
    return o.loose and a:reshape(table.unpack(o.to)) or a:reshape(o.to)
  end,
  reference = function(o, a) return array.reshape(a, o.gives or o.to) end,
  cases = {
    { any { 2, 6 }, o = { to = { 3, 4 } } },
    { any { 2, 6 }, o = { to = { 12 }, view = true } },
    { any { 2, 6 }, o = { to = { 4, -1 }, gives = { 4, 3 } } },
    { any { 2, 6 }, o = { to = { 2, 1, 3, 2 }, loose = true } },
    { any { 1 }, o = { to = {} } },
    { any {}, o = { to = { 1, 1 } } },
    { any { 0, 4 }, o = { to = { 2, 0, 7 } } },
    { any { 2, 6, layout = "transposed" }, o = { to = { 12 } } },
    { any { 4, 6, layout = "narrowed" }, o = { to = { 8, 3 } } },
    { any { 4, 6, layout = "spaced" }, o = { to = { 2, 2, 6 } } },
    { any { 4, 6, layout = "expanded" }, o = { to = { 24 } } },
    { any { 2, 3, 4, layout = "swapped" }, o = { to = { 6, 4 } } },
  },
  refuses = {
    { x { 2, 3 }, o = { to = { 4 } }, error = "expected one for the 6 elements of 2x3" },
    { x { 2, 3 }, o = { to = { 4, -1 } }, error = "expected one for the 6 elements of 2x3" },
    { x { 2, 3 }, o = { to = { -1, -1 } }, error = "-1 twice" },
    { x { 2, 3 }, o = { to = { -2, 3 } }, error = "reshape: shape" },
    { x { 2, 3 }, o = { to = { 1, 1, 1, 1, 1, 1, 1, 2, 3 } }, error = "expected at most 8" },
    { x { 2, 3 }, o = { to = { 1 << 40, 1 << 40 } },
      error = "has more elements than 64 bits can count" },
    { x { 2, 3, layout = "transposed" }, o = { to = { 6 }, view = true },
      error = "not contiguous" },
  },
}

local permute = row {
  op = "permute",
  call = function(o, a)
    if o.swap then return a:transpose(table.unpack(o.swap)) end
    return a:permute(o.order)
  end,
  reference = function(o, a) return array.permute(a, o.order) end,
  cases = {
    { any { 2, 3 }, o = { order = { 2, 1 } } },
    { any { 2, 3 }, o = { order = { 1, 2 } } },
    { any { 2, 3, 4 }, o = { order = { 3, 1, 2 } } },
    { any { 2, 3, 4 }, o = { order = { 1, 3, 2 }, swap = {} } },
    { any { 2, 3, 4 }, o = { order = { 3, 2, 1 }, swap = { 1, -1 } } },
    { any { 5 }, o = { order = { 1 } } },
    { any { 2, 0, 3 }, o = { order = { 2, 3, 1 } } },
    { any { 1, 2, 1, 3, 1, 2 }, o = { order = { 6, 4, 2, 1, 3, 5 } } },
    { any { 4, 3, layout = "narrowed" }, o = { order = { 2, 1 } } },
    { any { 70, 65 }, o = { order = { 2, 1 } }, dtypes = "f32 u8 bf16" },
  },
  refuses = {
    { x { 2, 3 }, o = { order = { 1, 1 } }, error = "a dimension is given twice" },
    { x { 2, 3 }, o = { order = { 1 } },
      error = "permute: the order has 1 dimensions, expected 2" },
    { x { 2, 3 }, o = { order = { 1, 3 } }, error = "permute: dim is 3, expected 1..2 or -2..-1" },
    { x { 2 }, o = { swap = {} }, error = "transpose: a is -2, expected 1..1 or -1..-1" },
  },
}

-- ---- narrow, expand --------------------------------------------------------------------------

local narrow = row {
  op = "narrow", covers = { "pad" },
  call = function(o, a)
    if o.at then return a:select(o.dim, o.at) end
    return a:narrow(o.dim, o.first, o.length)
  end,
  reference = function(o, a)
    local dim = o.dim < 0 and #a.shape + 1 + o.dim or o.dim
    local first = o.at or o.first
    if first < 0 then first = a.shape[dim] + 1 + first end
    local part = array.narrow(a, dim, first, o.at and 1 or o.length)
    if not o.at then return part end
    local shape = { table.unpack(part.shape) }
    table.remove(shape, dim)
    return array.reshape(part, shape)
  end,
  cases = {
    { any { 5 }, o = { dim = 1, first = 2, length = 3 } },
    { any { 4, 5 }, o = { dim = 1, first = 1, length = 4 } },
    { any { 4, 5 }, o = { dim = 1, first = 2, length = 2 } },
    { any { 4, 5 }, o = { dim = 2, first = 5, length = 1 } },
    { any { 4, 5 }, o = { dim = -1, first = -2, length = 2 } },
    { any { 4, 5 }, o = { dim = 2, first = 3, length = 0 } },
    { any { 3, 4, 2 }, o = { dim = 2, first = 2, length = 2 } },
    { any { 0, 4 }, o = { dim = 2, first = 2, length = 2 } },
    { any { 70, 6 }, o = { dim = 2, first = 2, length = 3 } },
    { any { 4, 5, layout = "transposed" }, o = { dim = 2, first = 2, length = 3 } },
    { any { 4, 5, layout = "expanded" }, o = { dim = 1, first = 2, length = 2 } },
    { any { 4, 5 }, o = { dim = 2, at = 3 } },
    { any { 4, 5 }, o = { dim = 1, at = -1 } },
    { any { 4, 5, layout = "spaced" }, o = { dim = 2, at = 5 } },
    { any { 3 }, o = { dim = 1, at = 2 } },
  },
  refuses = {
    { x { 4 }, o = { dim = 1, first = 2, length = 4 },
      error = "narrow: length is 4, expected an integer in 0..3" },
    { x { 4 }, o = { dim = 1, first = 5, length = 1 },
      error = "narrow: first is 5, expected 1..4 or -4..-1" },
    { x { 4 }, o = { dim = 1, first = 0, length = 1 },
      error = "narrow: first is 0, expected 1..4" },
    { x { 4 }, o = { dim = 2, first = 1, length = 1 },
      error = "narrow: dim is 2, expected 1..1 or -1..-1" },
    { x { 4 }, o = { dim = 1, first = 1, length = -1 }, error = "narrow: length is -1" },
    { x {}, o = { dim = 1, first = 1, length = 1 }, error = "it has no dimensions" },
    { x { 4 }, o = { dim = 1, at = 5 }, error = "select: position is 5, expected 1..4 or -4..-1" },
  },
}

local expand = row {
  op = "expand",
  call = function(o, a) return a:expand(o.to) end,
  reference = function(o, a) return array.expand(a, o.to) end,
  cases = {
    { any { 1, 3 }, o = { to = { 4, 3 } } },
    { any { 3 }, o = { to = { 2, 3 } } },
    { any { 2, 1 }, o = { to = { 3, 2, 4 } } },
    { any {}, o = { to = { 2, 2 } } },
    { any { 1 }, o = { to = { 0 } } },
    { any { 2, 3 }, o = { to = { 2, 3 } } },
    { any { 1, 3, layout = "transposed" }, o = { to = { 5, 3 } } },
    { any { 3, 1, layout = "narrowed" }, o = { to = { 3, 70 } } },
  },
  refuses = {
    { x { 2, 3 }, o = { to = { 3 } }, error = "expand: shape 2x3 does not broadcast to 3" },
    { x { 2, 3 }, o = { to = { 4, 3 } }, error = "expand: shape 2x3 does not broadcast to 4x3" },
    { x { 3 }, o = { to = { -1, 3 } }, error = "expand: shape" },
  },
}

-- ---- copy, cast, concat ----------------------------------------------------------------------

local copy = row {
  op = "copy",
  call = function(o, a) return o.contiguous and a:contiguous() or a:clone() end,
  reference = function(_, a) return a end,
  cases = {}, refuses = {}, -- it takes every input
}
for _, fields in ipairs {
  { 2, 3 }, {}, { 1, 1 }, { 0, 2 }, { 300 }, { 70, 5 }, { 3, 4, layout = "transposed" },
  { 2, 3, 4, layout = "swapped" }, { 3, 4, layout = "narrowed" }, { 3, 4, layout = "spaced" },
  { 5, 4, layout = "expanded" }, { 2, 3, 2, 3, 2, layout = "transposed" },
} do
  table.insert(copy.cases, { any(fields) })
  table.insert(copy.cases, { any(fields), o = { contiguous = true } })
end

-- Large transpositions go tile by tile.
table.insert(copy.cases, { any { 70, 65, layout = "transposed" }, dtypes = "f32 bf16 u8" })

local INTEGER = { i64 = true, i32 = { -2 ^ 31, 2 ^ 31 - 1 }, u8 = { 0, 255 } }

-- Converts a value to another dtype: floats truncate and saturate, NaN becomes 0, narrower integers
-- wrap.
local function cast(v, from, to)
  if to == "bool" then return v ~= 0 and 1 or 0 end
  if not INTEGER[to] then return special.round(v, to) end
  local float = math.type(v) == "float" and from:find("f", 1, true)
  if float and v ~= v then return 0 end
  local limits = INTEGER[to]
  if float and to == "i64" then limits = { -2.0 ^ 63, 2.0 ^ 63 } end
  if float then
    if v >= limits[2] then return to == "i64" and math.maxinteger or math.tointeger(limits[2]) end
    if v <= limits[1] then return math.tointeger(limits[1]) end
    return math.tointeger(v < 0 and math.ceil(v) or math.floor(v))
  end
  if to == "u8" then return v & 255 end
  return to == "i32" and ((v + (1 << 31)) & 0xffffffff) - (1 << 31) or v
end

local EXTREMES = {
  floats = { 0.5, -0.5, 1.5, 2.5, -2.5, 255.5, 256.0, -1.0, 300.0, 65504.0, 65520.0, 1e-8, 3e9,
    -3e9, 1e19,
    -1e19, math.huge, -math.huge, 0 / 0, 2.0 ^ 24 + 1, 1.0009765625, 1.00390625 },
  i64 = { 0, 1, -1, 255, 256, -129, 1 << 31, -(1 << 31) - 1, (1 << 24) + 1, (1 << 53) + 1,
    math.maxinteger,
    math.mininteger },
  i32 = { 0, 1, -1, 255, 256, -(1 << 31), (1 << 31) - 1, (1 << 24) + 1 },
  u8 = { 0, 1, 127, 128, 255 },
  bool = { 0, 1 },
}

local function cast_case(from, to, fields)
  local spec = inputs.any(fields or { 3, 5, layout = "transposed" })
  spec.dtype = from
  return { spec, o = { from = from, to = to }, dtypes = "f32" }
end

-- f16 and bf16 get values that they can hold.
local function extremes(from)
  local list = {}
  for i, v in ipairs(EXTREMES[from] or EXTREMES.floats) do
    list[i] = EXTREMES[from] and v or special.round(v, from)
  end
  return list
end

-- Eagerly detach returns a tensor without a history; in a trace the op does it.
local detach_row = row {
  op = "detach",
  call = function(_, a) return a:detach() end,
  reference = function(_, a) return a end,
  cases = { { any { 70, 3 } }, { any { 3, 5, layout = "transposed" } }, { any { 0, 3 } }, { any {} } },
  refuses = {},
}
detach_row.gradient = false

local cast_row = row {
  op = "cast", dtypes = { "f32" }, result = { function(_, o) return o.to end },
  call = function(o, a) return a:to(o.to) end,
  reference = function(o, a) return array.map(function(v) return cast(v, o.from, o.to) end, a) end,
  cases = {
    { x { 70, 3 }, o = { from = "f64", to = "f32" }, dtypes = "f64" },
  },
  refuses = {
    { x { 2 }, o = { to = "f31" }, error = 'to: dtype or device is "f31" (string)' },
    { x { 2 }, o = { to = "tpu:0" }, error = 'to: dtype or device is "tpu:0" (string)' },
  },
}
for _, from in ipairs(ALL) do
  for _, to in ipairs(ALL) do
    table.insert(cast_row.cases, cast_case(from, to))
    local values = extremes(from)
    table.insert(cast_row.cases, cast_case(from, to, { #values, values = values }))
  end
end
table.insert(cast_row.cases, cast_case("f32", "f64", { 0, 3 }))
table.insert(cast_row.cases, cast_case("i64", "f32", {}))

-- Makes n inputs: twelve are more than an op takes.
local function many(n)
  local list = { o = { dim = 2 } }
  for i = 1, n do list[i] = any { 2, (i * 5) % 4 } end
  return list
end

local concat = row {
  op = "concat",
  call = function(o, ...) return gp.concat({ ... }, o.dim) end,
  reference = function(o, ...)
    local dim = o.dim or 1
    return array.concat({ ... }, dim < 0 and #(...).shape + 1 + dim or dim)
  end,
  cases = {
    { any { 2, 3 }, any { 4, 3 } },
    { any { 2, 3 }, any { 2, 1 }, any { 2, 2 }, o = { dim = 2 } },
    { any { 2, 3 }, any { 2, 3 }, o = { dim = -1 } },
    { any { 3 } },
    { any { 2, 0 }, any { 2, 3 }, any { 2, 0 }, o = { dim = 2 } },
    { any { 0, 3 }, any { 0, 3 } },
    { any { 2, 2, 3 }, any { 2, 1, 3 }, o = { dim = 2 } },
    { any { 3, 2, layout = "transposed" }, any { 3, 4, layout = "narrowed" }, o = { dim = 2 } },
    { any { 3, 4, layout = "expanded" }, any { 3, 4, layout = "spaced" } },
    { any { 70, 3 }, any { 70, 2 }, o = { dim = 2 } },
    many(8), many(9), many(12), many(65),
  },
  refuses = {
    { x { 2, 3 }, x { 2, 4 }, error = "concat: shapes 2x3 and 2x4 differ outside dimension 1" },
    { x { 2, 3 }, x { 2 }, error = "concat: shapes 2x3 and 2 differ outside dimension 1" },
    { x { 2 }, ids { 2, below = 3 }, error = "concat: f32 and i64 differ" },
    { x { 2 }, bools { 2 }, error = "concat: f32 and bool differ" },
    { x { 2 }, x { 2 }, o = { dim = 2 }, error = "concat: dim is 2, expected 1..1 or -1..-1" },
    { x {}, x {}, error = "it has no dimensions" },
  },
}

return { reshape, permute, narrow, expand, copy, detach_row, cast_row, concat }
