-- tests/spec/pipeline/codes_spec.lua - errors are told apart by their codes, not by their words:
-- the text of a user's layer is never taken for a failure of the runtime.

local gp = require "gpipe"
local errors = require "gpipe.errors"
local nn = gp.nn
local failure = dofile("tests/support/expect.lua").failure

local x = gp.ones { 8, 3 }

-- Opens a pipeline with two micro-batches whose second layer calls f.
local function pipe_of(f)
  local Layer = nn.class "Layer"
  Layer.forward = function(_, t) return f(t) end
  local model = nn.Sequential { nn.Linear(3, 3), Layer() }
  return gp.pipeline(model, { loss = nn.MSELoss(), chunks = 2 })
end

describe("an error of the script's own layer", function()
  it("that mentions memory is not taken for a lack of it, so the layer runs once", function()
    local calls = 0
    local pipe <close> = pipe_of(function()
      calls = calls + 1
      error "out of memory: 7 bytes"
    end)
    local text = failure(pipe.step, pipe, x, x)
    assert.is_nil(text:find "would fit")
    assert.equal(1, calls)
  end)

  it("that mentions shapes stays as it is", function()
    local pipe <close> = pipe_of(function() error("2x3, expected 4x5", 0) end)
    assert.equal("2x3, expected 4x5", failure(pipe.step, pipe, x, x))
  end)
end)

describe("a shape that does not fit in a micro-batch", function()
  for name, f in pairs {
    ["an op"] = function(t) return t:matmul(gp.ones { 4, 3 }) end,
    ["a layer"] = function(t) return nn.CausalSelfAttention(4, 2)(t) end,
  } do
    it("says how many of the rows it has: " .. name, function()
      local pipe <close> = pipe_of(f)
      assert.matches("4 of the 8 rows", failure(pipe.step, pipe, x, x))
    end)
  end
end)

describe("the code of an error", function()
  it("is that of the runtime's call", function()
    assert.equal("shape", errors.code_of(failure(function() return x + gp.ones { 5 } end)))
    assert.equal("dtype", errors.code_of(failure(function() return x + x:to "f64" end)))
  end)

  it("is nil for other errors", function()
    local text = failure(function() return x + gp.ones { 5 } end)
    assert.is_nil(errors.code_of(text .. " "))
    assert.is_nil(errors.code_of {})
    assert.is_nil(errors.code_of(failure(error, "shape")))
  end)
end)
