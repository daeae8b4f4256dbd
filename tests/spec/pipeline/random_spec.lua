-- tests/spec/pipeline/random_spec.lua - random numbers of a pipeline: each micro-batch has its own,
-- and cuts change none.

local gp = require "gpipe"
local drawn = require "tests.support.drawn"
local training = require "tests.support.training"

local nn = gp.nn
local DEVICE = "cpu:0"

describe("dropout of attention whose first dimension is not the rows of the batch", function()
  it("differs between micro-batches", function() drawn.check_apart(DEVICE) end)

  it("is the same over every cut", function()
    training.check_same(drawn.folded(), drawn.pipelines(4, DEVICE))
  end)
end)

describe("what forward draws", function()
  it("is the same over every cut, recomputed or not", function()
    local run = training.check_same(drawn.noisy(), drawn.pipelines(5, DEVICE))
    assert.are_not.equal(run.losses[1], run.losses[2])
  end)

  it("does not change what the script draws outside", function()
    gp.seed(8)
    local want = gp.rand { 5 }
    gp.seed(8)
    drawn.values(gp.rand, { rows = 2, columns = 2 }, {})
    assert(gp.equal(want, gp.rand { 5 }))
  end)

  it("is drawn in evaluation too", function()
    local Draw = nn.class "Draw"
    function Draw.forward(_, x) return x + gp.rand(x.shape) end
    local pipe <close> = gp.pipeline(nn.Sequential { Draw() }, {})
    local y = pipe:eval():forward(gp.zeros { 2, 3 })
    assert.is_true(y:max():item() > 0 and y:max():item() < 1)
  end)
end)

describe("numbers that would be the same in every step", function()
  local library = math.random
  local function run(f)
    local Bad = nn.class "Bad"
    function Bad.forward(_, x) return x * f() end
    local model = nn.Sequential { Bad() }
    local pipe <close> = gp.pipeline(model, {})
    return pcall(pipe.forward, pipe, gp.ones { 2 })
  end

  for name, f in pairs { ["math.random"] = function() return math.random() end,
    ["gp.seed"] = function()
    gp.seed(1)
    return 1
  end } do
    it(("are refused: %s in forward"):format(name), function()
      local good, text = run(f)
      assert.is_false(good)
      assert.truthy(tostring(text):find(name .. ":", 1, true))
    end)
  end

  it("can be drawn again outside of forward", function()
    run(function() error "stop" end)
    assert.are.equal(library, math.random)
    run(function() return math.random() end)
    run(function() return 2 end)
    assert.are.equal(library, math.random)
    assert.is_true(math.random() < 1)
  end)
end)

describe("draws of passes that do not train", function()
  local Noise = gp.nn.class "Noise"
  function Noise.forward(_, x) return x + gp.rand { 1, 3 } end

  it("differ from pass to pass, and do not advance those of training", function()
    local function made()
      gp.seed(4)
      return gp.pipeline(gp.nn.Sequential { Noise(), gp.nn.Linear(3, 2) }, { loss = gp.nn.MSELoss() })
    end
    local x, y = gp.ones { 4, 3 }, gp.ones { 4, 2 }
    local plain <close> = made()
    local looked <close> = made()
    local losses = {}
    for i = 1, 3 do
      losses[i] = looked:evaluate(x, y)
      assert.is_false(gp.equal(looked:eval():forward(x), looked:forward(x)))
      assert.equal(plain:step(x, y), looked:train():step(x, y))
    end
    assert.not_equal(losses[1], losses[2])
  end)
end)
