-- tests/spec/pipeline/object_spec.lua - a pipeline can be read and called, and a write to it is
-- never silently lost.

local gp = require "gpipe"
local nn = gp.nn
local failure = dofile("tests/support/expect.lua").failure

local function new(loss)
  return gp.pipeline(nn.Sequential { nn.Linear(3, 3) }, { loss = loss, chunks = 2 })
end

describe("writing a field of a pipeline", function()
  for _, name in ipairs { "chunks", "loss", "schedule", "checkpoint", "balance", "devices", "seed",
    "watchdog" } do
    it(("is refused with what to do: %s"):format(name), function()
      local pipe <close> = new(nn.MSELoss())
      local before = pipe[name]
      local text = failure(function() pipe[name] = 4 end)
      assert.is_truthy(text:find(("gp.pipeline(model, {%s = "):format(name), 1, true), text)
      assert.matches("object_spec%.lua:%d+: ", text)
      assert.equal(before, pipe[name])
    end)
  end

  it("is answered with the place of the setting", function()
    local pipe <close> = new(nn.MSELoss())
    assert.matches("opt%.lr", failure(function() pipe.lr = 1 end))
    assert.matches("pipe:train", failure(function() pipe.training = false end))
  end)

  it("is refused for names of the script's, of methods and of facts", function()
    local pipe <close> = new(nn.MSELoss())
    for _, key in ipairs { "mine", "step", "stats", "core", "plans", "pending", 1, true } do
      assert.matches("cannot be set", failure(function() pipe[key] = 4 end))
    end
  end)
end)

describe("reading a pipeline", function()
  it("gives its facts, and nil for facts that it lacks", function()
    local pipe <close> = new()
    assert.equal(2, pipe.chunks)
    assert.equal(1, pipe.stages)
    assert.is_nil(pipe.loss)
  end)

  it("names the method that was meant", function()
    local pipe <close> = new(nn.MSELoss())
    assert.matches("did you mean 'train'", failure(function() pipe:trian() end))
    assert.matches("there is no 'fit'", failure(function() pipe:fit() end))
    assert.matches("did you mean 'schedule'", failure(function() return pipe.shedule end))
    assert.matches("optim.Adam%(pipe:parameters%(%)", failure(function() pipe:optimizer() end))
  end)

  it("gives methods that refuse arguments which they do not have", function()
    local pipe <close> = new(nn.MSELoss())
    pipe:step(gp.ones { 2, 3 }, gp.ones { 2, 3 })
    assert.matches("timeline: argument 1 is a table, but pipe:timeline takes none",
      failure(function() pipe:timeline { html = "a.html" } end))
    assert.matches("zero_grad: argument 1 is true, but pipe:zero_grad takes none",
      failure(function() pipe:zero_grad(true) end))
    pipe:timeline(nil)
  end)

  it("gives methods that name the missing pipeline", function()
    local pipe <close> = new(nn.MSELoss())
    assert.matches("pipe:step%(", failure(pipe.step, gp.ones { 2, 3 }, gp.ones { 2, 3 }))
  end)

  it("finds the pipeline itself where calls are chained", function()
    local pipe <close> = new(nn.MSELoss())
    assert.equal(pipe, pipe:train())
    assert.equal(pipe, pipe:eval())
    assert.equal(pipe, pipe:load_state_dict(pipe:state_dict()))
    assert.equal(pipe, pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 })))
  end)

  it("works after it was closed, twice", function()
    local pipe = new(nn.MSELoss())
    pipe:close()
    pipe:close()
    assert.matches("closed", tostring(pipe))
    assert.matches("closed", failure(function() return pipe.stats end))
  end)
end)
