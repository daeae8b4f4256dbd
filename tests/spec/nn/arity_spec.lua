-- tests/spec/nn/arity_spec.lua - more inputs than a module takes are an error, wherever it runs.

local gp = require "gpipe"
local expect = require "tests.support.expect"

local nn = gp.nn

local Two = nn.class "Two"
function Two:forward(x, y) return y and x + y or x end -- luacheck: ignore 212

local Own = nn.class("Own", nn.Loss)
function Own:terms(y, t) return (y - t):sum(), y:numel() end -- luacheck: ignore 212

local x, extra = gp.ones { 4, 2 }, gp.ones { 4, 2 }
local WRONG = {
  { nn.Linear(2, 3), 2, "Linear 2 -> 3: there are 2 inputs, expected 1" },
  { nn.Sequential { nn.ReLU() }, 2, "1 (ReLU): there are 2 inputs, expected 1" },
  { nn.Residual(nn.Linear(2, 2)), 2, "Residual: there are 2 inputs, expected 1" },
  { nn.Concat(2, { nn.ReLU() }), 2, "1 (ReLU): there are 2 inputs, expected 1" },
  { nn.Parallel { nn.ReLU() }, 2, "there are 2 inputs, expected 1" },
  { nn.Lambda(function(a) return a end), 2, ": there are 2 inputs, expected 1" },
  { Two(), 3, "Two: there are 3 inputs, expected at most 2" },
  { nn.MSELoss(), 3, "MSELoss: there are 3 inputs, expected at most 2" },
  { nn.CrossEntropyLoss(), 3, "CrossEntropyLoss: there are 3 inputs, expected at most 2" },
  { Own(), 3, "Own: there are 3 inputs, expected at most 2" },
}

describe("more inputs than a module takes", function()
  for _, case in ipairs(WRONG) do
    local module, count, text = table.unpack(case)
    it("raise: " .. text, function()
      local inputs = {}
      for i = 1, count do inputs[i] = x end
      expect.fails_with(text, module, table.unpack(inputs))
    end)
  end

  it("are allowed where they are nil, and where forward takes any number", function()
    assert.are.same({ 4, 3 }, nn.Linear(2, 3)(x, nil, nil).shape)
    assert.are.equal(2, select("#", nn.Identity()(x, extra)))
    assert.are.equal(2, select("#", nn.Lambda(function(...) return ... end)(x, extra)))
  end)

  it("are accepted by a forward that makes its own values", function()
    local made = nn.Lambda(function() return x end)
    assert.are.equal(x, made(extra))
  end)

  it("are accepted by a loss function that ignores the target", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.ReLU() }, {
      loss = function(y) return y:sum() end,
    })
    assert.are.equal(8, pipe:step(x, extra))
  end)

  local LOSSES = {
    { nn.MSELoss(), "loss (nn.MSELoss), outputs and targets: there are 3 inputs" },
    { Own(), "loss (Own), outputs and targets: there are 3 inputs" },
    { function(y, t) return (y - t):sum() end, "loss (a function), outputs and targets: there are" },
  }
  for _, case in ipairs(LOSSES) do
    it("raise in a pipeline's step: " .. case[2], function()
      local pipe <close> = gp.pipeline(nn.Sequential { nn.ReLU() }, { loss = case[1], chunks = 2 })
      expect.fails_with("1 (ReLU): there are 2 inputs, expected 1", pipe.step, pipe, { x, extra }, x)
      expect.fails_with(case[2], pipe.step, pipe, x, { x, extra })
      assert.is_number(pipe:step(x, extra))
    end)
  end
end)
