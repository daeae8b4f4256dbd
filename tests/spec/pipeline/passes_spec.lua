-- tests/spec/pipeline/passes_spec.lua - figures describe the last training pass, plans use the
-- current forward of each class; pipe:accuracy.

local gp = require "gpipe"
local nn = gp.nn
local failure = dofile("tests/support/expect.lua").failure

local function pipeline(opts)
  local model = nn.Sequential { nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3) }
  opts = opts or {}
  opts.balance, opts.chunks, opts.loss = { 2, 1 }, 2, opts.loss or nn.CrossEntropyLoss()
  return gp.pipeline(model, opts)
end

local x, y = gp.randn({ 8, 4 }, { seed = 1 }), gp.tensor({ 0, 1, 2, 0, 1, 2, 0, 1 }, { dtype = "i64" })

local function ops_of(timeline)
  local seen = {}
  for d = 1, timeline.devices do
    for _, event in ipairs(timeline[d]) do seen[event.op] = true end
  end
  return seen
end

describe("figures of a pipeline", function()
  it("are those of the last training pass, also after evaluations and forwards", function()
    local pipe <close> = pipeline()
    pipe:step(x, y)
    local stats, costs = pipe.stats, pipe:costs()
    for _, look in ipairs {
      function() pipe:evaluate(x, y) end, function() pipe:eval():forward(x) end,
      function() pipe:accuracy(x, y) end,
    } do
      look()
      assert.is_true(ops_of(pipe:timeline()).B)
      local now = pipe.stats
      for d, bytes in ipairs(now.peak_bytes) do assert.is_true(bytes >= stats.peak_bytes[d]) end
      now.peak_bytes = stats.peak_bytes -- peak_bytes covers all passes
      assert.same(stats, now)
      assert.same(costs.B, pipe:costs().B)
      assert.matches("B", pipe:draw())
    end
    pipe:train():step(x, y)
    assert.not_same(stats, pipe.stats)
  end)

  it("are those of an evaluation where nothing was trained yet", function()
    local pipe <close> = pipeline()
    pipe:evaluate(x, y)
    assert.is_true(ops_of(pipe:timeline()).F)
    assert.is_nil(ops_of(pipe:timeline()).B)
  end)
end)

describe("a redefined forward", function()
  it("takes effect from the next pass on, also for shapes that were planned before", function()
    local Layer = nn.class "Layer"
    function Layer.forward(_, t) return t * 1 end
    local layer = Layer()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Identity(), layer })
    local one = gp.ones { 2, 3 }
    assert.equal(1, pipe:eval():forward(one)[1][1])
    function Layer.forward(_, t) return t * 100 end
    assert.equal(100, pipe:forward(one)[1][1])
    assert.equal(100, pipe:forward(gp.ones { 4, 3 })[1][1])
    function layer.forward(_, t) return t * 7 end -- for this module only
    assert.equal(7, pipe:forward(one)[1][1])
    layer.forward = nil
    assert.equal(100, pipe:forward(one)[1][1])
  end)

  it("takes effect for losses, and for modules within modules", function()
    local Inner = nn.class "Inner"
    function Inner.forward(_, t) return t end
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Residual(Inner()) }, { loss = nn.MSELoss() })
    local one = gp.ones { 2, 3 }
    assert.equal(1, pipe:evaluate(one, one))
    function Inner.forward(_, t) return t * 2 end
    assert.equal(4, pipe:evaluate(one, one))
  end)
end)

describe("plans", function()
  it("tell inputs from targets", function()
    local model = nn.Sequential { nn.Lambda(function(a, b) return b and a + b or a end) }
    local pipe <close> = gp.pipeline(model, {
      loss = function(out, c, d) return (out - c - (d or 0)):square():sum(), 1 end,
    })
    local one = gp.ones { 2, 2 }
    assert.equal(4, pipe:step({ one, one }, one))
    assert.equal(4, pipe:step(one, { one, one }))
    assert.equal(4, pipe:step({ one, one }, one))
  end)
end)

describe("pipe:accuracy", function()
  local Scores = nn.class "Scores"
  function Scores:init() self.drop = nn.Dropout(0.9) end
  function Scores:forward(t) return self.drop(t) end
  local function scores(loss)
    return gp.pipeline(nn.Sequential { Scores() }, { loss = loss })
  end

  it("is the share of rows whose greatest score is at the class, in evaluation mode", function()
    local pipe <close> = scores()
    local given = gp.tensor { { 5, 1, 1 }, { 1, 5, 1 }, { 1, 1, 5 }, { 5, 1, 1 } }
    local share, right, count = pipe:accuracy(given, gp.tensor({ 0, 1, 1, 2 }, { dtype = "i64" }))
    assert.same({ 0.5, 2, 4 }, { share, right, count })
    assert.equal("train", require("gpipe.pipeline.object").inside(pipe).mode)
  end)

  it("counts tokens, except those that the loss ignores", function()
    local pipe <close> = scores(nn.CrossEntropyLoss { ignore_index = -100 })
    local given = gp.tensor { { { 5, 1 }, { 1, 5 } }, { { 5, 1 }, { 1, 5 } } }
    local ids = gp.tensor({ { 0, -100 }, { 1, 1 } }, { dtype = "i64" })
    assert.same({ 2 / 3, 2, 3 }, { pipe:accuracy(given, ids) })
  end)

  it("takes ids of every dtype that losses take", function()
    local pipe <close> = scores()
    for _, dtype in ipairs { "i64", "i32", "u8" } do
      local ids = gp.tensor({ 1, 2 }, { dtype = dtype })
      assert.same({ 0.5, 1, 2 }, { pipe:accuracy(gp.tensor { { 1, 5, 1 }, { 5, 1, 1 } }, ids) })
    end
  end)

  it("refuses targets that are not ids of the scores' classes", function()
    local pipe <close> = scores()
    local given = gp.ones { 2, 3 }
    assert.matches("the targets are f32 2", failure(pipe.accuracy, pipe, given, gp.ones { 2 }))
    assert.matches("the targets are i64 3",
      failure(pipe.accuracy, pipe, given, gp.zeros({ 3 }, { dtype = "i64" })))
    assert.matches("expected scores", failure(pipe.accuracy, pipe, given, 3))
  end)
end)

describe("scores:classes()", function()
  it("returns ids from 0", function()
    assert.same({ 1, 2 }, gp.tensor({ { 1, 5, 2 }, { 1, 2, 5 } }):classes():totable())
    assert.equal("i64", gp.ones({ 2, 3 }):classes().dtype)
  end)
end)
