-- tests/spec/nn/element_loss_spec.lua - losses that compare element by element.
--
-- Against PyTorch's formulas, written out in plain Lua.

local gp = require "gpipe"
local array = require "tests.support.array"
local expect = require "tests.support.expect"

local nn = gp.nn
local fails_with = expect.fails_with

local OUTPUT = { { -2, -0.5, 0.25 }, { 0.75, 1.5, 4 } }
local TARGET = { { 1, 0, 1 }, { 0.5, 1.5, -1 } }
local TRUTH = { { 0, 1, 1 }, { 0.5, 0.25, 0 } }

-- { loss, options, output, target, formula of an element }
local cases = {
  { "MSELoss", {}, OUTPUT, TARGET, function(o, t) return (o - t) ^ 2 end },
  { "KLDivLoss", {}, OUTPUT, TRUTH,
    function(o, t) return (t > 0 and t * math.log(t) or 0) - t * o end },
  { "KLDivLoss", { log_target = true }, OUTPUT, TARGET,
    function(o, t) return math.exp(t) * (t - o) end },
}

local function with(opts, reduction)
  local all = { reduction = reduction }
  for key, value in pairs(opts) do all[key] = value end
  return all
end

local function tensors(case, dtype)
  return gp.tensor(case[3], { dtype = dtype }), gp.tensor(case[4], { dtype = dtype })
end

local function expected(case)
  local o, t = tensors(case, "f64")
  return array.map(case[5], array.of(o), array.of(t))
end

local function total(list)
  local sum = 0
  for _, v in ipairs(list) do sum = sum + v end
  return sum
end

-- Loss and gradient of the output, as a pipeline of `chunks` micro-batches has them.
local function trained(loss, output, target)
  local Given = nn.class "Given"
  function Given:init() self.p = nn.Parameter(output.shape, output, { dtype = output.dtype }) end
  function Given:forward(rows) return self.p * rows end
  local pipe <close> = gp.pipeline(nn.Sequential { Given() }, { loss = loss })
  local value = pipe:step(gp.ones({ #output, 1 }, { dtype = output.dtype }), target)
  return value, array.of(pipe:parameters()[1].grad)
end

local STEP = 2.0 ^ -17

describe("element losses", function()
  for _, case in ipairs(cases) do
    local options = {}
    for key, value in pairs(case[2]) do options[#options + 1] = key .. " = " .. tostring(value) end
    local name = ("nn.%s {%s}"):format(case[1], table.concat(options, ", "))

    it(name .. " has PyTorch's formula, mean, sum and one by one", function()
      local want = expected(case)
      for dtype, bound in pairs { f32 = 1e-5, f64 = 1e-12 } do
        local o, t = tensors(case, dtype)
        local each = array.of(nn[case[1]](with(case[2], "none"))(o, t))
        for i = 1, #want do assert.near(want[i], each[i], bound) end
        assert.near(total(want) / 6, nn[case[1]](case[2])(o, t):item(), bound)
        assert.near(total(want), nn[case[1]](with(case[2], "sum"))(o, t):item(), 6 * bound)
      end
    end)

    it(name .. " has the slopes of its formula", function()
      local o, t = tensors(case, "f64")
      local value, grad = trained(nn[case[1]](case[2]), o, t)
      assert.near(total(expected(case)) / 6, value, 1e-12)
      local flat, truth = array.of(o), array.of(t)
      for i = 1, #flat do
        local above, below = case[5](flat[i] + STEP, truth[i]), case[5](flat[i] - STEP, truth[i])
        assert.near((above - below) / (2 * STEP) / 6, grad[i], 1e-6, "element " .. i)
      end
    end)

    it(name .. " takes halves, in whose losses f32 is kept", function()
      local o, t = tensors(case, "bf16")
      local loss = nn[case[1]](case[2])(o, t)
      assert.equal("f32", loss.dtype)
      assert.near(total(expected(case)) / 6, loss:item(), 1e-5)
    end)
  end

  it("are the same whatever the micro-batches", function()
    local x, y = gp.randn({ 7, 4 }, { seed = 1 }), gp.rand({ 7, 3 }, { seed = 2 })
    for _, loss in ipairs { "MSELoss", "KLDivLoss" } do
      for _, reduction in ipairs { "mean", "sum", loss == "KLDivLoss" and "batchmean" or "mean" } do
        local values = {}
        for chunks = 1, 3 do
          local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 3) },
            { loss = nn[loss] { reduction = reduction }, chunks = chunks, seed = 3 })
          for _, p in ipairs(pipe:parameters()) do p.value:fill_(0.125) end
          values[chunks] = pipe:step(x, y)
        end
        assert.near(values[1], values[2], 1e-5 * (1 + math.abs(values[1])))
        assert.near(values[1], values[3], 1e-5 * (1 + math.abs(values[1])))
      end
    end
  end)

  it("of a batch mean divide by the rows", function()
    local o, t = gp.randn({ 4, 3 }, { seed = 1 }):log_softmax(), gp.randn({ 4, 3 }):softmax()
    local sum = nn.KLDivLoss { reduction = "sum" } (o, t):item()
    assert.near(sum / 4, nn.KLDivLoss { reduction = "batchmean" } (o, t):item(), 1e-6)
  end)

  it("cost nothing where the target is 0", function()
    assert.equal(0, nn.KLDivLoss()(gp.tensor { -3, -4 }, gp.zeros { 2 }):item())
  end)

  it("check shapes and options", function()
    fails_with("nn.MSELoss: option 'reduction'",
      function() nn.MSELoss { reduction = "batchmean" } end)
    fails_with("MSELoss: output is 2x3 and target is 3x2, expected equal shapes",
      function() nn.MSELoss()(gp.ones { 2, 3 }, gp.ones { 3, 2 }) end)
    fails_with("unknown option 'log_traget' (did you mean 'log_target'?)",
      function() nn.KLDivLoss { log_traget = true } end)
    fails_with('MSELoss none: reduction is "none", expected "mean" or "sum"', function()
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(2, 2) },
        { loss = nn.MSELoss { reduction = "none" } })
      pipe:step(gp.ones { 2, 2 }, gp.ones { 2, 2 })
    end)
  end)
end)
