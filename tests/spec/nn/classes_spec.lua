-- tests/spec/nn/classes_spec.lua - a class in place of an instance, `nn.CrossEntropyLoss` without
-- its parentheses, is refused wherever a module is expected: it is callable, and would train
-- silently.

local gp = require "gpipe"
local nn = gp.nn
local failure = dofile("tests/support/expect.lua").failure

local Mine = nn.class "Mine"
Mine.forward = function(_, x) return x end
local MyLoss = nn.class("MyLoss", nn.Loss)
MyLoss.terms = function(_, output, target) return (output - target):sum(), 1 end

local x = gp.ones { 2, 3 }
local function model() return nn.Sequential { nn.Linear(3, 3) } end

describe("a class where an instance is expected", function()
  local cases = {
    { "the loss of a pipeline", "nn.CrossEntropyLoss",
      function() gp.pipeline(model(), { loss = nn.CrossEntropyLoss }) end },
    { "another loss of ours", "nn.MSELoss",
      function() gp.pipeline(model(), { loss = nn.MSELoss }) end },
    { "a loss of the user's", "MyLoss", function() gp.pipeline(model(), { loss = MyLoss }) end },
    { "the model of a pipeline", "nn.Sequential", function() gp.pipeline(nn.Sequential) end },
    { "a layer as the model", "nn.ReLU", function() gp.pipeline(nn.ReLU) end },
    { "a layer of a Sequential", "nn.Tanh",
      function() nn.Sequential { nn.Linear(2, 2), nn.Tanh } end },
    { "a layer with a name", "Mine", function() nn.Sequential { { "head", Mine } } end },
    { "a layer put in later", "nn.Tanh", function() local m = model() m[2] = nn.Tanh end },
    { "the list of layers", "nn.ReLU", function() nn.Sequential(nn.ReLU) end },
    { "the body of a Residual", "nn.ReLU", function() nn.Residual(nn.ReLU) end },
    { "nn.describe", "nn.ReLU", function() nn.describe(nn.ReLU) end },
    { "a method called on it", "nn.Sequential", function() nn.Sequential:parameters() end },
    { "train called on it", "nn.Sequential", function() nn.Sequential:train() end },
    { "a layer called with a tensor", "nn.ReLU", function() nn.ReLU(x) end },
    { "a loss called with tensors", "nn.MSELoss", function() nn.MSELoss(x, x) end },
    { "a layer with arguments called with a tensor", "nn.Linear", function() nn.Linear(x) end },
  }
  for _, case in ipairs(cases) do
    it("is named with what to write: " .. case[1], function()
      local text = failure(case[3])
      assert.is_truthy(text:find(case[2] .. "(...)", 1, true), text)
      assert.matches("classes_spec%.lua:%d+: ", text)
    end)
  end

  it("leaves the model as it was, so that it trains afterwards", function()
    local m = model()
    failure(function() gp.pipeline(m, { loss = nn.MSELoss }) end)
    local pipe <close> = gp.pipeline(m, { loss = nn.MSELoss() })
    assert.is_true(pipe:step(x, x) > 0)
  end)
end)

describe("instances of users' classes", function()
  it("may be made from tensors", function()
    local Keep = nn.class "Keep"
    function Keep:init(t) self.t = t end
    assert.equal(x, Keep(x).t)
  end)

  it("hold values at numbers beside values at names", function()
    local Pair = nn.class "Pair"
    function Pair:init()
      self.scale = 2
      self[1] = nn.Linear(2, 3)
      self[2] = nn.Linear(2, 3)
    end
    local names = {}
    for i, p in ipairs(Pair():parameters()) do names[i] = p.name end
    assert.same({ "1.weight", "1.bias", "2.weight", "2.bias" }, names)
  end)
end)
