-- tests/spec/tensor/compile_spec.lua - gp.compile: a function's plan gives what the function
-- returns.
local gp = require "gpipe"
local fails_with = require "tests.support.expect".fails_with
local nn = gp.nn

local function randn(...) return gp.randn({ ... }, { seed = 1 + select("#", ...) }) end

-- A title, the function, its arguments.
local FUNCTIONS = {
  { "a chain", function(x) return ((x * 2 + 1):tanh() - x):gelu() end, { randn(7, 33) } },
  { "products", function(a, b)
    return a:matmul(b) + 1, b:transpose(2, 3):matmul(a:transpose(2, 3))
  end, { randn(3, 5, 4), randn(3, 4, 7) } },
  { "scalars in and out", function(a, b) return a * b, (a + b):exp() end,
    { gp.tensor(3), gp.tensor(-0.5) } },
  { "reductions and ids", function(x) return x:sum(), x:max(2), x:argmax(1) end, { randn(5, 3) } },
  { "f64", function(x) return x:softmax(-1):log():sum(1) end, { randn(4, 9):to "f64" } },
  { "integers", function(x) return x + 1, x:eq(2) end, { gp.tensor({ 1, 2 }, { dtype = "i64" }) } },
  { "a constant of its own", function(x) return x * gp.tensor { 1, 2, 3 } end, { randn(2, 3) } },
  { "an argument as it is", function(x) return x end, { randn(4) } },
  { "permuted arguments", function(x) return x:permute { 2, 1 } * 2 end,
    { randn(4, 3):permute { 2, 1 } } },
}

local function check_same(want, got)
  assert.equal(want.n, got.n)
  for i = 1, want.n do
    assert.same({ want[i].dtype, want[i].shape }, { got[i].dtype, got[i].shape })
    assert.is_true(gp.equal(want[i], got[i]))
  end
end

describe("a compiled function", function()
  for _, case in ipairs(FUNCTIONS) do
    it("gives the bits of the function itself: " .. case[1], function()
      local compiled <close> = gp.compile(case[2], case[3])
      local want = table.pack(case[2](table.unpack(case[3])))
      for _ = 1, 2 do check_same(want, table.pack(compiled(table.unpack(case[3])))) end
    end)
  end

  it("is planned again for other shapes, ranks and dtypes", function()
    local function fn(x) return (x * x):sum():sqrt() end
    local compiled <close> = gp.compile(fn, gp.ones { 2 })
    for _ = 1, 2 do
      for _, x in ipairs { randn(1), randn(9), randn(3, 4), gp.tensor(2), randn(5):to "f64",
        randn(2, 2, 2, 2), randn(0, 3), randn(2) } do
        check_same({ n = 1, fn(x) }, { n = 1, compiled(x) })
      end
    end
  end)

  it("may be a module, in evaluation mode", function()
    gp.seed(1)
    local model = nn.Sequential { nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.LayerNorm(8),
      nn.Linear(8, 2) }
    local x = randn(5, 4)
    local want = gp.no_grad(model:eval(), x)
    local compiled <close> = gp.compile(model:train(), x)
    assert.is_true(gp.equal(want, compiled(x)))
  end)

  it("runs the function once for each set of shapes", function()
    local runs = 0
    local compiled <close> = gp.compile(function(x)
      runs = runs + 1
      return x + 1
    end, gp.ones { 2 })
    for _ = 1, 5 do compiled(gp.ones { 2 }) end
    assert.equal(1, runs)
    compiled(gp.ones { 3 })
    assert.equal(2, runs)
  end)

  it("does not change earlier results when it is called again", function()
    local compiled <close> = gp.compile(function(x) return x + 1 end, gp.ones { 2 })
    local first = compiled(gp.zeros { 2 })
    compiled(gp.ones { 2 })
    assert.is_true(gp.equal(gp.ones { 2 }, first))
  end)

  it("gives no gradients, and says so", function()
    local x = gp.ones { 2 }
    x.requires_grad = true
    local wanted = "argument 1 requires a gradient"
    fails_with(wanted, gp.compile, function(v) return v end, x)
    local compiled <close> = gp.compile(function(v) return v * 2 end, x:detach())
    fails_with(wanted, compiled, x)
    assert.is_true(gp.equal(x:detach() * 2, gp.no_grad(compiled, x)))
  end)

  it("prints its shapes, and that it was closed", function()
    local compiled = gp.compile(function(a, b) return a + b, a:sum() end,
      { gp.ones { 2, 3 }, gp.ones { 3 } })
    assert.equal("compiled function: (f32 2x3, f32 3) -> (f32 2x3, f32 scalar) on cpu",
      tostring(compiled))
    compiled:close()
    compiled:close()
    assert.is_truthy(tostring(compiled):find "closed")
    fails_with("compiled function: it was closed", compiled, gp.ones { 2, 3 }, gp.ones { 3 })
  end)
end)

describe("gp.compile refuses", function()
  local x = gp.ones { 2 }
  local function plus(v) return v + 1 end
  local cases = {
    { "a number", "the first argument is 5, expected a function or a module", 5, x },
    { "no examples", "example_inputs is nil, expected a tensor", plus },
    { "an empty list", "expected a tensor, or a list of tensors", plus, {} },
    { "an example that is no tensor", "argument 2 is 3, expected a tensor", plus, { x, 3 } },
    { "an unknown option", "unknown option 'devise' (did you mean 'device'?)", plus, x,
      { devise = "cpu" } },
    { "a function that returns nothing", "the function returned nothing", function() end, x },
    { "a function that returns a number", "the function returned 5 as value 1, expected a tensor",
      function() return 5 end, x },
    { "a function that ignores its arguments", "the output does not depend on the input",
      function() return gp.ones { 3 } end, x },
    { "a function that looks at values", "the value is not known while a layer is being traced",
      function(v) return v:sum():item() > 1 and v or v * 2 end, x },
    { "a function that raises", "mine", function() error "mine" end, x },
  }
  for _, case in ipairs(cases) do
    it(case[1], function() fails_with(case[2], gp.compile, table.unpack(case, 3, 5)) end)
  end

  it("a call with too few tensors, or something else", function()
    local compiled <close> = gp.compile(plus, x)
    fails_with("compiled function: 2 tensors, expected 1", compiled, x, x)
    fails_with("compiled function: 0 tensors, expected 1", compiled)
    fails_with("compiled function: argument 1 is 3, expected a tensor", compiled, 3)
  end)
end)

describe("a compiled function that draws", function()
  it("draws new numbers in every call, and others than another function", function()
    local function draw(a) return a + gp.rand { 3 } end
    local one <close> = gp.compile(draw, gp.zeros { 3 })
    local two <close> = gp.compile(draw, gp.zeros { 3 })
    local zero = gp.zeros { 3 }
    local seen = { one(zero), one(zero), two(zero) }
    for i = 1, 3 do
      for k = i + 1, 3 do assert.is_false(gp.equal(seen[i], seen[k])) end
    end
  end)
end)

describe("a function around a model", function()
  it("reads the model's parameters, however it reaches them", function()
    local model, scale = gp.nn.Sequential { gp.nn.Linear(2, 2) }, gp.nn.Parameter({ 2 }, 3)
    local blocks = { gp.nn.Linear(2, 2) }
    local function inner(x) return blocks[1](model(x)) end
    local function fn(x) return inner(x) * scale end
    local x = gp.ones { 1, 2 }
    local want = gp.no_grad(fn, x)
    local compiled <close> = gp.compile(fn, x)
    assert.is_true(gp.equal(want, compiled(x)))
    local good, message = pcall(function() model(x):sum():backward() end)
    assert.is_false(good)
    assert.matches("compiled function", message)
    compiled:close()
    model(x):sum():backward()
  end)
end)
