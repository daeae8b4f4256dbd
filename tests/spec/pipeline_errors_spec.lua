-- tests/spec/pipeline_errors_spec.lua - what is wrong is said, with both numbers and a way out; the next step works.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local expect = require "tests.support.expect"
local failure, fails_with = expect.failure, expect.fails_with
local nn, optim = gp.nn, gp.optim

-- Three layers, or four with one in the middle.
local function model(middle)
  gp.seed(1)
  local layers = { nn.Embedding(11, 4), nn.Linear(4, 4) }
  layers[#layers + 1] = middle
  layers[#layers + 1] = { "head", nn.Linear(4, 11) }
  return nn.Sequential(layers)
end

local function ids(rows)
  local list = {}
  for i = 1, rows do list[i] = { i % 11, (i + 3) % 11, (2 * i) % 11 } end
  return gp.tensor(list, { dtype = "i64" })
end
local x, y = ids(5), ids(5)

local function pipe_of(options, of)
  local merged = { balance = { 2, 1 }, chunks = 2, loss = nn.CrossEntropyLoss() }
  for key, value in pairs(options or {}) do merged[key] = value end
  return gp.pipeline(of or model(), merged)
end

-- ---- gp.pipeline -------------------------------------------------------------------------------

describe("gp.pipeline refuses", function()
  local refused = {
    -- the conditions of torchgpipe
    { { balance = { 1, 1 } }, "balance = {1, 1} adds up to 2 layers, the model has 3 (#model): balance = {2, 1}, say" },
    { { balance = { 1, 1, 1, 1 } }, "adds up to 4 layers, the model has 3 (#model): at most 3 stages" },
    { { balance = { 0, 3 } }, "balance[1] is 0, expected a positive number of layers (balance = {0, 3})" },
    { { balance = { 4, -1 } }, "balance[2] is -1, expected a positive number of layers (balance = {4, -1})" },
    { { balance = { 1, 2 }, devices = { "cpu:0" } },
      "1 devices for 2 stages, expected one per stage: add devices or shorten balance" },
    { { chunks = 0 }, "option 'chunks' is 0, expected an integer >= 1" },
    { { chunks = -2 }, "option 'chunks' is -2, expected an integer >= 1" },
    { { checkpoint = "allways" }, "expected one of \"always\", \"except_last\", \"never\" (did you mean 'always'?)" },
    -- other mistakes
    { { balance = {} }, "balance is empty, expected a number per stage" },
    { { balance = { 1.5, 1.5 } }, "balance[1] is 1.5 (float), expected a positive number of layers" },
    { { balance = { "1", "2" } }, "balance[1] is \"1\" (string), expected a positive number of layers" },
    { { balance = "even" }, "option 'balance' is \"even\" (string), expected a table" },
    { { chunks = 2.5 }, "option 'chunks' is 2.5 (float), expected an integer >= 1" },
    { { chnks = 2 }, "unknown option 'chnks' (did you mean 'chunks'?)" },
    { { devices = {} }, "devices is empty, expected at least one" },
    { { devices = { "gpu" } }, "there is no device 'gpu', expected cpu:0, cpu:1, ..." },
    { { devices = { 0 } }, "a device is 0, expected a name such as \"cpu:0\"" },
    { { devices = { { "cpu:0", threads = 0 } } }, "option 'threads' is 0, expected an integer >= 1" },
    { { loss = 3 }, "option 'loss' is 3, expected a function" },
    { { loss = {} }, "option 'loss' is a table, expected a function" },
    { { precision = "f16" }, "option 'precision' is \"f16\" (string)" },
    { { finite = 1 }, "option 'finite' is 1, expected true or false" },
    { { schedule = {} }, "there is no schedule nil" },
    { { sample = { 3 } }, "sample: the input is 3, expected a tensor" },
    { { sample = { gp.ones { 2, 3 }, y } }, "sample: the input has 2 rows and the target 5" },
    { { sample = { gp.ones { 5, 3 }, y }, loss = nn.CrossEntropyLoss() }, "1 (Embedding 11 x 4): embedding: ids is f32" },
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
    if gp.devices { why = true }[#gp.devices() + 1] == nil then return pending "there are CUDA devices" end
    fails_with("device 'cuda:0' cannot be used: ", gp.pipeline, model(), { devices = { "cuda:0" } })
  end)

  it("what is not a Sequential", function()
    local wrap = "expected an nn.Sequential (wrap it: nn.Sequential {model})"
    fails_with("gp.pipeline: the model is Linear 3 -> 3, " .. wrap, gp.pipeline, nn.Linear(3, 3))
    fails_with("gp.pipeline: the model is nil, " .. wrap, gp.pipeline)
    fails_with("gp.pipeline: the model is a table, " .. wrap, gp.pipeline, { nn.Linear(3, 3) })
    fails_with("gp.pipeline: the model has no layers, expected at least one", gp.pipeline, nn.Sequential {})
    fails_with("gp.pipeline: the options are 3, expected a table", gp.pipeline, model(), 3)
  end)

  it("none of what is left out: one stage, one chunk", function()
    local pipe <close> = gp.pipeline(model())
    assert.truthy(tostring(pipe):find("1 stages, chunks 1, schedule 1f1b, checkpoint except_last", 1, true))
    local two <close> = gp.pipeline(model(), { devices = { "cpu:0", "cpu:1" } })
    assert.truthy(tostring(two):find("2 stages", 1, true))
    local more <close> = gp.pipeline(model(), { balance = { 3 }, devices = { "cpu:0", "cpu:1" } })
    assert.truthy(tostring(more):find("1 stages", 1, true))
  end)

  it("nothing of a sample that fits: its memory is planned", function()
    local pipe <close> = gp.pipeline(model(), { chunks = 2, loss = nn.CrossEntropyLoss(), sample = { x, y } })
    local before = gp.memory().cpu.allocations
    pipe:step(x, y)
    assert.equal(before, gp.memory().cpu.allocations)
  end)
end)

-- ---- a step ------------------------------------------------------------------------------------

-- Two failing calls say the same; parameters are unchanged, gradients zero, and the next step is that of a
-- pipeline in which nothing failed.
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
    { "rows that differ", "step: the input has 5 rows and the target 3, expected the same number", x, y:narrow(1, 1, 3) },
    { "an empty batch", "step: the batch is empty, expected at least one row", x:narrow(1, 1, 0), y:narrow(1, 1, 0) },
    { "a scalar", "step: the input is a scalar, expected rows in the first dimension", gp.tensor(3), y },
    { "a target that is missing", "step: the target is nil, expected a tensor (or a list of tensors)", x },
    { "what is no tensor", "step: the input is 3, expected a tensor", { x, 3 }, y },
    { "an unknown option", "step: unknown option 'acumulate' (did you mean 'accumulate'?)", x, y, { acumulate = true } },
    { "an input of the wrong dtype", "1 (Embedding 11 x 4): embedding: ids is f32, expected i64, i32 or u8", x:to("f32"), y },
    { "a target of the wrong dtype", "target is f32, expected class ids of dtype i64, i32 or u8", x, y:to("f32") },
    { "a target of the wrong shape", "output is 3x3x11 and target is 3x2, expected a target of 3x3", x, y:narrow(2, 1, 2) },
    { "a token id out of range", "1 (Embedding 11 x 4): id 11 at row 4, position 2 is outside 0..10", with_id(x, 4, 2, 11), y },
    { "a negative token id", "1 (Embedding 11 x 4): id -1 at row 1, position 1 is outside 0..10", with_id(x, 1, 1, -1), y },
    { "a class id out of range", "class 11 at row 5, position 3 is outside 0..10", x, with_id(y, 5, 3, 11) },
    { "several faults: the first in the order of the schedule", "id 12 at row 2, position 1 is outside 0..10",
      with_id(with_id(x, 5, 1, 99), 2, 1, 12), with_id(y, 1, 1, 99) },
  }
  for _, case in ipairs(cases) do
    it(case[1], function()
      local pipe <close> = pipe_of { balance = { 2, 1 } }
      local untouched <close> = pipe_of()
      check_failure(pipe, untouched, case[2], table.unpack(case, 3, 5))
    end)
  end

  it("an input of the wrong width, and names the layer", function()
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 4), { "fc", nn.Linear(4, 2) } }, { loss = nn.MSELoss() })
    fails_with("1 (Linear 4 -> 4): linear: input is 5x3, expected ?x4", pipe.step, pipe, gp.ones { 5, 3 }, gp.ones { 5, 2 })
    fails_with("output is 5x2 and target is 5x3, expected equal shapes", pipe.step, pipe, gp.ones { 5, 4 }, gp.ones { 5, 3 })
    fails_with("input is f64", pipe.step, pipe, gp.ones({ 5, 4 }, { dtype = "f64" }), gp.ones { 5, 2 })
  end)

  it("and gradients are zero after a failed run", function()
    local pipe <close> = pipe_of()
    pipe:step(x, y)
    failure(pipe.step, pipe, with_id(x, 1, 1, 99), y)
    for _, p in ipairs(pipe:parameters()) do assert.is_true(gp.equal(p.grad, gp.zeros(p.grad.shape))) end
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

  it("evaluation of wrong ids too", function()
    local pipe <close> = pipe_of()
    fails_with("id 11 at row 4, position 2", pipe.evaluate, pipe, with_id(x, 4, 2, 11), y)
    fails_with("id 11 at row 4, position 2", pipe.forward, pipe, with_id(x, 4, 2, 11))
    assert.equal("number", type(pipe:evaluate(x, y)))
  end)
end)

-- ---- mistakes in forward and in losses -----------------------------------------------------------

describe("a layer of the user's", function()
  local function with_forward(forward)
    local Mine = nn.class("Mine")
    Mine.forward = forward
    return model(Mine())
  end

  -- The text holds this file, the line of the mistake, and the parts given.
  local function check_text(forward, line, ...)
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(forward))
    local text = failure(pipe.step, pipe, x, y)
    assert(text:find(("pipeline_errors_spec.lua:%d: "):format(line), 1, true), text)
    for _, part in ipairs { ... } do assert(text:find(part, 1, true), text) end
    assert.equal(text, failure(pipe.step, pipe, x, y))
  end
  local function here() return debug.getinfo(2, "l").currentline end

  it("that raises is pointed at", function()
    check_text(function(_, v) return v + nil end, here(), "add: ")
    check_text(function() error "mine" end, here(), "mine")
    check_text(function(_, v) return v.nothing end, here(), "3 (Mine): Tensor: there is no field or method 'nothing'")
    check_text(function(_, v) return v:reshape { 7, -1 } end, here(), "3 (Mine): reshape: ")
  end)

  it("that branches on values is told that it cannot be pipelined", function()
    local wanted = "data-dependent control flow cannot be pipelined"
    check_text(function(_, v) return v:sum():item() > 0 and v or -v end, here(), "3 (Mine): item: ", wanted)
    check_text(function(_, v) if v:sum() > 0 then return v end end, here(), "3 (Mine): ", wanted)
    check_text(function(_, v) return v * v:totable()[1][1][1] end, here(), wanted)
  end)

  it("that returns nothing, or no tensor, is named", function()
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function() end))
    fails_with("3 (Mine): forward returned nothing, expected a tensor", pipe.step, pipe, x, y)
    local three <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function() return 3 end))
    fails_with("3 (Mine): forward returned 3, expected a tensor", three.step, three, x, y)
  end)

  it("that raises an error object raises it unchanged", function()
    local object = setmetatable({}, { __tostring = function() return "an object" end })
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function() error(object) end))
    assert.equal(object, failure(pipe.step, pipe, x, y))
  end)

  it("that failed once works when it stops failing", function()
    local broken = true
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function(_, v)
      if broken then error "not yet" end
      return v
    end))
    fails_with("not yet", pipe.step, pipe, x, y)
    broken = false
    assert.equal("number", type(pipe:step(x, y)))
    broken = true -- forward ran once for this shape: what it does now is not seen
    assert.equal("number", type(pipe:step(x, y)))
  end)

  it("that keeps a value of another trace is told so", function()
    local kept
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function(_, v)
      kept = kept or v
      return v + kept
    end))
    fails_with("a value of a trace", pipe.step, pipe, x, y)
  end)

  it("that uses a parameter from outside of the model is told to assign it", function()
    local outside = nn.Parameter({ 4 }, nn.init.ones())
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function(_, v) return v * outside end))
    fails_with("a parameter of shape 4 is used in forward but is not part of the model: assign it to a module of it",
      pipe.step, pipe, x, y)
    fails_with("is not part of the model", pipe.evaluate, pipe, x, y)
  end)

  it("that makes other graphs of other numbers of rows is told so", function()
    local Fork = nn.class("Fork")
    local kept
    function Fork:forward(v)
      kept = v
      return v * 2
    end
    local pipe <close> = pipe_of({ balance = { 1, 1, 2 } }, nn.Sequential { nn.Embedding(11, 4), Fork(), with_forward(
      function(_, v) return v.shape[1] > 2 and v + kept or v end)[3], nn.Linear(4, 11) })
    fails_with("the model is traced to different graphs for 3 and 2 rows: forward must not branch on the number of "
      .. "rows, or chunks must divide the batch", pipe.step, pipe, x, y)
    assert.equal("number", type(pipe:step(x:narrow(1, 1, 4), y:narrow(1, 1, 4))))
  end)

  it("that shares a buffer which forward writes with another stage is refused, both are named", function()
    local shared = nn.Buffer({ 4 })
    local Read, Write = nn.class("Read"), nn.class("Write")
    function Read:init() self.b = shared end
    function Read:forward(v) return v + self.b end
    function Write:init() self.b = shared end
    function Write:forward(v)
      self.b:copy_(v:mean(1))
      return v
    end
    local layers = nn.Sequential { Read(), nn.Linear(4, 4), Write() }
    local a, b = gp.ones { 5, 4 }, gp.ones { 5, 4 }
    do
      local whole <close> = gp.pipeline(layers, { chunks = 2, loss = nn.MSELoss() })
      assert.equal("number", type(whole:step(a, b)))
    end
    local cut <close> = gp.pipeline(layers, { balance = { 2, 1 }, chunks = 2, loss = nn.MSELoss() })
    fails_with("3 (Write): it shares a Buffer that forward writes with 1 (Read), in stages 1 and 0", cut.step, cut, a, b)
  end)
end)

describe("a loss of the user's", function()
  local a, b = gp.ones { 5, 4 }, gp.ones { 5, 3 }
  local cases = {
    { "nothing", function() end, "loss: the function returned nil, expected a scalar tensor (or sum, count)" },
    { "a number", function() return 3 end, "loss: the function returned 3, expected a scalar tensor" },
    { "many elements", function(o) return o end, "loss: the function returned a tensor of 3x3, expected a scalar tensor" },
    { "an integer", function(_, t) return t:argmax(), 1 end, "loss: the sum is i64 scalar, a scalar of f32 or f64 wanted" },
    { "a count of many elements", function(o, t) return o:sum(), t:gt(0) end, "loss: the count is i64 3x3, a scalar of i64 wanted" },
    { "a count that depends on the output", function(o) return o:sum(), o:gt(0):sum() end,
      "loss: the count depends on the model's output; it may depend on the targets alone" },
    { "a negative count", function(o) return o:sum(), -1 end, "loss: the count is -1, expected a number of rows >= 0" },
    { "half a row", function(o) return o:sum(), 1.5 end, "loss: the count is 1.5 (float), expected" },
    { "a count of text", function(o) return o:sum(), "2" end, "loss: the count is \"2\" (string), expected" },
    { "an error", function() error "mine" end, "mine" },
    { "a branch on a value", function(o) return o:sum():item() end, "data-dependent control flow cannot be pipelined" },
  }
  for _, case in ipairs(cases) do
    it("that returns " .. case[1] .. " is told what is wanted", function()
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 3) }, { chunks = 2, loss = case[2] })
      fails_with(case[3], pipe.step, pipe, a, b)
    end)
  end
end)

-- ---- forward ------------------------------------------------------------------------------------

describe("forward refuses an output", function()
  local function of(forward)
    local Mine = nn.class("Mine")
    Mine.forward = forward
    return gp.pipeline(nn.Sequential { nn.Linear(4, 4), Mine() }, { chunks = 2 })
  end
  it("that is one scalar", function()
    local pipe <close> = of(function(_, v) return v:sum() end)
    fails_with("forward: the model makes f32 scalar of 3 rows, the rows (or a multiple) wanted", pipe.forward, pipe, gp.ones { 5, 4 })
  end)
  it("whose rows are not those of the input", function()
    local pipe <close> = of(function(_, v) return v:sum(1) end)
    fails_with("forward: the model makes f32 4 of 3 rows", pipe.forward, pipe, gp.ones { 5, 4 })
    fails_with("forward: the model makes f32 4 of 2 rows but f32 4 of 1", pipe.forward, pipe, gp.ones { 3, 4 })
  end)
  it("of several values", function()
    local pipe <close> = of(function(_, v) return v, v end)
    fails_with("the model returns 2 values, expected one tensor", pipe.forward, pipe, gp.ones { 5, 4 })
  end)
end)

-- ---- values that are not finite ------------------------------------------------------------------

describe("a value that is not finite", function()
  local Blow, Squash = nn.class("Blow"), nn.class("Squash")
  function Blow:forward(v) return (v * v * 1e4):exp() end
  function Squash:forward(v) return v:tanh() end
  local function blown(options)
    gp.seed(1)
    options.loss, options.chunks = options.loss or nn.MSELoss(), 2
    return gp.pipeline(nn.Sequential { nn.Linear(4, 4, { bias = false }), Blow(), Squash() }, options)
  end
  local a, b = gp.ones { 5, 4 }, gp.ones { 5, 4 }

  for _, balance in ipairs { { 3 }, { 2, 1 }, { 1, 1, 1 } } do
    it("is raised with finite = true, with the first layer that made it: " .. #balance .. " stages", function()
      local pipe <close> = blown { balance = balance, finite = true }
      local text = failure(pipe.step, pipe, a, b)
      assert(text:find("2 (Blow): exp made a value that is not finite", 1, true), text)
      assert.equal(text, failure(pipe.step, pipe, a, b))
      fails_with("2 (Blow): exp made", pipe.evaluate, pipe, a, b)
      fails_with("2 (Blow): exp made", pipe.forward, pipe, a)
      assert.equal("number", type(pipe:step(gp.zeros { 5, 4 }, b)))
    end)
  end

  it("passes where it does not reach the loss, without finite", function()
    local pipe <close> = blown {}
    assert.equal("number", type(pipe:step(a, b)))
  end)

  it("in the backward pass is named too", function()
    local Root = nn.class("Root")
    function Root:forward(v) return (v * 0):sqrt() end -- the slope at 0 is infinite
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 4), Root() }, { loss = nn.MSELoss(), finite = true })
    local text = failure(pipe.step, pipe, a, b)
    assert(text:find("2 (Root)", 1, true) and text:find("in the backward pass", 1, true), text)
  end)

  it("changes no bit where there is none", function()
    local losses = {}
    for i, finite in ipairs { false, true } do
      local pipe <close> = pipe_of { finite = finite }
      local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
      losses[i] = {}
      for step = 1, 3 do
        losses[i][step] = pipe:step(x, y)
        opt:step()
      end
    end
    assert.same(losses[1], losses[2])
  end)
end)
