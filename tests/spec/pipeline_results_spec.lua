-- tests/spec/pipeline_results_spec.lua - what a model and a loss may return in a pipeline: micro-batches
-- write into memory that was laid out for it, so anything else is refused before it is written.

local gp = require "gpipe"
local expect = require "tests.support.expect"
local nn = gp.nn

local Call = nn.class("Call")
function Call:init(f) self.f = f end
function Call:forward(x) return self.f(x) end

local function forward(f, rows, chunks)
  local pipe <close> = gp.pipeline(nn.Sequential { Call(f) }, { chunks = chunks })
  return pipe:eval():forward(gp.ones { rows, 3 })
end

local function evaluate(loss)
  local model = nn.Sequential { nn.Linear(3, 2) }
  local pipe <close> = gp.pipeline(model, { loss = loss })
  return pipe:evaluate(gp.ones { 4, 3 }, gp.ones { 4 })
end

describe("what a model returns", function()
  it("has the rows of its input in the first dimension", function()
    assert.are.same({ 5, 2, 3 }, forward(function(x) return x:reshape(-1, 1, 3):expand(#x, 2, 3) end, 5, 2).shape)
    local weight = gp.ones { 40, 50 }
    expect.fails_with("the output is 40x50 for 1 row of input, expected 1x...", forward,
      function(x) return weight + x:sum() end, 1)
    expect.fails_with("the output is 3 for 4 rows of input, expected 4x...", forward,
      function(x) return x:sum(1) end, 4)
    expect.fails_with("the output is scalar for 2 rows of input, expected 2x...", forward,
      function(x) return x:sum() end, 4, 2)
  end)

  it("has rows that are alike in micro-batches of different sizes", function()
    local function gram(x) return x:matmul(x:transpose()) end
    assert.are.same({ 4, 2 }, forward(gram, 4, 2).shape)
    expect.fails_with("the output is f32 3x3 for 3 rows and f32 2x2 for 2", forward, gram, 5, 2)
  end)

  it("leaves the pipeline usable when it is refused", function()
    local broken = true
    local layer = Call(function(x) return broken and x:sum() or x end)
    local pipe <close> = gp.pipeline(nn.Sequential { layer })
    expect.fails_with("expected 2x...", pipe.forward, pipe:eval(), gp.ones { 2, 3 })
    broken = false
    assert.is_true(gp.equal(gp.ones { 2, 3 }, pipe:forward(gp.ones { 2, 3 })))
  end)
end)

describe("what a loss returns", function()
  it("is an f32 or f64 scalar", function()
    assert.are.equal("number", type(evaluate(function(y) return y:sum(), 4 end)))
    assert.are.equal("number", type(evaluate(function(y) return y:to("f64"):sum(), 4 end)))
    expect.fails_with("loss: the sum is i64 scalar, expected an f32 or f64 scalar", evaluate,
      function(y) return y:gt(0):sum(), 4 end)
    expect.fails_with("loss: the sum is bf16 scalar, expected an f32 or f64 scalar", evaluate,
      function(y) return y:sum():to("bf16"), 4 end)
    expect.fails_with("expected a scalar tensor", evaluate, function(y) return y, 4 end)
  end)
end)
