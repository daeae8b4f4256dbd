-- tests/spec/ops/table/loss.lua - cross entropy, its count, squared differences, and the seed of
-- all gradients.

local assert = require "luassert"
local gp = require "gpipe"
local core = require "gpipe.core"
local array = require "tests.support.array"
local elementwise = require "tests.support.elementwise"
local expect = require "tests.support.expect"
local inputs = require "tests.support.inputs"

local nn = gp.nn
local x, ids, bools = inputs.float, inputs.ids, inputs.bools

-- ---- cross_entropy ---------------------------------------------------------------------------

-- Computes minus log softmax of each element, along the last dimension.
local function surprise(a)
  return array.lines(a, function(row)
    local top, sum, out = -math.huge, 0.0, {}
    for _, v in ipairs(row) do top = math.max(top, v) end
    for _, v in ipairs(row) do sum = sum + math.exp(v - top) end
    for i, v in ipairs(row) do out[i] = math.log(sum) + (top - v) end
    return out
  end)
end

local function cross_entropy_reference(o, a, list)
  local nll, classes, e = surprise(a), a.shape[#a.shape], o.smoothing or 0
  return array.build(list.shape, function(i)
    local id = array.at(list, i)
    if id == o.ignore then return 0.0 end
    local at, mean = { table.unpack(i) }, 0.0
    for j = 1, classes do
      at[#i + 1] = j
      mean = mean + array.at(nll, at) / classes
    end
    at[#i + 1] = id + 1
    return (1 - e) * array.at(nll, at) + e * mean
  end)
end

local cross_entropy = {
  op = "cross_entropy", covers = { "cross_entropy_dx" }, tolerance = "softmax", gradient = true,
  call = function(o, a, list) return core.cross_entropy(a, list, o.ignore, o.smoothing) end,
  reference = cross_entropy_reference,
  cases = {
    { x { 3, 5 }, ids { 3, below = 5 } },
    { x { 2, 3, 5 }, ids { 2, 3, below = 5, dtype = "i32" } },
    { x { 2, 3, 5 }, ids { 2, 3, below = 5, dtype = "u8" } },
    { x { 5 }, ids { below = 5 } },
    { x { 3, 1 }, ids { 3, below = 1 } },
    { x { 70, 3 }, ids { 70, below = 3 } },
    { x { 2, 130 }, ids { 2, below = 130 } },
    { x { 0, 5 }, ids { 0, below = 5 } },
    { x { 3, 5 }, ids { 3, below = 5 }, o = { smoothing = 0.1 } },
    { x { 3, 5 }, ids { 3, below = 5 }, o = { smoothing = 1 } },
    { x { 4, 3 }, ids { 4, values = { 2, -100, 0, -100 } }, o = { ignore = -100 } },
    { x { 4, 3 }, ids { 4, values = { 2, 1, 0, 1 }, dtype = "u8" },
      o = { ignore = 1, smoothing = 0.3 } },
    { x { 2, 3 }, ids { 2, values = { 7, 7 } }, o = { ignore = 7 } },
    { x { 2, 0 }, ids { 2, values = { 7, 7 } }, o = { ignore = 7 } },
    { x { 3, 5, low = 500, high = 900 }, ids { 3, below = 5 } },
    { x { 3, 5, layout = "transposed" }, ids { 3, below = 5, layout = "spaced" } },
    { x { 3, 4, 5, layout = "narrowed" }, ids { 3, 4, below = 5, layout = "transposed" } },
    { x { 3, 5, layout = "expanded" }, ids { 3, below = 5 }, o = { smoothing = 0.2 } },
    { x { 3, 4, 5, layout = "swapped" }, ids { 3, 4, below = 5, layout = "expanded" } },
  },
  refuses = {
    { x { 3, 5 }, ids { 3, values = { 0, 5, 1 } }, error = "class 5 at row 2 is outside 0..4" },
    { x { 2, 2, 5 }, ids { 2, 2, values = { 0, 1, 2, -100 } },
      error = "class -100 at row 2, position 2 is outside 0..4" },
    { x { 1, 5 }, ids { 1, values = { 6 } }, o = { ignore = -100 },
      error = "class 6 at row 1 is outside 0..4" },
    { x { 3, 5 }, ids { 4, below = 5 },
      error = "cross_entropy: ids is 4, expected 3 (logits is 3x5)" },
    { x { 3, 5 }, ids { 3, 1, below = 5 }, error = "cross_entropy: ids is 3x1, expected 3" },
    { x { 3, 5 }, x { 3 }, error = "cross_entropy: ids is f32, expected i64, i32 or u8" },
    { x { 3, 5 }, bools { 3 }, error = "cross_entropy: ids is bool, expected i64, i32 or u8" },
    { ids { 3, 5, below = 2 }, ids { 3, below = 5 },
      error = "cross_entropy: logits is i64, expected f32 or f64" },
    { x {}, ids { below = 5 },
      error = "cross_entropy: logits is scalar, expected at least 1 dimension" },
    { x { 3, 5 }, ids { 3, below = 5 }, o = { smoothing = 1.5 },
      error = "smoothing is 1.5, expected 0 to 1" },
    { x { 3, 5 }, ids { 3, below = 5 }, o = { ignore = 0.5 },
      error = "cross_entropy: ignore is 0.5" },
  },
}

-- The gradient of the losses is given, as a pipeline knows it ahead.
local both = {
  op = "cross_entropy_both", tolerance = "softmax", gradient = false, cases = {},
  also = {
    { "has the bits of the losses and of the gradient that two ops make", function()
      for _, dtype in ipairs { "f32", "f64" } do
        for _, o in ipairs { {}, { ignore = 2 }, { smoothing = 0.1, ignore = 0 } } do
          for _, classes in ipairs { 1, 3, 130, 1031 } do
            local list = gp.randint(0, classes, { 70 }, { seed = 3 })
            local a = gp.randn({ 70, classes }, { dtype = dtype, seed = 1 }):requires_grad_()
            local g = gp.randn({ 70 }, { dtype = dtype, seed = 2 })
            local losses = core.cross_entropy(a, list, o.ignore, o.smoothing or 0)
            local sum = (losses * g):sum()
            sum:backward()
            local gradient, loss = core.cross_entropy_both(a:detach(), list, g, o)
            assert.is_true(gp.equal(losses:detach(), loss))
            assert.is_true(gp.equal(a.grad, gradient))
          end
        end
      end
    end },
    { "leaves zeros behind the classes where rows are padded", function()
      local a, list = gp.randn({ 3, 5 }, { seed = 1 }), gp.tensor({ 0, 4, 1 }, { dtype = "i64" })
      local plain, loss = core.cross_entropy_both(a, list, gp.ones { 3 })
      local wide, same = core.cross_entropy_both(a, list, gp.ones { 3 }, { wide = 8 })
      assert.is_true(gp.equal(loss, same))
      assert.is_true(gp.equal(plain, wide:narrow(2, 1, 5)))
      assert.is_true(gp.equal(gp.zeros { 3, 3 }, wide:narrow(2, 6, 3):clone()))
      expect.fails_with("cross_entropy_both: wide is 4, expected 0, or 5 or more",
        core.cross_entropy_both, a, list, gp.ones { 3 }, { wide = 4 })
    end },
  },
}

local count = {
  op = "cross_entropy_count", tolerance = "exact", gradient = false,
  dtypes = { "i64", "i32", "u8" },
  result = { "i64" },
  call = function(o, list) return core.cross_entropy_count(list, o.ignore) end,
  reference = function(o, list)
    return array.fold(list, nil, false, function(all)
      local n = 0
      for _, id in ipairs(all) do n = n + (id == o.ignore and 0 or 1) end
      return n
    end)
  end,
  cases = {},
  refuses = {
    { x { 3 }, error = "cross_entropy_count: ids is f32, expected i64, i32 or u8" },
    { bools { 3 }, error = "cross_entropy_count: ids is bool, expected i64, i32 or u8" },
  },
}
for _, dtype in ipairs(count.dtypes) do
  for _, fields in ipairs {
    { 7 }, {}, { 0 }, { 3, 4 }, { 3, 4, layout = "transposed" }, { 70, 2, layout = "spaced" },
  } do
    local spec = ids(fields)
    spec.below, spec.dtype = 3, dtype
    table.insert(count.cases, { spec, dtypes = dtype })
    table.insert(count.cases, { spec, o = { ignore = 2 }, dtypes = dtype })
    table.insert(count.cases, { spec, o = { ignore = -1 }, dtypes = dtype })
  end
end

-- ---- mse -------------------------------------------------------------------------------------

local mse = {
  op = "mse", covers = { "mse_dx" }, tolerance = "sum", gradient = true,
  call = function(_, a, b) return core.mse(a, b) end,
  reference = function(_, a, b)
    local sum = 0.0
    for i = 1, #a do sum = sum + (a[i] - b[i]) ^ 2 end
    return array.scalar(sum)
  end,
  cases = {
    { x { 3, 4 }, x { 3, 4 } },
    { x {}, x {} },
    { x { 0, 3 }, x { 0, 3 } },
    { x { 300 }, x { 300 } },
    { x { 70, 3 }, x { 70, 3 } },
    { x { 3, 4, fixed = true }, x { 3, 4 } },
    { x { 3, 4 }, x { 3, 4, fixed = true } },
    { x { 3, 4, layout = "transposed" }, x { 3, 4, layout = "narrowed" } },
    { x { 3, 4, layout = "expanded" }, x { 3, 4, layout = "spaced" } },
  },
  refuses = {
    { x { 3, 4 }, x { 4 }, error = "mse: target is 4, expected 3x4 (input is 3x4)" },
    { x { 3 }, x { 3, dtype = "f64" }, error = "mse: target is f64, expected f32" },
    { ids { 3, below = 2 }, ids { 3, below = 2 },
      error = "mse: input is i64, expected f32 or f64" },
  },
}

-- ---- nll -------------------------------------------------------------------------------------

local nll = {
  op = "nll", covers = { "nll_dx" }, tolerance = "exact", gradient = true,
  call = function(o, a, list) return core.nll(a, list, o.ignore) end,
  reference = function(o, a, list)
    return array.build(list.shape, function(i)
      local id = array.at(list, i)
      if id == o.ignore then return 0.0 end
      local at = { table.unpack(i) }
      at[#i + 1] = id + 1
      return -array.at(a, at)
    end)
  end,
  cases = {
    { x { 3, 5 }, ids { 3, below = 5 } },
    { x { 2, 3, 5 }, ids { 2, 3, below = 5, dtype = "i32" } },
    { x { 5 }, ids { below = 5, dtype = "u8" } },
    { x { 300, 3 }, ids { 300, below = 3 } },
    { x { 0, 5 }, ids { 0, below = 5 } },
    { x { 4, 3 }, ids { 4, values = { 2, -100, 0, -100 } }, o = { ignore = -100 } },
    { x { 2, 0 }, ids { 2, values = { 7, 7 } }, o = { ignore = 7 } },
    { x { 3, 5, layout = "transposed" }, ids { 3, below = 5, layout = "spaced" } },
    { x { 3, 4, 5, layout = "expanded" }, ids { 3, 4, below = 5, layout = "transposed" } },
  },
  refuses = {
    { x { 3, 5 }, ids { 3, values = { 0, 5, 1 } }, error = "class 5 at row 2 is outside 0..4" },
    { x { 3, 5 }, ids { 4, below = 5 }, error = "nll: ids is 4, expected 3 (input is 3x5)" },
    { x { 3, 5 }, x { 3 }, error = "nll: ids is f32, expected i64, i32 or u8" },
    { x {}, ids { below = 5 }, error = "nll: input is scalar, expected at least 1 dimension" },
  },
}

-- ---- binary cross-entropy --------------------------------------------------------------------

local function bce(p, t)
  local yes, no = math.max(math.log(p), -100), math.max(math.log(1 - p), -100)
  return -(t * yes + (1 - t) * no)
end

local function bce_logits(v, t)
  return math.max(v, 0) - v * t + math.log(1 + math.exp(-math.abs(v)))
end

local function binary(op, f, range, values)
  local function spec(fields)
    fields.low, fields.high = range[1], range[2]
    return x(fields)
  end
  local function share(fields)
    fields.low, fields.high = 0, 1
    return x(fields)
  end
  return {
    op = op, covers = { op .. "_dx" }, tolerance = "activation", gradient = true,
    call = function(_, a, t) return core[op](a, t) end,
    reference = function(_, a, t) return array.map(f, a, t) end,
    cases = {
      { spec { 3, 4 }, share { 3, 4 } },
      { spec {}, share {} },
      { spec { 0, 3 }, share { 0, 3 } },
      { spec { 300 }, share { 300 } },
      { spec { 3, 4, layout = "transposed" }, share { 3, 4, layout = "narrowed" } },
      { spec { 3, 4, layout = "spaced" }, share { 3, 4, fixed = true } },
      { x { #values, values = values, fixed = true },
        x { #values, fixed = true, values = { 0.0, 1.0, 0.0, 1.0, 0.5, 0.25 } } },
    },
    refuses = {
      { x { 3, 4 }, x { 4 }, error = op .. ": shapes 3x4 and 4 differ" },
      { x { 3 }, x { 3, dtype = "f64" }, error = op .. ": target is f64, expected f32" },
    },
  }
end

local bce_row = binary("bce", bce, { 0.0625, 0.9375 }, { 0.0, 0.0, 1.0, 1.0, 0.5, 0.25 })
local logits_row = binary("bce_logits", bce_logits, { -9, 9 }, { -90.0, -90.0, 90.0, 90.0, 0.0, 2.0 })
logits_row.also = { { "keeps the digits of small losses, and has gradient p - t at 0", function()
  for _, dtype in ipairs { "f32", "f64" } do
    local scores, truth = gp.tensor({ 30, -30 }, { dtype = dtype }),
      gp.tensor({ 1, 0 }, { dtype = dtype })
    for _, loss in ipairs(core.bce_logits(scores, truth):totable()) do
      assert.near(1, loss / math.exp(-30), 1e-5)
    end
  end
  assert.same({ -0.5, 0.5 }, elementwise.slopes(function(t)
    return core.bce_logits(t, gp.tensor({ 1, 0 }, { dtype = "f64" }))
  end, { 0, 0 }, "f64"))
end } }

-- ---- loss_seed: where every gradient starts --------------------------------------------------

-- Returns the gradient of w where the model is w and the loss is loss(w).
local function seeded(dtype, loss, rows, chunks)
  local Weight = nn.class("Weight")
  function Weight:init() self.w = nn.Parameter({ 1 }, 2, { dtype = dtype }) end
  function Weight:forward(input) return self.w * input end
  local pipe <close> = gp.pipeline(nn.Sequential { Weight() }, { loss = loss, chunks = chunks })
  local ones = gp.ones({ rows, 1 }, { dtype = dtype })
  local mean = pipe:step(ones, gp.ones({ rows }, { dtype = "i64" }))
  return pipe:parameters()[1].grad:item(), mean
end

local seed = {
  op = "loss_seed", tolerance = "exact", gradient = false, cases = {},
  also = {
    { "is one by the count of the whole mini-batch", function()
      for _, dtype in ipairs { "f32", "f64" } do
        for chunks = 1, 4 do
          local grad, mean = seeded(dtype, function(y) return y:sum(), 2 * #y end, 8, chunks)
          assert.are.equal(0.5, grad)
          assert.are.equal(1, mean)
        end
      end
    end },
    { "takes a count that is a value of the trace", function()
      local grad, mean = seeded("f64", function(y, ids_of) return y:sum(), ids_of:sum() end, 8, 2)
      assert.are.equal(1, grad)
      assert.are.equal(2, mean)
    end },
    { "is one for a loss that is a sum", function()
      local loss = nn.MSELoss { reduction = "sum" }
      local Weight = nn.class("Weight")
      function Weight:init() self.w = nn.Parameter({ 1 }, 2) end
      function Weight:forward(input) return self.w * input end
      local pipe <close> = gp.pipeline(nn.Sequential { Weight() }, { loss = loss, chunks = 2 })
      assert.are.equal(4, pipe:step(gp.ones { 4, 1 }, gp.ones { 4, 1 }))
      assert.are.equal(8, pipe:parameters()[1].grad:item())
    end },
    { "is the mean over rows for a loss that is one scalar", function()
      local grad, mean = seeded("f64", function(y) return y:mean() end, 6, 3)
      assert.near(1, grad, 1e-15)
      assert.near(2, mean, 1e-15)
    end },
    { "is zero where nothing counts", function()
      local grad, mean = seeded("f32", function(y) return y:sum(), 0 end, 4, 2)
      assert.are.equal(0, grad)
      assert.are.equal(0, mean)
    end },
  },
}

return { cross_entropy, both, count, mse, nll, bce_row, logits_row, seed }
