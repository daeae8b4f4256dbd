-- tests/spec/nn/element_loss_spec.lua - losses that compare element by element, and nn.NLLLoss.
--
-- The references are PyTorch's formulas, written out in plain Lua.

local gp = require "gpipe"
local array = require "tests.support.array"
local expect = require "tests.support.expect"

local nn = gp.nn
local fails_with = expect.fails_with

local OUTPUT = { { -2, -0.5, 0.25 }, { 0.75, 1.5, 4 } }
local TARGET = { { 1, 0, 1 }, { 0.5, 1.5, -1 } }
local SHARES = { { 0.25, 0.5, 0.125 }, { 0.75, 0.875, 0.0625 } }
local TRUTH = { { 0, 1, 1 }, { 0.5, 0.25, 0 } }

local function huber(d, delta)
  return d < delta and d * d / 2 or delta * (d - delta / 2)
end

-- { loss, options, output, target, formula of an element }
local cases = {
  { "MSELoss", {}, OUTPUT, TARGET, function(o, t) return (o - t) ^ 2 end },
  { "L1Loss", {}, OUTPUT, TARGET, function(o, t) return math.abs(o - t) end },
  { "SmoothL1Loss", {}, OUTPUT, TARGET, function(o, t) return huber(math.abs(o - t), 1) end },
  { "SmoothL1Loss", { beta = 2 }, OUTPUT, TARGET,
    function(o, t) return huber(math.abs(o - t), 2) / 2 end },
  { "SmoothL1Loss", { beta = 0 }, OUTPUT, TARGET, function(o, t) return math.abs(o - t) end },
  { "HuberLoss", {}, OUTPUT, TARGET, function(o, t) return huber(math.abs(o - t), 1) end },
  { "HuberLoss", { delta = 2.5 }, OUTPUT, TARGET,
    function(o, t) return huber(math.abs(o - t), 2.5) end },
  { "BCELoss", {}, SHARES, TRUTH,
    function(o, t) return -(t * math.log(o) + (1 - t) * math.log(1 - o)) end },
  { "BCEWithLogitsLoss", {}, OUTPUT, TRUTH,
    function(o, t) return math.log(1 + math.exp(o)) - t * o end },
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

-- Returns the loss and the gradient of the output in a pipeline of `chunks` micro-batches.
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

    it(name .. " takes halves, and keeps their losses in f32", function()
      local o, t = tensors(case, "bf16")
      local loss = nn[case[1]](case[2])(o, t)
      assert.equal("f32", loss.dtype)
      assert.near(total(expected(case)) / 6, loss:item(), 1e-5)
    end)
  end

  it("are the same whatever the micro-batches", function()
    local x, y = gp.randn({ 7, 4 }, { seed = 1 }), gp.rand({ 7, 3 }, { seed = 2 })
    for _, loss in ipairs { "L1Loss", "SmoothL1Loss", "BCEWithLogitsLoss", "KLDivLoss" } do
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

  it("with reduction batchmean divide by the rows", function()
    local o, t = gp.randn({ 4, 3 }, { seed = 1 }):log_softmax(), gp.randn({ 4, 3 }):softmax()
    local sum = nn.KLDivLoss { reduction = "sum" } (o, t):item()
    assert.near(sum / 4, nn.KLDivLoss { reduction = "batchmean" } (o, t):item(), 1e-6)
  end)

  it("stay finite at the ends of their range", function()
    local zero_one = gp.tensor { 0, 1, 1, 0 }
    assert.near(50, nn.BCELoss()(zero_one, gp.tensor { 0, 1, 0, 1 }):item(), 1e-4)
    assert.near(50, nn.BCEWithLogitsLoss()(gp.tensor { -100, 100 }, gp.tensor { 0, 0 }):item(), 1e-4)
    assert.equal(0, nn.KLDivLoss()(gp.tensor { -3, -4 }, gp.zeros { 2 }):item())
  end)

  it("check shapes and options", function()
    fails_with("L1Loss: output is 2x3 and target is 3x2, expected equal shapes",
      function() nn.L1Loss()(gp.ones { 2, 3 }, gp.ones { 3, 2 }) end)
    fails_with("BCELoss: target is nil, expected a tensor",
      function() nn.BCELoss()(gp.ones { 2 }) end)
    fails_with("nn.HuberLoss: option 'delta' is 0, expected a number > 0",
      function() nn.HuberLoss { delta = 0 } end)
    fails_with("nn.SmoothL1Loss: option 'beta' is -1", function() nn.SmoothL1Loss { beta = -1 } end)
    fails_with("unknown option 'dleta' (did you mean 'delta'?)",
      function() nn.HuberLoss { dleta = 2 } end)
    fails_with("nn.L1Loss: option 'reduction'", function() nn.L1Loss { reduction = "batchmean" } end)
    fails_with('L1Loss none: reduction is "none", expected "mean" or "sum"', function()
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(2, 2) },
        { loss = nn.L1Loss { reduction = "none" } })
      pipe:step(gp.ones { 2, 2 }, gp.ones { 2, 2 })
    end)
  end)
end)

describe("nn.NLLLoss", function()
  local scores = gp.randn({ 2, 3, 5 }, { seed = 4 })
  local labels = gp.tensor({ { 0, 4, 2 }, { 2, 1, 3 } }, { dtype = "i64" })

  it("gives for logarithms what nn.CrossEntropyLoss gives for scores", function()
    for _, opts in ipairs { {}, { ignore_index = 2 }, { reduction = "sum" } } do
      assert.near(nn.CrossEntropyLoss(opts)(scores, labels):item(),
        nn.NLLLoss(opts)(nn.LogSoftmax()(scores), labels):item(), 1e-5)
    end
  end)

  it("gives the losses one by one, and 0 where every id is ignored", function()
    local each = nn.NLLLoss { reduction = "none" } (scores, labels)
    assert.same({ 2, 3 }, each.shape)
    assert.equal(-scores[2][3][4], each[2][3])
    local ignored = gp.full({ 2, 3 }, -100, { dtype = "i64" })
    assert.equal(0, nn.NLLLoss { ignore_index = -100 } (scores, ignored):item())
  end)

  it("trains as nn.CrossEntropyLoss does", function()
    local flat, ids = scores:reshape { 1, 6, 5 }, labels:reshape { 1, 6 }
    local want, grad = trained(nn.CrossEntropyLoss(), flat, ids)
    local Both = nn.class("Both", nn.Loss)
    local nll = nn.NLLLoss()
    function Both.terms(_, output, target) return nll:terms(output:log_softmax(), target) end
    local have, its = trained(Both(), flat, ids)
    assert.near(want, have, 1e-6)
    for i = 1, #grad do assert.near(grad[i], its[i], 1e-6) end
  end)

  it("checks shapes, dtypes and ids", function()
    fails_with("NLLLoss: output is 2x3x5 and target is 2, expected a target of 2x3",
      function() nn.NLLLoss()(scores, gp.zeros({ 2 }, { dtype = "i64" })) end)
    fails_with("NLLLoss: target is f32, expected class ids",
      function() nn.NLLLoss()(scores, gp.zeros { 2, 3 }) end)
    fails_with("class 5 at row 1", function()
      nn.NLLLoss()(scores, gp.full({ 2, 3 }, 5, { dtype = "i64" }))
    end)
  end)
end)
