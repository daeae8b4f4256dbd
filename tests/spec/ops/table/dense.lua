-- tests/spec/ops/table/dense.lua - products of matrices, fully connected layers, tables of rows.

local core = require "gpipe.core"
local array = require "tests.support.array"
local inputs = require "tests.support.inputs"
local reference = require "tests.support.linear"

local x, ids, bools = inputs.float, inputs.ids, inputs.bools

-- ---- matmul ----------------------------------------------------------------------------------

local function without(shape, dim)
  local less = { table.unpack(shape) }
  table.remove(less, dim)
  return less
end

-- A vector is a row on the left and a column on the right, and its dimension is dropped again.
local function matmul_reference(_, a, b)
  local row, column = #a.shape == 1, #b.shape == 1
  if row then a = array.reshape(a, { 1, a.shape[1] }) end
  if column then b = array.reshape(b, { b.shape[1], 1 }) end
  local out = array.matmul(a, b)
  if column then out = array.reshape(out, without(out.shape, #out.shape)) end
  if row then
    out = array.reshape(out, without(out.shape, column and #out.shape or #out.shape - 1))
  end
  return out
end

local T, N, S, E = "swapped", "narrowed", "spaced", "expanded"

local matmul = {
  op = "matmul", tolerance = "product", gradient = true,
  call = function(_, a, b) return a:matmul(b) end,
  reference = matmul_reference,
  cases = {
    { x { 3, 4 }, x { 4, 5 } },
    { x { 1, 1 }, x { 1, 1 } },
    { x { 3, 4, layout = T }, x { 4, 5 } },
    { x { 3, 4 }, x { 4, 5, layout = T } },
    { x { 3, 4, layout = T }, x { 4, 5, layout = T } },
    { x { 3, 4, layout = N }, x { 4, 5, layout = S } },
    { x { 3, 4, layout = E }, x { 4, 5, layout = E } },
    { x { 70, 9 }, x { 9, 66 }, dtypes = "f32" },
    { x { 130, 3, layout = T }, x { 3, 5 } },
    { x { 3, 150 }, x { 150, 4 } },
    -- stacks
    { x { 2, 3, 4 }, x { 2, 4, 5 } },
    { x { 2, 3, 4, layout = T }, x { 2, 4, 5 } },
    { x { 2, 3, 4 }, x { 2, 4, 5, layout = T } },
    { x { 2, 3, 4, layout = T }, x { 2, 4, 5, layout = T } },
    { x { 2, 3, 4, layout = "transposed" }, x { 2, 4, 5, layout = "transposed" } },
    { x { 2, 3, 4 }, x { 4, 5 } },
    { x { 2, 3, 4, layout = T }, x { 4, 5 } },
    { x { 2, 3, 4 }, x { 4, 5, layout = T } },
    { x { 3, 4 }, x { 2, 4, 5 } },
    { x { 2, 1, 3, 4 }, x { 5, 4, 2 } },
    { x { 2, 1, 3, 4, layout = T }, x { 1, 5, 4, 2, layout = T } },
    { x { 1, 3, 4 }, x { 4, 5 } },
    { x { 2, 40, 3 }, x { 3, 2 } },
    { x { 3, 2, 4, layout = E }, x { 3, 4, 2, layout = E } },
    -- vectors
    { x { 4 }, x { 4, 5 } },
    { x { 3, 4 }, x { 4 } },
    { x { 4 }, x { 4 } },
    { x { 4 }, x { 2, 4, 5 } },
    { x { 2, 3, 4 }, x { 4 } },
    { x { 4, layout = S }, x { 4, 5, layout = T } },
    -- nothing
    { x { 0, 4 }, x { 4, 5 } },
    { x { 3, 0 }, x { 0, 5 } },
    { x { 3, 4 }, x { 4, 0 } },
    { x { 0, 3, 4 }, x { 0, 4, 5 } },
    { x { 2, 3, 0 }, x { 0, 5 } },
    { x { 0 }, x { 0 } },
  },
  refuses = {
    { x { 3, 4 }, x { 3, 4 },
      error = "matmul: right operand is 3x4, expected 4x? (left operand is 3x4)" },
    { x { 3 }, x { 4, 5 }, error = "matmul: right operand is 4x5, expected 3x?" },
    { x {}, x { 4, 5 }, error = "matmul: the left operand is a scalar" },
    { x { 4, 5 }, x {}, error = "matmul: the right operand is a scalar" },
    { x { 2, 3, 4 }, x { 3, 4, 5 }, error = "their leading dimensions must be equal or 1" },
    { x { 3, 4 }, x { 4, 5, dtype = "f64" }, error = "matmul: right operand is f64, expected f32" },
    { ids { 3, 4, below = 2 }, x { 4, 5 },
      error = "matmul: left operand is i64, expected f32 or f64" },
    { x { 3, 4, dtype = "bf16" }, x { 4, 5 },
      error = "right operand is f32, expected bf16 (left operand is bf16)" },
  },
}

-- ---- linear ----------------------------------------------------------------------------------

local function linear_reference(_, a, w, b) return reference(a, w, b) end

local linear = {
  op = "linear", covers = { "linear_dx", "linear_dw", "linear_bias_dw", "sum_rows_dw", "pack_linear" },
  tolerance = "product",
  gradient = true,
  call = function(_, a, w, b) return core.linear(a, w, b) end,
  reference = linear_reference,
  cases = {
    { x { 3, 4 }, x { 5, 4 }, x { 5 } },
    { x { 3, 4 }, x { 5, 4 } },
    { x { 4 }, x { 5, 4 }, x { 5 } },
    { x { 2, 3, 4 }, x { 5, 4 }, x { 5 } },
    { x { 2, 1, 3, 4 }, x { 1, 4 }, x { 1 } },
    { x { 1, 1 }, x { 1, 1 }, x { 1 } },
    { x { 130, 3 }, x { 4, 3 }, x { 4 } },
    { x { 3, 2 }, x { 130, 2 }, x { 130 } },
    { x { 2, 3 }, x { 780, 3 }, x { 780 }, dtypes = "f32" },
    { x { 3, 4, layout = "transposed" }, x { 5, 4, layout = "transposed" },
      x { 5, layout = "spaced" } },
    { x { 3, 4, layout = "narrowed" }, x { 5, 4, layout = "narrowed" } },
    { x { 3, 4, layout = "expanded" }, x { 5, 4, layout = "expanded" } },
    { x { 0, 4 }, x { 5, 4 }, x { 5 } },
    { x { 3, 0 }, x { 5, 0 }, x { 5 } },
    { x { 3, 0 }, x { 5, 0 } },
    { x { 3, 4 }, x { 0, 4 }, x { 0 } },
    { x { 3, 4, fixed = true }, x { 5, 4 }, x { 5 } },
    { x { 3, 4 }, x { 5, 4, fixed = true }, x { 5 } },
    { x { 3, 4 }, x { 5, 4 }, x { 5, fixed = true } },
  },
  refuses = {
    { x { 3, 5 }, x { 5, 4 }, x { 5 },
      error = "linear: input is 3x5, expected ?x4 (weight is 5x4)" },
    { x {}, x { 5, 4 }, error = "linear: input is scalar, expected at least 1 dimension" },
    { x { 3, 4 }, x { 4 }, error = "linear: weight is 4, expected ?x?" },
    { x { 3, 4 }, x { 5, 4 }, x { 4 }, error = "linear: bias is 4, expected 5 (weight is 5x4)" },
    { x { 3, 4 }, x { 5, 4, dtype = "f64" },
      error = "linear: weight is f64, expected f32 (input is f32)" },
    { ids { 3, 4, below = 2 }, x { 5, 4 }, error = "linear: input is i64, expected f32 or f64" },
  },
}

-- ---- embedding -------------------------------------------------------------------------------

local function embedding_reference(_, list, w)
  local shape = { table.unpack(list.shape) }
  shape[#shape + 1] = w.shape[2]
  return array.build(shape, function(i)
    local at = { table.unpack(i, 1, #i - 1) }
    return array.at(w, { array.at(list, at) + 1, i[#i] })
  end)
end

local embedding = {
  op = "embedding", covers = { "embedding_dw" }, tolerance = "exact", gradient = true,
  call = function(_, list, w) return core.embedding(list, w) end,
  reference = embedding_reference,
  cases = {
    { ids { 3, below = 5 }, x { 5, 4 } },
    { ids { 2, 3, below = 5, dtype = "i32" }, x { 5, 4 } },
    { ids { 2, 3, below = 5, dtype = "u8" }, x { 5, 4 } },
    { ids { below = 5 }, x { 5, 4 } },
    { ids { 6, values = { 4, 0, 4, 4, 0, 2 } }, x { 5, 3 } },
    { ids { 1, 1, below = 1 }, x { 1, 1 } },
    { ids { 0, below = 5 }, x { 5, 4 } },
    { ids { 3, below = 5 }, x { 5, 0 } },
    { ids { 65, 2, below = 7 }, x { 7, 3 } },
    { ids { 20, below = 5 }, x { 5, 70 } },
    { ids { 3, 4, below = 5, layout = "transposed" }, x { 5, 4, layout = "transposed" } },
    { ids { 3, 4, below = 5, layout = "expanded" }, x { 5, 4, layout = "narrowed" } },
    { ids { 3, 4, below = 5, layout = "spaced", dtype = "i32" }, x { 5, 4, layout = "spaced" } },
  },
  refuses = {
    { ids { 2, values = { 1, 5 } }, x { 5, 4 }, error = "id 5 at row 2 is outside 0..4" },
    { ids { 2, 2, values = { 0, 1, -1, 0 } }, x { 5, 4 },
      error = "id -1 at row 2, position 1 is outside 0..4" },
    { ids { 1, values = { 200 }, dtype = "u8" }, x { 5, 4 },
      error = "id 200 at row 1 is outside 0..4" },
    { ids { 1, values = { 0 } }, x { 0, 4 }, error = "id 0 at row 1 is outside 0..-1" },
    { x { 3 }, x { 5, 4 }, error = "embedding: ids is f32, expected i64, i32 or u8" },
    { bools { 3 }, x { 5, 4 }, error = "embedding: ids is bool, expected i64, i32 or u8" },
    { ids { 3, below = 5 }, x { 5 }, error = "embedding: weight is 5, expected ?x?" },
    { ids { 3, below = 5 }, ids { 5, 4, below = 5 },
      error = "embedding: weight is i64, expected f32 or f64" },
  },
}

return { matmul, linear, embedding }
