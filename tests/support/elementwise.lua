-- tests/support/elementwise.lua - builds the rows of elementwise ops in the op table.
--
-- All of these ops walk over memory in one way (runtime/ops/elementwise), so the layouts to test
-- are written once.

local gp = require "gpipe"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"

local x, bools = inputs.float, inputs.bools

local elementwise = {}

-- ---- shapes ----------------------------------------------------------------------------------

-- Makes {2, 3, layout = ...} with the values of a range.
local function filled(make, range, fields)
  local spec = make(fields)
  for key, value in pairs(range) do spec[key] = value end
  return spec
end

-- Returns layouts and sizes of one input: every way that the walk over memory can take.
function elementwise.one_input(make, range)
  local cases = {}
  for i, fields in ipairs {
    { 2, 3 }, {}, { 1 }, { 1, 1, 1 }, { 7 }, { 0, 3 }, { 2, 0 }, { 300 }, { 70, 5 }, { 2, 3, 4, 5 },
    { 3, 4, layout = "transposed" }, { 2, 3, 4, layout = "swapped" }, { 3, 5, layout = "narrowed" },
    { 4, 5, layout = "spaced" }, { 6, 3, layout = "expanded" },
  } do
    cases[i] = { filled(make, range, fields) }
  end
  return cases
end

-- Pairs that broadcast in every direction, in every layout.
local PAIRS = {
  { { 2, 3 }, { 2, 3 } }, { { 2, 3 }, { 3 } }, { { 3 }, { 2, 3 } }, { { 2, 3 }, {} }, { {}, { 4 } },
  { {}, {} }, { { 4, 1 }, { 1, 5 } }, { { 2, 1, 3 }, { 4, 1 } }, { { 1, 1 }, { 5 } },
  { { 0, 3 }, { 3 } },
  { { 2, 1 }, { 2, 0 } }, { { 70, 5 }, { 70, 5 } }, { { 300 }, { 300 } }, { { 70, 5 }, { 70, 1 } },
  { { 3, 4, layout = "transposed" }, { 3, 4 } }, { { 3, 4 }, { 3, 4, layout = "narrowed" } },
  { { 3, 4, layout = "spaced" }, { 4, layout = "spaced" } },
  { { 5, 4, layout = "expanded" }, { 5, 4, layout = "transposed" } },
  { { 2, 3, 4, layout = "swapped" }, { 3, 1, layout = "narrowed" } },
}

function elementwise.two_inputs(make, first, second)
  local cases = {}
  for i, pair in ipairs(PAIRS) do
    cases[i] = { filled(make, first, pair[1]), filled(make, second or first, pair[2]) }
  end
  return cases
end

local function with_numbers(cases, first, second)
  cases[#cases + 1] = { filled(x, first, { 3, 4 }), o = { right = 1.5 } }
  cases[#cases + 1] = { filled(x, second, { 3, 4, layout = "narrowed" }), o = { left = 1.5 } }
  return cases
end

-- What a further op must still show, since other ops have shown the walk.
local FEW = {
  { 2, 3 }, {}, { 0, 3 }, { 300 }, { 3, 4, layout = "transposed" }, { 4, 5, layout = "spaced" },
}
local FEW_PAIRS = { 1, 2, 4, 7, 10, 13, 15, 17 }

--- Return a few of the cases of one_input.
function elementwise.few(make, range)
  local cases = {}
  for i, fields in ipairs(FEW) do cases[i] = { filled(make, range, fields) } end
  return cases
end

--- Return a few of the cases of two_inputs.
function elementwise.few_pairs(make, first, second)
  local all, cases = elementwise.two_inputs(make, first, second), {}
  for i, number in ipairs(FEW_PAIRS) do cases[i] = all[number] end
  return cases
end

-- ---- rows ------------------------------------------------------------------------------------

elementwise.MISMATCH = {
  { x { 2, 3 }, x { 4 }, error = "shapes 2x3 and 4 do not broadcast" },
  { x { 2, 3 }, x { 3, 2 }, error = "shapes 2x3 and 3x2 do not broadcast" },
  { x { 2 }, x { 2, dtype = "f64" }, error = "f32 and f64 differ" },
  { x { 2 }, inputs.ids { 2, below = 3 },
    error = 'f32 and i64 differ; convert one with :to("f32")' },
  { x { 2 }, x { 2, dtype = "bf16" }, error = "f32 and bf16 differ" },
}

local function refusals(own)
  return table.move(own, 1, #own, #elementwise.MISMATCH + 1,
    table.move(elementwise.MISMATCH, 1, #elementwise.MISMATCH, 1, {}))
end

-- Ops that compute with integers; the other ops (and narrower dtypes) get an error.
local NUMBERS = {
  add = true, sub = true, mul = true, neg = true, abs = true, sign = true, square = true,
  maximum = true, minimum = true, clamp = true,
}

local function refused(op)
  local dtype = NUMBERS[op] and "u8" or "i64"
  local wanted = NUMBERS[op] and "f32, f64, i64 or i32" or "f32 or f64"
  return dtype, wanted
end

-- Makes a row of a op b, as method and operator; f may get numbers on either side.
function elementwise.arithmetic(op, f, tolerance, first, second)
  second = second or first
  local integer, wanted = refused(op)
  return {
    op = op,
    call = function(o, a, b)
      if o.right then return f(a, o.right) end
      if o.left then return f(o.left, a) end
      return a[op](a, b)
    end,
    reference = function(o, a, b)
      if o.right then b = array.scalar(o.right) end
      if o.left then a, b = array.scalar(o.left), a end
      return array.map(f, a, b)
    end,
    tolerance = tolerance, gradient = true,
    cases = with_numbers(elementwise.two_inputs(x, first, second), first, second),
    refuses = refusals {
      { x { 2, dtype = integer }, x { 2, dtype = integer },
        error = ("%s: input is %s, expected %s"):format(op, integer,
        wanted) },
      { bools { 2 }, bools { 2 }, error = op .. ": input is bool, expected " .. wanted },
    },
  }
end

-- Makes a row of t:op() from the function that it computes.
function elementwise.unary(op, f, tolerance, range)
  local integer, wanted = refused(op)
  return {
    op = op, tolerance = tolerance, gradient = true,
    call = function(_, a) return a[op](a) end,
    reference = function(_, a) return array.map(f, a) end,
    cases = elementwise.one_input(x, range or {}),
    refuses = {
      { x { 2, dtype = integer },
        error = ("%s: input is %s, expected %s"):format(op, integer, wanted) },
      { bools { 2 }, error = 'convert it with :to("f32")' },
    },
  }
end

--- Values that show what an op does with the ends of a dtype, zeros, infinities and NaN.
elementwise.BROKEN = {
  math.huge, -math.huge, 0 / 0, 0.0, -0.0, 1.0, -1.0, 2.0 ^ 127, -2.0 ^ 127, 2.0 ^ -100,
}

--- Make a row of t:op() for a formula (runtime/ops/elementwise/unary.h), with BROKEN too unless
--- broken is false.
function elementwise.formula(op, f, tolerance, range, broken)
  local row = elementwise.unary(op, f, tolerance, range)
  row.cases = elementwise.few(inputs.any, range or {})
  if broken ~= false then
    local values = broken or elementwise.BROKEN
    table.insert(row.cases, { x { #values, values = values, fixed = true }, dtypes = "f32 f64" })
  end
  if NUMBERS[op] then row.dtypes = { "f32", "f64", "i64", "i32" } end
  return elementwise.covering(row, op .. "_dx")
end

--- Make the same row for an op through which no gradient flows.
function elementwise.steps(op, f, range)
  local row = elementwise.formula(op, f, "exact", range)
  row.covers, row.gradient = nil, false
  return row
end

--- Return the gradients of the sum of f(t) at the elements of a list.
---@return number[]
function elementwise.slopes(f, list, dtype)
  local nn = gp.nn
  local One = nn.class "One"
  function One:init()
    self.p = nn.Parameter({ #list }, gp.tensor(list, { dtype = dtype }), { dtype = dtype })
  end
  function One:forward(one) return f(self.p) * one end
  local pipe <close> = gp.pipeline(nn.Sequential { One() }, {
    loss = function(output) return output:sum(), 1 end,
  })
  pipe:step(gp.ones({ 1, 1 }, { dtype = dtype }), gp.zeros { 1 })
  return pipe:parameters()[1].grad:totable()
end

function elementwise.covering(row, ...)
  row.covers = { ... }
  return row
end

return elementwise
