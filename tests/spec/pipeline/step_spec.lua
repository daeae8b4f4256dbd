-- tests/spec/pipeline/step_spec.lua - step, evaluate, forward and backward of a pipeline.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn
local model, pipe_of, x, y = models.classifier()

local function zero(tensor)
  return gp.equal(tensor, gp.zeros(tensor.shape, { dtype = tensor.dtype }))
end

-- ---- steps -------------------------------------------------------------------------------------

describe("step", function()
  it("returns the mean loss as a number and leaves gradients", function()
    local pipe <close> = pipe_of()
    local loss = pipe:step(x, y)
    assert.equal("float", math.type(loss))
    assert.is_true(loss > 0.5 and loss < 3)
    for _, p in ipairs(pipe:parameters()) do assert.is_false(zero(p.grad)) end
  end)

  it("starts from zero unless accumulate is set", function()
    local pipe <close> = pipe_of { checkpoint = "always" }
    pipe:eval() -- only for the model's own calls: steps train
    local weight = pipe:parameters()[4]
    pipe:step(x, y)
    local once = weight.grad:clone()
    pipe:zero_grad()
    assert.is_true(zero(weight.grad))
    pipe:step(x, y)
    assert.is_false(zero(weight.grad))
    pipe:step(x, y, { accumulate = true })
    assert.is_false(gp.equal(once, weight.grad))
  end)

  it("adds gradients exactly where nothing is random", function()
    local plain = nn.Sequential { nn.Linear(4, 3) }
    local pipe <close> = gp.pipeline(plain,
      { chunks = 2, loss = nn.CrossEntropyLoss { reduction = "sum" } })
    local weight = pipe:parameters()[1]
    pipe:step(x:narrow(1, 1, 4), y:narrow(1, 1, 4))
    local first = weight.grad:clone()
    pipe:step(x:narrow(1, 5, 3), y:narrow(1, 5, 3), { accumulate = true })
    local both = weight.grad:clone()
    pipe:step(x:narrow(1, 5, 3), y:narrow(1, 5, 3))
    assert.is_true(training.distance({ both }, { first + weight.grad }, 1e-6, 1e-7) <= 1)
  end)

  it("draws new dropout in every step, and the same with the same seed", function()
    local losses = {}
    for k = 1, 2 do
      local pipe <close> = pipe_of()
      losses[k] = { pipe:step(x, y), pipe:step(x, y) }
    end
    assert.same(losses[1], losses[2])
    assert.not_equal(losses[1][1], losses[1][2])
    local other <close> = pipe_of { seed = 3 }
    assert.not_equal(losses[1][1], other:step(x, y))
  end)

  it("takes strided tensors, and lists of tensors", function()
    local turned = x:transpose(1, 2):contiguous():transpose(1, 2)
    assert.is_false(turned:is_contiguous())
    local a <close> = pipe_of()
    local b <close> = pipe_of()
    assert.equal(a:step(x, y), b:step({ turned }, { y }))
    assert.is_nil(training.difference(
      { losses = {}, first = {}, gradients = training.gradients(a), state = {} },
      { losses = {}, first = {}, gradients = training.gradients(b), state = {} }))
  end)

  it("takes several inputs and targets", function()
    local Two = nn.class("Two")
    function Two:init() self.fc = nn.Linear(4, 3) end
    function Two:forward(a, b) return self.fc(a) + b end
    local two = nn.Sequential { Two() }
    local pipe <close> = gp.pipeline(two, { chunks = 2, loss = function(output, target, weight)
      local gap = (output - target) * weight
      return (gap * gap):sum(), output:numel()
    end })
    local b, t, w = gp.ones { 7, 3 }, gp.zeros { 7, 3 }, gp.full({ 7, 1 }, 2)
    local expected = ((two(x, b) * 2) ^ 2):mean():item()
    assert.is_true(math.abs(pipe:step({ x, b }, { t, w }) - expected) < 1e-5)
  end)

  it("makes at most as many micro-batches as there are rows", function()
    local pipe <close> = pipe_of { chunks = 100 }
    assert.equal("number", type(pipe:step(x:narrow(1, 1, 1), y:narrow(1, 1, 1))))
    assert.equal("number", type(pipe:step(x, y)))
  end)
end)

describe("evaluate", function()
  it("is the eager loss in evaluation mode and leaves everything as it was", function()
    local own = model()
    local pipe <close> = pipe_of({ balance = { 1, 3 } }, own)
    pipe:step(x, y)
    local before, state = training.gradients(pipe), pipe:state_dict()
    local loss = pipe:evaluate(x, y)
    own:eval()
    assert.is_true(math.abs(loss - nn.CrossEntropyLoss()(own(x), y):item()) < 1e-6)
    assert.equal(loss, pipe:evaluate(x, y))
    for name, grad in pairs(training.gradients(pipe)) do
      assert.is_true(gp.equal(grad, before[name]))
    end
    for name, value in pairs(pipe:state_dict()) do assert.is_true(gp.equal(value, state[name])) end
  end)

  it("does not advance the clock of dropout", function()
    local a <close> = pipe_of()
    local b <close> = pipe_of()
    a:evaluate(x, y)
    a:eval():forward(x)
    assert.equal(a:step(x, y), b:step(x, y))
  end)

  it("writes a buffer in its own dtype, whatever is assigned", function()
    local Sum = nn.class("Sum")
    function Sum:init() self.seen = nn.Buffer({ 1 }) end
    function Sum:forward(v)
      self.seen:copy_(self.seen:to "f64" + 2 ^ -10)
      return v
    end
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 3), Sum() }, { chunks = 2,
      loss = nn.CrossEntropyLoss() })
    pipe:step(x, y)
    local seen = pipe:state_dict()["2.seen"]
    assert.same({ "f32", 2 ^ -9 }, { seen.dtype, seen:item() })
  end)

  it("writes no buffers", function()
    local Count = nn.class("Count")
    function Count:init() self.seen = nn.Buffer({ 1 }) end
    function Count:forward(v)
      self.seen:copy_(self.seen + 1)
      return v
    end
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 3), Count() }, { chunks = 2,
      loss = nn.CrossEntropyLoss() })
    pipe:step(x, y)
    pipe:evaluate(x, y)
    pipe:eval():forward(x)
    assert.equal(2, pipe:state_dict()["2.seen"]:item())
    pipe:train():forward(x)
    assert.equal(4, pipe:state_dict()["2.seen"]:item())
  end)
end)

-- ---- forward and backward ----------------------------------------------------------------------

describe("forward", function()
  it("returns all rows of the output, in evaluation mode those of the eager model", function()
    local own = model()
    local pipe <close> = pipe_of({ chunks = 7 }, own)
    local output = pipe:eval():forward(x)
    assert.same({ 7, 3 }, output.shape)
    own:eval()
    assert.is_true(training.distance({ output }, { own(x) }, 1e-6, 1e-6) <= 1)
  end)

  it("drops in training mode, other elements every time", function()
    local pipe <close> = pipe_of()
    local first = pipe:forward(x)
    assert.is_false(gp.equal(first, pipe:forward(x)))
    assert.is_true(gp.equal(pipe:eval():forward(x), pipe:forward(x)))
  end)

  it("joins outputs that have several rows per input row", function()
    local Flat = nn.class("Flat")
    function Flat:forward(v) return v:reshape { -1, 2 } end
    local flat = nn.Sequential { nn.Linear(4, 8), Flat() }
    local pipe <close> = gp.pipeline(flat, { balance = { 1, 1 }, chunks = 3 })
    assert.is_true(training.distance({ pipe:forward(x) }, { flat(x) }, 1e-6, 1e-6) <= 1)
    pipe:backward(gp.ones { 28, 2 })
  end)

  it("works without a loss, also of integers", function()
    local Best = nn.class("Best")
    function Best:forward(v) return v:argmax(2) end
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 8), Best() },
      { balance = { 1, 1 }, chunks = 2 })
    assert.equal("i64", pipe:forward(x).dtype)
    fails_with("the pipeline has no loss, expected option 'loss' (or use forward and backward)",
      pipe.step, pipe, x, y)
    fails_with("the pipeline has no loss", pipe.evaluate, pipe, x, y)
  end)
end)

describe("backward", function()
  -- Computes the gradient of the mean squared error by hand.
  local function by_hand(pipe, target)
    local output = pipe:forward(x)
    pipe:backward((output - target) * (2 / output:numel()))
    return ((output - target) ^ 2):mean():item()
  end

  for _, checkpoint in ipairs { "always", "except_last", "never" } do
    it("gives the gradients of step: " .. checkpoint, function()
      local target = gp.randn({ 7, 3 }, { seed = 9 })
      local a <close> = pipe_of { checkpoint = checkpoint, loss = nn.MSELoss() }
      local b <close> = pipe_of { checkpoint = checkpoint }
      for _ = 1, 2 do assert.is_true(math.abs(a:step(x, target) - by_hand(b, target)) < 1e-5) end
      assert.is_true(training.distance(training.gradients(b), training.gradients(a), 1e-4,
        1e-7) <= 1)
    end)
  end

  it("gives the same bits for every cut and checkpoint mode", function()
    local first
    for _, options in ipairs(training.combinations { balance = { { 4 }, { 2, 2 }, { 1, 1, 2 } },
      schedule = { "1f1b" } }) do
      local pipe <close> = pipe_of(options)
      by_hand(pipe, gp.zeros { 7, 3 })
      local gradients = training.gradients(pipe)
      first = first or gradients
      for name, grad in pairs(gradients) do assert.is_true(gp.equal(grad, first[name])) end
    end
  end)

  it("accumulates on request", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 3) }, { chunks = 2 })
    local ones = gp.ones { 7, 3 }
    pipe:forward(x)
    pipe:backward(ones)
    local once = pipe:parameters()[2].grad:clone()
    pipe:forward(x)
    pipe:backward(ones, { accumulate = true })
    assert.is_true(gp.equal(once * 2, pipe:parameters()[2].grad))
  end)

  it("comes once after each forward in training mode", function()
    local none = "backward: there is no forward to go back through"
    local pipe <close> = pipe_of()
    local grad = gp.ones { 7, 3 }
    fails_with(none, pipe.backward, pipe, grad)
    pipe:forward(x)
    pipe:backward(grad)
    fails_with(none, pipe.backward, pipe, grad)
    pipe:forward(x)
    pipe:step(x, y)
    fails_with(none, pipe.backward, pipe, grad)
    pipe:eval():forward(x)
    fails_with(none, pipe.backward, pipe, grad)
  end)

  -- R and the input gradients would read the new weights.
  it("is refused where values that forward read have changed since", function()
    local own_x = x:clone()
    local changes = {
      { "layer 1", function(pipe) pipe:parameters()[1].value:copy_(0) end },
      { "layer 4", function(pipe) pipe:parameters()[3].value[1][1] = 2 end },
      { "layer 1", function(pipe) pipe:load_state_dict(pipe:state_dict()) end },
      { "update", function(_, opt) opt:step() end },
      { "input 1", function() own_x[1][1] = 5 end },
    }
    for _, change in ipairs(changes) do
      local pipe <close> = pipe_of { checkpoint = "always" }
      local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
      pipe:forward(own_x)
      pipe:backward(gp.ones { 7, 3 })
      pipe:forward(own_x)
      change[2](pipe, opt)
      fails_with(change[1], pipe.backward, pipe, gp.ones { 7, 3 })
      pipe:forward(own_x)
      pipe:backward(gp.ones { 7, 3 })
    end
  end)

  it("may come after evaluations of many shapes", function()
    local a <close> = pipe_of()
    local b <close> = pipe_of()
    a:forward(x)
    b:forward(x)
    for rows = 1, 7 do
      a:evaluate(x:narrow(1, 1, rows), y:narrow(1, 1, rows))
    end
    a:backward(gp.ones { 7, 3 })
    b:backward(gp.ones { 7, 3 })
    assert.is_true(gp.equal(a:parameters()[1].grad, b:parameters()[1].grad))
  end)

  it("says which gradient it expects", function()
    local pipe <close> = pipe_of()
    pipe:forward(x)
    fails_with("backward: the gradient is 3, expected a tensor", pipe.backward, pipe, 3)
    fails_with("backward: the gradient is f32 3, expected f32 7x3 as forward returned",
      pipe.backward, pipe,
      gp.ones { 3 })
    fails_with("backward: the gradient is f64 7x3, expected f32 7x3", pipe.backward, pipe,
      gp.ones({ 7, 3 },
      { dtype = "f64" }))
    pipe:backward(gp.ones { 7, 3 }:transpose(1, 2):contiguous():transpose(1, 2))
  end)
end)
