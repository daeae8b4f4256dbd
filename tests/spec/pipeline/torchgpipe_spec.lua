-- tests/spec/pipeline/torchgpipe_spec.lua - what users of torchgpipe rely on, case by case of its
-- inventory (shared/reference/torchgpipe-behaviours.md, section 4).
--
-- Skips are in nn/skip_spec.lua and pipeline/skip_spec.lua, deferred batch norm in its own spec,
-- copies between devices in tests/gpu. What is tied to Python (phonies, portals, autograd nodes)
-- has no counterpart here; the specs test its effect: bits and recomputed actions. Where torchgpipe
-- is wrong, they expect the right behaviour.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local fails_with = require "tests.support.expect".fails_with
local training = require "tests.support.training"
local nn = gp.nn

local function linears(...)
  gp.seed(1)
  local widths, layers = { ... }, {}
  for i = 1, #widths - 1 do layers[i] = nn.Linear(widths[i], widths[i + 1]) end
  return nn.Sequential(layers)
end

-- Makes a layer of one function.
local function layer(forward)
  local Made = nn.class("Made")
  Made.forward = forward
  return Made()
end

-- Counts how often a stage did an action in the last pass.
local function count(pipe, op, stage)
  local n = 0
  for _, device in ipairs(pipe:timeline()) do
    for _, event in ipairs(device) do
      n = n + (event.op == op and event.stage == stage and 1 or 0)
    end
  end
  return n
end

-- Builds torchgpipe's order: the last micro-batch goes back first, so that it need not be
-- recomputed.
local function reversed(devices, chunks)
  return gp.schedule.build("gpipe", { devices = devices, chunks = chunks, backward = "lifo" })
end

local MODES = { "always", "except_last", "never" }

-- ---- what a pipeline is made of -----------------------------------------------------------------

describe("a pipeline", function()
  it("has the parameters of its model, under the same names", function()
    local model = linears(1, 1, 1)
    local pipe <close> = gp.pipeline(model, { balance = { 1, 1 } })
    local own = model:parameters()
    for i, p in ipairs(pipe:parameters()) do
      assert.equal(own[i].name, p.name)
      assert.is_true(gp.equal(own[i].value, p.value))
    end
    assert.equal(4, #pipe:parameters())
  end)

  it("knows the options it was made with", function()
    local pipe <close> = gp.pipeline(linears(1, 1, 1),
      { balance = { 1, 1 }, chunks = 4, checkpoint = "always" })
    assert.same({ { 1, 1 }, 4, "always" }, { pipe.balance, pipe.chunks, pipe.checkpoint })
  end)

  it("keeps the names of layers whatever the balance", function()
    local named = nn.Sequential { { "left", nn.Linear(1, 1) }, { "right", nn.Linear(1, 1) } }
    local pipe <close> = gp.pipeline(named, { balance = { 1, 1 } })
    local names = {}
    for name in pairs(pipe:state_dict()) do names[#names + 1] = name end
    table.sort(names)
    assert.same({ "left.bias", "left.weight", "right.bias", "right.weight" }, names)
  end)

  it("refuses a balance whose sum is not the number of layers", function()
    for _, balance in ipairs { { 1 }, { 3 } } do
      fails_with("adds up to " .. balance[1] .. " layers, the model has 2", gp.pipeline,
        linears(1, 1, 1), { balance = balance })
    end
  end)

  it("refuses stages of zero or fewer layers", function()
    fails_with("balance[1] is 0, expected a positive number", gp.pipeline, linears(1, 1, 1),
      { balance = { 0, 2 } })
    fails_with("balance[1] is -1, expected a positive number", gp.pipeline, linears(1, 1, 1),
      { balance = { -1, 3 } })
  end)

  it("suggests a balance where it refuses one", function()
    fails_with("balance = {2}, say", gp.pipeline, linears(1, 1, 1), { balance = { 1 } })
  end)

  it("refuses chunks below one", function()
    for _, chunks in ipairs { 0, -1 } do
      fails_with("option 'chunks' is " .. chunks .. ", expected an integer >= 1", gp.pipeline,
        linears(1, 1), { chunks = chunks })
    end
  end)

  it("refuses fewer devices than stages, and leaves more unused", function()
    fails_with("1 device where the schedule wants 2", gp.pipeline, linears(1, 1, 1),
      { balance = { 1, 1 }, devices = { "cpu" } })
    local pipe <close> = gp.pipeline(linears(1, 1, 1),
      { balance = { 1, 1 }, devices = { "cpu:0", "cpu:1", "cpu:2" } })
    assert.is_nil(tostring(pipe):find("cpu:2", 1, true))
  end)

  it("knows a device under each of its names", function()
    local pipe <close> = gp.pipeline(linears(1, 1, 1),
      { balance = { 1, 1 }, devices = { "cpu", "cpu:0" } })
    local _, stages = tostring(pipe):gsub("on cpu:0", "")
    assert.equal(2, stages)
  end)

  it("refuses a model without layers, and what is not a Sequential", function()
    fails_with("the model has no layers", gp.pipeline, nn.Sequential {}, {})
    assert.is_false(pcall(gp.pipeline, nn.Linear(1, 1), {}))
    assert.is_false(pcall(gp.pipeline, nil, {}))
  end)

  it("names the modes of recomputation where one is unknown", function()
    fails_with('option \'checkpoint\' is "INVALID" (string), expected one of "never", '
      .. '"selective", "except_last", "always"', gp.pipeline, linears(1, 1), { checkpoint = "INVALID" })
  end)
end)

-- ---- micro-batches -----------------------------------------------------------------------------

describe("micro-batches", function()
  it("may differ in size, and be fewer than chunks", function()
    for _, rows in ipairs { 7, 2, 1 } do
      local pipe <close> = gp.pipeline(linears(1, 1), { chunks = 4, loss = nn.MSELoss() })
      local x = gp.randn { rows, 1 }
      assert.equal("number", type(pipe:step(x, x)))
      assert.same({ rows, 1 }, pipe:forward(x).shape)
    end
  end)

  it("are joined as they were split", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Identity() }, { chunks = 3 })
    local x = gp.randn { 8, 2 }
    assert.is_true(gp.equal(x, pipe:eval():forward(x)))
  end)

  it("of tensors with unequal rows are refused, and no row is dropped", function()
    local sum <close> = gp.pipeline(nn.Sequential { layer(function(_, a, b) return a + b end) },
      { chunks = 2 })
    fails_with("the input has 4 rows and the other input 3", sum.forward, sum,
      { gp.ones { 4, 1 }, gp.ones { 3, 1 } })
  end)

  it("go through the stages in the order of torchgpipe's clock", function()
    for _, case in ipairs { { 1, 1 }, { 1, 3 }, { 3, 1 }, { 3, 3 }, { 4, 2 } } do
      local m, n = case[1], case[2]
      local s = gp.schedule.build("gpipe", { devices = n, chunks = m })
      -- In lock-step (micro, stage) runs at clock micro + stage:
      for stage, row in ipairs(s:rows()) do
        local forwards = {}
        for clock = 1, m do forwards[clock] = ("%dF%d"):format(stage - 1, clock - 1) end
        assert.equal(1, row:find(table.concat(forwards, ","), 1, true))
      end
    end
  end)
end)

-- ---- what goes in and out -----------------------------------------------------------------------

describe("forward and backward", function()
  it("take and give a pair, with gradients", function()
    gp.seed(2)
    local Two = nn.class("Two")
    function Two:init() self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1) end
    function Two:forward(x, y) return self.a(x), self.b(y) end
    local pipe <close> = gp.pipeline(nn.Sequential { Two(), Two() },
      { balance = { 1, 1 }, chunks = 2 })
    local x, y = gp.randn { 10, 1 }, gp.randn { 10, 1 }
    local a, b = pipe:forward { x, y }
    pipe:backward { gp.ones(a.shape) / 20, gp.ones(b.shape) / 20 }
    for _, p in ipairs(pipe:parameters()) do assert.is_true(p.grad:abs():sum():item() > 0) end
  end)

  it("take a list of one tensor as that tensor", function()
    local pipe <close> = gp.pipeline(linears(1, 1), { chunks = 2 })
    local x = gp.randn { 4, 1 }
    assert.is_true(gp.equal(pipe:forward(x), pipe:forward { x }))
  end)

  it("refuse a second argument, because several inputs are a list", function()
    local pipe <close> = gp.pipeline(linears(1, 1))
    local x = gp.randn { 4, 1 }
    fails_with("forward: 2 arguments, expected one: several inputs are a list", pipe.forward, pipe,
      x, x)
  end)

  it("refuse values that are not tensors, from outside and from a layer", function()
    local pipe <close> = gp.pipeline(linears(1, 1))
    fails_with("forward: the input is \"hello\" (string), expected a tensor", pipe.forward, pipe,
      "hello")
    fails_with("forward: the input is \"hello\" (string), expected a tensor", pipe.forward, pipe,
      { "hello" })
    for _, value in ipairs { "hello", {}, 5 } do
      local wrong <close> = gp.pipeline(nn.Sequential { layer(function() return value end) })
      assert.is_false(pcall(wrong.forward, wrong, gp.ones { 2, 1 }))
    end
  end)

  it("pass values without a gradient through layers that train", function()
    local Split = layer(function(_, v) return v, v:argmax(2) end)
    local Use = layer(function(_, v, ids) return v * ids:to("f32"):reshape { -1, 1 } end)
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(2, 2), Split, Use, nn.Linear(2, 1) },
      { balance = { 1, 1, 1, 1 }, chunks = 3, checkpoint = "always", loss = nn.MSELoss() })
    assert.equal("number", type(pipe:step(gp.randn { 7, 2 }, gp.randn { 7, 1 })))
  end)
end)

-- ---- recomputation -----------------------------------------------------------------------------

describe("recomputation", function()
  local x = gp.ones { 2, 1 }

  it("happens for two, one and none of two micro-batches: always, except_last, never", function()
    local times = {}
    for _, mode in ipairs(MODES) do
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(1, 1), nn.Tanh() },
        { chunks = 2, checkpoint = mode, schedule = reversed(1, 2), loss = nn.MSELoss() })
      pipe:step(x, x)
      times[#times + 1] = count(pipe, "R", 0)
    end
    assert.same({ 2, 1, 0 }, times)
  end)

  it("leaves out the last micro-batch, also where there are fewer than chunks", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(1, 1), nn.Tanh() },
      { chunks = 8, checkpoint = "except_last", schedule = { "gpipe", backward = "lifo" },
        loss = nn.MSELoss() })
    pipe:step(x, x)
    assert.equal(1, count(pipe, "R", 0))
  end)

  it("is allowed with one chunk", function()
    for _, mode in ipairs(MODES) do
      local pipe <close> = gp.pipeline(linears(1, 1), { chunks = 1, checkpoint = mode,
        loss = nn.MSELoss() })
      pipe:step(x, x)
    end
  end)

  it("does not happen in evaluation", function()
    local pipe <close> = gp.pipeline(linears(1, 1, 1),
      { balance = { 1, 1 }, chunks = 2, checkpoint = "always", loss = nn.MSELoss() })
    pipe:evaluate(x, x)
    assert.equal(0, count(pipe, "R", 0) + count(pipe, "R", 1))
    pipe:eval():forward(x)
    assert.equal(0, count(pipe, "R", 0) + count(pipe, "R", 1))
  end)

  it("drops what forward dropped, over 100 layers of dropout and 10 chunks", function()
    local function drops()
      local layers = { nn.Embedding(10, 8) }
      for _ = 1, 100 do layers[#layers + 1] = nn.Dropout(0.01) end
      return nn.Sequential(layers)
    end
    local ids = gp.tensor({ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, { dtype = "i64" })
    local pipe <close> = gp.pipeline(drops(),
      { balance = { 51, 50 }, chunks = 10, checkpoint = "always" })
    pipe:parameters()[1].value:copy_(1)
    local output = pipe:forward(ids)
    pipe:backward(gp.ones(output.shape))
    -- Only row i reads row i of the table, so its gradient is that of the dropped input.
    assert.is_true(gp.equal(output:eq(0), pipe:parameters()[1].grad:eq(0)))
    assert.is_true(output:eq(0):to("f32"):sum():item() > 0)
  end)

  it("gives parameters gradients where no input has one, the same in every mode", function()
    local first
    for _, mode in ipairs(MODES) do
      gp.seed(4)
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(3, 3), nn.Dropout(0.5),
        nn.Linear(3, 1) }, { balance = { 2, 1 }, chunks = 3, checkpoint = mode, seed = 1,
        loss = nn.MSELoss() })
      pipe:step(gp.ones { 7, 3 }, gp.zeros { 7, 1 })
      local got = training.gradients(pipe)
      first = first or got
      for name, grad in pairs(got) do assert.is_true(gp.equal(first[name], grad)) end
    end
  end)
end)

-- ---- failures ----------------------------------------------------------------------------------

-- Fails in training, at run time, in the stage that holds the embedding.
local function out_of_range(pipe, ids)
  return pcall(pipe.step, pipe, ids, gp.zeros { ids.shape[1], 1 })
end

describe("a stage that fails", function()
  local function model()
    return nn.Sequential { nn.Identity(), nn.Identity(), nn.Embedding(4, 1) }
  end

  it("ends the pass with its error and no hang: the last of three stages, three chunks", function()
    local pipe <close> = gp.pipeline(model(), { balance = { 1, 1, 1 }, chunks = 3,
      loss = nn.MSELoss() })
    local good, text = out_of_range(pipe, gp.tensor({ 9, 0, 1 }, { dtype = "i64" }))
    assert.is_false(good)
    assert.is_truthy(text:find("id 9 at row 1", 1, true))
    assert.is_true(out_of_range(pipe, gp.tensor({ 3, 0, 1 }, { dtype = "i64" })))
  end)

  it("is reported first in the order of the schedule where several fail", function()
    local pipe <close> = gp.pipeline(model(), { balance = { 1, 1, 1 }, chunks = 3,
      loss = nn.MSELoss() })
    local _, text = out_of_range(pipe, gp.tensor({ 0, 8, 9 }, { dtype = "i64" }))
    assert.is_truthy(text:find("id 8 at row 2", 1, true))
  end)
end)

-- ---- in place ----------------------------------------------------------------------------------

describe("writing in place", function()
  it("to a value of the pass is refused, so that nothing is written twice", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(1, 1),
      layer(function(_, v) return v:add_(1) end) }, { checkpoint = "always" })
    fails_with("only an nn.Buffer can be written", pipe.forward, pipe, gp.ones { 2, 1 })
  end)

  it("to a buffer happens once per micro-batch, recomputed or not", function()
    local Count = nn.class("Count")
    function Count:init() self.seen = nn.Buffer({ 1 }) end
    function Count:forward(v)
      self.seen:copy_(self.seen + 1)
      return v * 2
    end
    for _, mode in ipairs(MODES) do
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(1, 1), Count() },
        { balance = { 1, 1 }, chunks = 3, checkpoint = mode, loss = nn.MSELoss() })
      pipe:step(gp.ones { 3, 1 }, gp.ones { 3, 1 })
      assert.equal(3, pipe:state_dict()["2.seen"]:item())
    end
  end)
end)

-- ---- transparency ------------------------------------------------------------------------------

describe("gradients", function()
  it("are those of the model without a pipeline", function()
    local x = gp.randn({ 8, 1 }, { seed = 1 })
    local own = linears(1, 2, 4, 2, 1)
    own(x):mean():backward()
    local pipe <close> = gp.pipeline(linears(1, 2, 4, 2, 1),
      { balance = { 2, 2 }, chunks = 4, loss = function(y) return y:mean() end })
    pipe:step(x, x)
    assert.is_true(training.distance(training.gradients(pipe), training.gradients(own), 1e-5,
      1e-7) <= 1)
  end)

  it("wait for all of a list, also for the slow second one of a pair", function()
    gp.seed(3)
    local Slow = layer(function(_, a, b)
      for _ = 1, 50 do b = b * 1.0 end
      return a, b
    end)
    local Pair = nn.class("Pair")
    function Pair:init() self.w = nn.Parameter({ 1 }, nn.init.constant(1)) end
    function Pair:forward(x) return x * self.w, x * self.w end
    local Join = layer(function(_, a, b) return a * 0 + b end)
    local pipe <close> = gp.pipeline(nn.Sequential { Pair(), Slow, Join },
      { balance = { 1, 1, 1 }, chunks = 32, checkpoint = "never" })
    local y = pipe:forward(gp.ones { 64, 1 })
    pipe:backward(gp.ones(y.shape))
    assert.equal(64, pipe:parameters()[1].grad:item())
  end)
end)
