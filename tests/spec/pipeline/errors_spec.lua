-- tests/spec/pipeline/errors_spec.lua - errors state both numbers and a way out, and the next step
-- works.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local expect = require "tests.support.expect"
local failure, fails_with = expect.failure, expect.fails_with
local nn = gp.nn

local misuse = require "tests.support.misuse"
local model, ids, pipe_of = misuse.model, misuse.ids, misuse.pipe_of
local x, y = ids(5), ids(5)

-- ---- gp.pipeline -------------------------------------------------------------------------------

describe("gp.pipeline refuses", function()
  local refused = {
    -- the conditions of torchgpipe
    { { balance = { 1, 1 } },
      "balance = {1, 1} adds up to 2 layers, the model has 3 (#model): balance = {2, 1}, say" },
    { { balance = { 1, 1, 1, 1 } },
      "adds up to 4 layers, the model has 3 (#model): at most 3 stages" },
    { { balance = { 0, 3 } },
      "balance[1] is 0, expected a positive number of layers (balance = {0, 3})" },
    { { balance = { 4, -1 } },
      "balance[2] is -1, expected a positive number of layers (balance = {4, -1})" },
    { { balance = { 1, 2 }, devices = { "cpu:0" } },
      "1 device where the schedule wants 2: add devices or shorten balance" },
    { { chunks = 0 }, "option 'chunks' is 0, expected an integer >= 1" },
    { { chunks = -2 }, "option 'chunks' is -2, expected an integer >= 1" },
    { { checkpoint = "allways" },
      'expected one of "never", "selective", "except_last", "always", "auto", "offload", or a list '
        .. 'of "keep", "selective", "recompute", "offload" for the layers (did you mean \'always\'?)' },
    { { checkpoint = { "keep", "recompte" } },
      'not "recompte" (string) for layer 2 (did you mean \'recompute\'?)' },
    { { checkpoint = { "keep" } },
      "option 'checkpoint' says something for 1 layers and the model has 3, expected one of" },
    -- other mistakes
    { { balance = {} }, "balance is empty, expected a number per stage" },
    { { balance = { 1, nil, 2 } }, "balance[2] is nil, expected a positive number of layers" },
    { { balance = { 1.5, 1.5 } },
      "balance[1] is 1.5 (float), expected a positive number of layers" },
    { { balance = { "1", "2" } },
      "balance[1] is \"1\" (string), expected a positive number of layers" },
    { { balance = "even" }, "option 'balance' is \"even\" (string), expected a list of layers" },
    { { chunks = 2.5 }, "option 'chunks' is 2.5 (float), expected an integer >= 1" },
    { { chnks = 2 }, "unknown option 'chnks' (did you mean 'chunks'?)" },
    { { devices = {} }, "devices is empty, expected at least one" },
    { { devices = 0 }, "option 'devices' is 0, expected a number of devices from 1 to 65536" },
    { { devices = 1.5 }, "option 'devices' is 1.5 (float), expected an integer or a table" },
    { { devices = { "gpu" } },
      "device 'gpu' cannot be used: there is no device 'gpu', expected cpu:0, cuda:0, or a part of a GPU such as "
        .. "cuda:0/1of4" },
    { { devices = { 0 } }, "a device is 0, expected a name such as \"cpu:0\"" },
    { { devices = { { "cpu:0", threads = 0 } } },
      "option 'threads' is 0, expected an integer >= 1" },
    { { loss = 3 }, "option 'loss' is 3, expected a loss such as nn.MSELoss() or a function" },
    { { devices = { "sim:0" } }, "'sim:0' is described and never opened, expected it in gp.plan" },
    { { loss = {} }, "option 'loss' is a table, expected a loss such as" },
    { { precision = "f8" }, "option 'precision' is \"f8\" (string)" },
    { { finite = 1 }, "option 'finite' is 1, expected true, false or \"ignore\"" },
    { { schedule = {} }, "there is no schedule nil" },
    { { sample = { 3 } }, "sample: the input is 3, expected a tensor" },
    { { sample = { gp.ones { 2, 3 }, y } }, "sample: the input has 2 rows and the target 5" },
    { { sample = { gp.ones { 5, 3 }, y }, loss = nn.CrossEntropyLoss() },
      "1 (Embedding 11 x 4): embedding: ids is f32" },
  }
  local free = model()
  for _, case in ipairs(refused) do
    it(case[2], function()
      fails_with(case[2], gp.pipeline, free, case[1])
      local pipe <close> = pipe_of({}, free) -- the model is free again
      assert.equal("number", type(pipe:step(x, y)))
    end)
  end

  it("a device that is not there, and says why", function()
    if gp.devices { why = true }[#gp.devices() + 1] == nil then
      return pending "there are CUDA devices"
    end
    fails_with("device 'cuda:0' cannot be used: ", gp.pipeline, model(), { devices = { "cuda:0" } })
  end)

  it("what is not a Sequential", function()
    local wrap = "expected an nn.Sequential (wrap it: nn.Sequential {model})"
    fails_with("gp.pipeline: the model is Linear 3 -> 3, " .. wrap, gp.pipeline, nn.Linear(3, 3))
    fails_with("gp.pipeline: the model is nil, " .. wrap, gp.pipeline)
    fails_with("gp.pipeline: the model is a table, " .. wrap, gp.pipeline, { nn.Linear(3, 3) })
    fails_with("gp.pipeline: the model has no layers, expected at least one", gp.pipeline,
      nn.Sequential {})
    fails_with("gp.pipeline: the options are 3, expected a table", gp.pipeline, model(), 3)
  end)

  it("no option that is left out: there is one stage and one chunk", function()
    local pipe <close> = gp.pipeline(model())
    assert.truthy(tostring(pipe):find("1 stage, chunks 1, schedule 1f1b, checkpoint except_last",
      1, true))
    local two <close> = gp.pipeline(model(), { devices = { "cpu:0", "cpu:1" } })
    assert.truthy(tostring(two):find("2 stages", 1, true))
    local number <close> = gp.pipeline(model(), { devices = 3 })
    assert.truthy(tostring(number):find("3 stages", 1, true))
    local more <close> = gp.pipeline(model(), { balance = { 3 }, devices = { "cpu:0", "cpu:1" } })
    assert.truthy(tostring(more):find("1 stage,", 1, true))
  end)

  it("no sample that fits, and plans its memory", function()
    local pipe <close> = gp.pipeline(model(),
      { chunks = 2, loss = nn.CrossEntropyLoss(), sample = { x, y } })
    local before = gp.memory().cpu.allocations
    pipe:step(x, y)
    assert.equal(before, gp.memory().cpu.allocations)
  end)
end)

-- ---- a step ------------------------------------------------------------------------------------

-- Checks that two failing calls raise the same error, that parameters are unchanged and gradients
-- zero, and that the next step is that of a pipeline in which nothing failed.
local function check_failure(pipe, untouched, wanted, ...)
  local state = pipe:state_dict()
  local first = failure(pipe.step, pipe, ...)
  assert(first:find(wanted, 1, true), first)
  assert.equal(first, failure(pipe.step, pipe, ...))
  for name, value in pairs(pipe:state_dict()) do assert.is_true(gp.equal(value, state[name])) end
  assert.equal(untouched:step(x, y), pipe:step(x, y))
end

local function with_id(tensor, row, column, id)
  local changed = tensor:clone()
  changed[row][column] = id
  return changed
end

describe("a step refuses", function()
  local cases = {
    { "rows that differ", "step: the input has 5 rows and the target 3, expected the same number",
      x, y:narrow(1, 1,
      3) },
    { "an empty batch", "step: the batch is empty, expected at least one row", x:narrow(1, 1, 0),
      y:narrow(1, 1, 0) },
    { "a scalar", "step: the input is a scalar, expected rows in the first dimension", gp.tensor(3),
      y },
    { "a target that is missing",
      "step: the target is nil, expected a tensor (or a list of tensors)", x },
    { "a value that is not a tensor", "step: the input is 3, expected a tensor", { x, 3 }, y },
    { "an unknown option", "step: unknown option 'acumulate' (did you mean 'accumulate'?)", x, y,
      { acumulate = true } },
    { "an input of the wrong dtype",
      "1 (Embedding 11 x 4): embedding: ids is f32, expected i64, i32 or u8",
      x:to("f32"), y },
    { "a target of the wrong dtype", "target is f32, expected class ids of dtype i64, i32 or u8", x,
      y:to("f32") },
    { "a target of the wrong shape", "output is 3x3x11 and target is 3x2, expected a target of 3x3",
      x, y:narrow(2,
      1, 2) },
    { "a token id out of range",
      "1 (Embedding 11 x 4): id 11 at row 4, position 2 is outside 0..10", with_id(x, 4,
      2, 11), y },
    { "a negative token id", "1 (Embedding 11 x 4): id -1 at row 1, position 1 is outside 0..10",
      with_id(x, 1, 1,
      -1), y },
    { "a class id out of range", "class 11 at row 5, position 3 is outside 0..10", x,
      with_id(y, 5, 3, 11) },
    { "several faults: the first in the order of the schedule",
      "id 12 at row 2, position 1 is outside 0..10",
      with_id(with_id(x, 5, 1, 99), 2, 1, 12), with_id(y, 1, 1, 99) },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local pipe <close> = pipe_of { balance = { 2, 1 } }
      local untouched <close> = pipe_of()
      check_failure(pipe, untouched, case[2], table.unpack(case, 3, 5))
    end)
  end

  it("a model in which a layer was replaced, and names the layer", function()
    local own = nn.Sequential { nn.Linear(2, 2), nn.Linear(2, 2) }
    local pipe = gp.pipeline(own, { loss = nn.MSELoss() })
    local data, layer = gp.ones { 2, 2 }, own[2]
    local loss = pipe:step(data, data)
    own[2] = nn.Linear(2, 2)
    for _, name in ipairs { "step", "evaluate", "forward" } do
      fails_with(name .. ": layer 2 of the model is another one", pipe[name], pipe, data, data)
    end
    own[2] = layer
    assert.equal(loss, pipe:step(data, data))
    own[1] = nn.Tanh()
    pipe:close()
  end)

  it("a model in which a part of a layer was replaced, and names the part", function()
    local Two = nn.class("Two")
    function Two:init() self.parts = { nn.Linear(2, 2), list = { nn.Tanh() } } end
    function Two:forward(given) return self.parts.list[1](self.parts[1](given)) end
    local own = nn.Sequential { { "in", nn.Residual(nn.Linear(2, 2)) }, Two() }
    local pipe <close> = gp.pipeline(own, { loss = nn.MSELoss() })
    local data = gp.ones { 2, 2 }
    local loss = pipe:step(data, data)
    for _, case in ipairs {
      { "layer in.body", own[1], "body", nn.Linear(2, 2) },
      { "parameter in.body.weight", own[1].body, "weight", nn.Linear(2, 2).weight },
      { "layer 2.parts.1", own[2].parts, 1, nn.Linear(2, 2) },
      { "layer 2.parts.list.1", own[2].parts.list, 1, nn.ReLU() },
    } do
      local before = case[2][case[3]]
      case[2][case[3]] = case[4]
      fails_with("step: " .. case[1] .. " of the model is another one", pipe.step, pipe, data, data)
      case[2][case[3]] = before
      assert.equal(loss, pipe:step(data, data))
    end
  end)

  it("an input of the wrong width, and names the layer", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 4), { "fc", nn.Linear(4, 2) } },
      { loss = nn.MSELoss() })
    fails_with("1 (Linear 4 -> 4): linear: input is 5x3, expected ?x4", pipe.step, pipe,
      gp.ones { 5, 3 },
      gp.ones { 5, 2 })
    fails_with("output is 5x2 and target is 5x3, expected equal shapes", pipe.step, pipe,
      gp.ones { 5, 4 },
      gp.ones { 5, 3 })
    fails_with("input is f64", pipe.step, pipe, gp.ones({ 5, 4 }, { dtype = "f64" }),
      gp.ones { 5, 2 })
  end)

  it("and gradients are zero after a failed run", function()
    local pipe <close> = pipe_of()
    pipe:step(x, y)
    failure(pipe.step, pipe, with_id(x, 1, 1, 99), y)
    for _, p in ipairs(pipe:parameters()) do
      assert.is_true(gp.equal(p.grad, gp.zeros(p.grad.shape)))
    end
  end)

  it("and buffers are as before a failed run", function()
    local Count = nn.class("Count")
    function Count:init() self.seen = nn.Buffer({ 1 }) end
    function Count:forward(v)
      self.seen:copy_(self.seen + 1)
      return v
    end
    local pipe <close> = pipe_of({ balance = { 3, 1 } }, model(Count()))
    pipe:step(x, y)
    failure(pipe.step, pipe, x, with_id(y, 5, 1, 11))
    failure(pipe.forward, pipe, with_id(x, 5, 1, 11))
    assert.equal(2, pipe:state_dict()["3.seen"]:item())
  end)

  it("a gradient after a forward that failed", function()
    local pipe <close> = pipe_of()
    pipe:forward(x)
    failure(pipe.forward, pipe, with_id(x, 5, 1, 11))
    fails_with("there is no forward to go back through", pipe.backward, pipe, gp.ones { 5, 3, 11 })
  end)

  it("evaluation of wrong ids, too", function()
    local pipe <close> = pipe_of()
    fails_with("id 11 at row 4, position 2", pipe.evaluate, pipe, with_id(x, 4, 2, 11), y)
    fails_with("id 11 at row 4, position 2", pipe.forward, pipe, with_id(x, 4, 2, 11))
    assert.equal("number", type(pipe:evaluate(x, y)))
  end)
end)
