-- tests/spec/nn/yield_spec.lua - a forward cannot yield: its trace would record what runs
-- meanwhile, and name it after its layer.

local gp = require "gpipe"
local nn = gp.nn

local Yields = nn.class "Yields"
Yields.forward = function(_, x) coroutine.yield(x) return x * 2 end

local x = gp.ones { 2, 3 }

-- Runs f in a coroutine; returns whether it succeeded, and the text if not.
local function in_coroutine(f)
  local co = coroutine.create(f)
  local good, text = coroutine.resume(co)
  assert.equal("dead", coroutine.status(co))
  return good, text
end

-- Checks that a failed call leaves nothing behind: new tensors are ordinary ones, and errors name
-- no layer.
local function check_nothing_left()
  assert.same({ 2, 2 }, (gp.ones { 2 } * 2):totable())
  local _, text = pcall(function() return gp.ones { 2 } + gp.ones { 3 } end)
  assert.is_nil(text:find "Yields")
  assert.is_nil(text:find "loss:")
end

describe("a forward that yields", function()
  it("is refused while a pipeline records it, with the layer", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 3), { "odd", Yields() } },
      { loss = nn.MSELoss() })
    local good, text = in_coroutine(function() pipe:step(x, x) end)
    assert.is_false(good)
    assert.matches("odd", text)
    assert.matches("yielded", text)
    check_nothing_left()
  end)

  it("is refused as a loss, and the pipeline goes on", function()
    local yields = true
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 3) },
      { loss = function(output, target)
      if yields then coroutine.yield() end
      return (output - target):sum()
    end })
    assert.is_false((in_coroutine(function() pipe:step(x, x) end)))
    check_nothing_left()
    yields = false
    assert.is_true(pipe:step(x, x) ~= nil)
  end)

  it("is refused when it is called eagerly", function()
    local model = nn.Sequential { nn.Linear(3, 3), Yields() }
    assert.is_false((in_coroutine(function() model(x) end)))
    check_nothing_left()
  end)

  it("may run coroutines of its own", function()
    local Inner = nn.class "Inner"
    Inner.forward = function(_, t)
      local twice = coroutine.wrap(function() coroutine.yield(t * 2) end)
      return twice()
    end
    assert.same({ 2, 2 }, Inner()(gp.ones { 2 }):totable())
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 3), Inner() },
      { loss = nn.MSELoss() })
    assert.is_true(pipe:step(x, x) ~= nil)
  end)
end)

describe("coroutines of scripts", function()
  it("may step between their yields", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 3) }, { loss = nn.MSELoss() })
    local steps = coroutine.wrap(function()
      for i = 1, 3 do
        pipe:step(x, x)
        coroutine.yield(i)
      end
    end)
    assert.same({ 1, 2, 3 }, { steps(), steps(), steps() })
  end)
end)
