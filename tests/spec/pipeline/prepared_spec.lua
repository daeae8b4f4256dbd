-- tests/spec/pipeline/prepared_spec.lua - values that depend only on the weights are made again
-- whenever the weights change, and only then: after any change, passes give the bits of a new
-- pipeline with the new weights.
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim

local x, y = gp.randn({ 6, 8 }, { seed = 1 }), gp.randn({ 6, 8 }, { seed = 2 })

local function model() return nn.Sequential { nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8) } end

local function pipeline(m, schedule)
  return gp.pipeline(m, { balance = { 2, 1 }, chunks = 2, schedule = schedule, loss = nn.MSELoss(),
    devices = { "cpu:0", "cpu:0" } })
end

-- Returns the loss of the same weights in a new model and pipeline.
local function fresh(pipe)
  local m = model()
  m:load_state_dict(pipe:state_dict())
  local other <close> = pipeline(m)
  return other:evaluate(x, y)
end

describe("weights that were prepared", function()
  it("are prepared again after every way to change them", function()
    local m = model()
    local pipe <close> = pipeline(m)
    local opt = optim.SGD(pipe:parameters(), { lr = 0.1 })
    local changes = {
      function() pipe:step(x, y) opt:step() end,
      function() pipe:parameters()[1].value:copy_(gp.randn({ 8, 8 }, { seed = 3 })) end,
      function() pipe:parameters()[3].value[1][2] = 4 end,
      function() pipe:load_state_dict(model():state_dict()) end,
      function() pipe:forward(x) pipe:backward(gp.ones { 6, 8 }) opt:step() end,
    }
    for i, change in ipairs(changes) do
      local before = pipe:evaluate(x, y)
      assert.equal(before, pipe:evaluate(x, y))
      change()
      local after = pipe:evaluate(x, y)
      assert.not_equal(before, after, i)
      assert.equal(fresh(pipe), after, i)
    end
  end)

  it("are prepared again after updates of the schedule, between batches of other shapes too",
    function()
    for _, schedule in ipairs { "1f1b", "gpipe", "pipedream" } do
      local pipe <close> = pipeline(model(), schedule)
      pipe:use(optim.Adam(pipe:parameters(), { lr = 0.01 }))
      local last
      for _ = 1, 3 do
        pipe:step(x, y)
        local loss = pipe:evaluate(x, y)
        assert.not_equal(last, loss)
        assert.equal(fresh(pipe), loss)
        local few = pipe:evaluate(x:narrow(1, 1, 3), y:narrow(1, 1, 3))
        assert.equal(few, pipe:evaluate(x:narrow(1, 1, 3), y:narrow(1, 1, 3)))
        last = loss
      end
    end
  end)

  it("are prepared again after a pass that failed", function()
    local pipe <close> = pipeline(model())
    local loss = pipe:evaluate(x, y)
    assert.has_error(function() pipe:evaluate(x, gp.zeros({ 6, 8 }, { dtype = "i64" })) end)
    assert.equal(loss, pipe:evaluate(x, y))
  end)

  it("are prepared once where layers of a stage share one", function()
    local function shared()
      local m = nn.Sequential { nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.Linear(8, 8) }
      m[3].weight = m[1].weight
      return m
    end
    for _, cut in ipairs { { { 4 }, 2 }, { { 2, 2 }, 3 } } do -- each stage makes its own
      local pipe <close> = gp.pipeline(shared(), { balance = cut[1], loss = nn.MSELoss(),
        devices = { "cpu:0", "cpu:0" } })
      local packs = 0
      for _, row in ipairs(pipe:profile(x, y).rows) do
        if row.op == "pack_linear" then packs = packs + row.count end
      end
      assert.equal(cut[2], packs)
    end
  end)
end)
