-- tests/spec/pipeline/fuse_spec.lua - fused neighbours change no bit on a CPU, and can be switched
-- off.
--
-- tests/c/graph/fuse_test.c tests which neighbours fuse. Comparisons are ==.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local models = require "tests.support.models"
local residual = require "tests.support.residual"
local training = require "tests.support.training"
local nn = gp.nn

-- Returns the list, and the same pipelines with every op on its own.
local function with_and_without(list)
  local all = {}
  for _, options in ipairs(list) do
    local apart = { fuse = false }
    for key, value in pairs(options) do apart[key] = value end
    all[#all + 1], all[#all + 2] = options, apart
  end
  return all
end

-- Makes two perceptrons: one adds to its input, the GELU of the other ends a layer; with and
-- without biases.
local function perceptrons(dtype)
  return function()
    gp.seed(4)
    local d, bare = { dtype = dtype }, { dtype = dtype, bias = false }
    return nn.Sequential {
      nn.Linear(6, 8, d),
      nn.Residual(nn.Sequential {
        nn.LayerNorm(8, d), nn.Linear(8, 16, bare), nn.GELU("tanh"), nn.Linear(16, 8, bare),
      }),
      nn.Sequential { nn.LayerNorm(8, d), nn.Linear(8, 12, d), nn.GELU("tanh") },
      nn.Sequential { nn.Linear(12, 12, d), nn.GELU("erf"), nn.Linear(12, 3, d) },
    }
  end
end

describe("fused ops of a layer give the bits of single ops:", function()
  it("a small GPT, any cut, schedule and checkpoint mode", function()
    training.check_same(models.setup { steps = 3 }, with_and_without(training.combinations {
      balance = models.CUTS, schedule = { "1f1b", "gpipe" }, threads = { 1, 3 },
    }))
  end)

  it("the input's gradients separate from the weights'", function()
    training.check_same(models.setup(), with_and_without(training.combinations {
      balance = { { 3, 4 }, { 2, 3, 2 } }, schedule = { "zb_h1" },
    }))
  end)

  for _, dtype in ipairs { "f32", "f64" } do
    it("perceptrons in " .. dtype .. ", chunks of two sizes", function()
      training.check_same({
        model = perceptrons(dtype), x = models.rows_of(7, 6, dtype),
        y = models.rows_of(7, 3, dtype),
        loss = nn.MSELoss(), steps = 3,
      }, with_and_without(training.combinations {
        balance = { { 4 }, { 1, 3 }, { 2, 2 }, { 3, 1 } }, schedule = { "1f1b" }, chunks = 4,
      }))
    end)
  end

  it("layers that are frozen in part", function()
    training.check_same({
      model = function()
        local model = perceptrons()()
        model:freeze "bias$"
        model:freeze "^4%.3"
        return model
      end,
      x = models.rows_of(5, 6), y = models.rows_of(5, 3), loss = nn.MSELoss(),
    }, with_and_without(training.combinations { balance = { { 4 }, { 2, 2 } },
      schedule = { "1f1b" } }))
  end)

  for _, dtype in ipairs { "f32", "f64" } do
    it("a residual network in " .. dtype .. ", cut anywhere", function()
      local setup = {
        model = residual(4, dtype), x = gp.randn({ 7, 3, 4, 4 }, { seed = 3, dtype = dtype }),
        y = models.rows_of(7, 2, dtype), loss = nn.MSELoss(), steps = 2,
      }
      local balance = { { 14 } }
      for first = 1, 13 do balance[#balance + 1] = { first, 14 - first } end
      training.check_same(setup, with_and_without(training.combinations {
        balance = balance, schedule = { "1f1b" }, checkpoint = { "never" },
      }))
      training.check_same(setup, with_and_without(training.combinations {
        balance = { { 14 }, { 6, 8 }, { 3, 4, 7 } }, schedule = { "1f1b", "zb_h1" },
        checkpoint = { "always", "except_last", "selective" }, threads = { 2 },
      }))
    end)
  end

  it("a residual network whose norms see whole mini-batches, or are frozen", function()
    local function frozen()
      local model = residual(4)()
      model:freeze "^2%."
      model:freeze "^6%.bias"
      return model
    end
    local list = training.combinations { balance = { { 14 }, { 7, 7 } }, schedule = { "1f1b" },
      checkpoint = { "never", "always" } }
    for _, options in ipairs(list) do options.deferred_batch_norm = true end
    training.check_same({
      model = frozen, x = gp.randn({ 7, 3, 4, 4 }, { seed = 3 }), y = models.rows_of(7, 2),
      loss = nn.MSELoss(), steps = 3,
    }, with_and_without(list))
  end)

  it("gradients that the script gives", function()
    local results = {}
    for _, fuse in ipairs { true, false } do
      local pipe <close> = gp.pipeline(perceptrons()(),
        { balance = { 2, 2 }, chunks = 2, fuse = fuse })
      local out = pipe:forward(models.rows_of(6, 6))
      pipe:backward(gp.ones(out.shape))
      results[#results + 1] = { losses = {}, first = { out }, state = {},
        gradients = training.gradients(pipe) }
    end
    assert.is_nil(training.difference(results[1], results[2]))
  end)
end)

-- ---- the switch --------------------------------------------------------------------------------

-- Prints the bytes that a forward and backward pass of the model move, by the plan.
local COUNT = [[
local gp = require "gpipe"
local nn = gp.nn
local function block() return nn.Sequential {nn.Linear(8, 8), nn.GELU("tanh"), nn.Linear(8, 8)} end
local pipe <close> = gp.pipeline(nn.Sequential {block()}, {loss = nn.MSELoss(), fuse = ...})
local x = gp.ones {4, 8}
pipe:step(x, x)
local _, plan = next(pipe.plans)
local core = require "gpipe.pipeline.object".inside(pipe).core
local total = 0
for _, act in ipairs {"F", "B"} do total = total + select(2, core:cost(plan.handle, 0, act)) end
print(total)
]]

local function bytes(option, environment)
  local path = child.file(COUNT:gsub("%.%.%.", tostring(option)))
  local out, err, code = child.run({ path }, { environment = environment })
  os.remove(path)
  assert(code == 0, err)
  return tonumber(out)
end

describe("the option fuse", function()
  it("is on unless the script or else the environment says otherwise", function()
    local fused, apart = bytes(true), bytes(false)
    assert.is_true(fused < apart)
    assert.are.equal(fused, bytes(nil))
    assert.are.equal(apart, bytes(nil, { GPIPE_FUSE = "0" }))
    assert.are.equal(fused, bytes(true, { GPIPE_FUSE = "0" }))
    assert.are.equal(fused, bytes(nil, { GPIPE_FUSE = "1" }))
  end)
end)
