-- tests/spec/pipeline_spec.lua - what each method of a pipeline does.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local training = require "tests.support.training"
local nn, optim = gp.nn, gp.optim

local function model()
  gp.seed(1)
  return nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3), { "head", nn.Linear(8, 3) } }
end

local x, y = gp.randn({ 7, 4 }, { seed = 1 }), gp.tensor({ 0, 1, 2, 0, 1, 2, 2 }, { dtype = "i64" })

local function pipe_of(options, of)
  local merged = { balance = { 2, 2 }, chunks = 3, loss = nn.CrossEntropyLoss(), seed = 2 }
  for key, value in pairs(options or {}) do merged[key] = value end
  return gp.pipeline(of or model(), merged)
end

local function zero(tensor) return gp.equal(tensor, gp.zeros(tensor.shape, { dtype = tensor.dtype })) end

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
    pipe:eval() -- of the model's own calls only: steps train
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
    local pipe <close> = gp.pipeline(plain, { chunks = 2, loss = nn.CrossEntropyLoss { reduction = "sum" } })
    local weight = pipe:parameters()[1]
    pipe:step(x:narrow(1, 1, 4), y:narrow(1, 1, 4))
    local first = weight.grad:clone()
    pipe:step(x:narrow(1, 5, 3), y:narrow(1, 5, 3), { accumulate = true })
    local both = weight.grad:clone()
    pipe:step(x:narrow(1, 5, 3), y:narrow(1, 5, 3))
    assert.is_true(training.distance({ both }, { first + weight.grad }, 1e-6, 1e-7) <= 1)
  end)

  it("draws other dropout in every step, the same with the same seed", function()
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

  it("feeds several inputs and targets", function()
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
    for name, grad in pairs(training.gradients(pipe)) do assert.is_true(gp.equal(grad, before[name])) end
    for name, value in pairs(pipe:state_dict()) do assert.is_true(gp.equal(value, state[name])) end
  end)

  it("does not move the clock of dropout", function()
    local a <close> = pipe_of()
    local b <close> = pipe_of()
    a:evaluate(x, y)
    a:eval():forward(x)
    assert.equal(a:step(x, y), b:step(x, y))
  end)

  it("writes no buffers", function()
    local Count = nn.class("Count")
    function Count:init() self.seen = nn.Buffer({ 1 }) end
    function Count:forward(v)
      self.seen:copy_(self.seen + 1)
      return v
    end
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 3), Count() }, { chunks = 2, loss = nn.CrossEntropyLoss() })
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

  it("puts outputs of several rows per row together", function()
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
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 8), Best() }, { balance = { 1, 1 }, chunks = 2 })
    assert.equal("i64", pipe:forward(x).dtype)
    fails_with("the pipeline has no loss, expected option 'loss' (or use forward and backward)", pipe.step, pipe, x, y)
    fails_with("the pipeline has no loss", pipe.evaluate, pipe, x, y)
  end)
end)

describe("backward", function()
  -- The gradient of the mean squared error, by hand.
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
      assert.is_true(training.distance(training.gradients(b), training.gradients(a), 1e-4, 1e-7) <= 1)
    end)
  end

  it("is the same bits for every cut and checkpoint mode", function()
    local first
    for _, options in ipairs(training.combinations { balance = { { 4 }, { 2, 2 }, { 1, 1, 2 } }, schedule = { "1f1b" } }) do
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

  it("says what gradient it wants", function()
    local pipe <close> = pipe_of()
    pipe:forward(x)
    fails_with("backward: the gradient is 3, expected a tensor", pipe.backward, pipe, 3)
    fails_with("backward: the gradient is f32 3, expected f32 7x3 as forward returned", pipe.backward, pipe, gp.ones { 3 })
    fails_with("backward: the gradient is f64 7x3, expected f32 7x3", pipe.backward, pipe, gp.ones({ 7, 3 }, { dtype = "f64" }))
    pipe:backward(gp.ones { 7, 3 }:transpose(1, 2):contiguous():transpose(1, 2))
  end)
end)

-- ---- parameters and state ----------------------------------------------------------------------

describe("parameters", function()
  it("lists name, value, gradient and stage in the order of the model", function()
    local own = model()
    local pipe <close> = pipe_of({ balance = { 3, 1 } }, own)
    local names, stages = {}, {}
    for i, p in ipairs(pipe:parameters()) do names[i], stages[i] = p.name, p.stage end
    assert.same({ "1.weight", "1.bias", "head.weight", "head.bias" }, names)
    assert.same({ 0, 0, 1, 1 }, stages)
    for i, p in ipairs(own:parameters()) do assert.equal(names[i], p.name) end
    assert.equal(2, #pipe:parameters("bias$"))
    assert.equal(0, #pipe:parameters("nothing"))
  end)

  it("shares memory with the model: values change in place", function()
    local own = model()
    local pipe <close> = pipe_of({}, own)
    local opt = optim.SGD(pipe:parameters(), { lr = 1 })
    local value = pipe:parameters()[1].value
    local before = value:clone()
    pipe:step(x, y)
    opt:step()
    assert.is_false(gp.equal(before, value))
    assert.is_true(gp.equal(value, own:state_dict()["1.weight"]))
  end)

  it("has values and gradients that outlive the pipeline", function()
    local pipe = pipe_of()
    pipe:step(x, y)
    local value, grad = pipe:parameters()[1].value, pipe:parameters()[1].grad
    local copies = { value:clone(), grad:clone() }
    pipe:close()
    collectgarbage()
    assert.is_true(gp.equal(copies[1], value))
    assert.is_true(gp.equal(copies[2], grad))
    assert.is_nil(pipe:parameters()[1].grad)
  end)
end)

describe("state_dict", function()
  it("is the same for every balance, and a copy", function()
    local state
    for _, balance in ipairs { { 4 }, { 1, 3 }, { 1, 1, 1, 1 } } do
      local pipe <close> = pipe_of { balance = balance }
      local own = pipe:state_dict()
      state = state or own
      for name, value in pairs(own) do assert.is_true(gp.equal(value, state[name])) end
      own["1.weight"]:copy_(0)
      assert.is_false(gp.equal(own["1.weight"], pipe:state_dict()["1.weight"]))
      state = pipe:state_dict()
    end
  end)

  it("goes through a file into a pipeline with another cut, and training goes on with the same bits", function()
    local path = os.tmpname()
    local opts = { lr = 1e-2 }
    local a <close> = pipe_of { balance = { 3, 1 } }
    local plain_a = optim.SGD(a:parameters(), opts)
    for _ = 1, 2 do a:step(x, y) plain_a:step() end
    assert(gp.save(path, a:state_dict(), { note = "two steps" }))
    local tensors, metadata = assert(gp.load(path))
    os.remove(path)
    assert.equal("two steps", metadata.note)
    local b <close> = pipe_of { balance = { 1, 1, 2 } }
    local plain_b = optim.SGD(b:parameters(), opts)
    for _ = 1, 2 do b:step(x, y) end -- the same clock of dropout
    b:load_state_dict(tensors)
    for _ = 1, 2 do
      assert.equal(a:step(x, y), b:step(x, y))
      plain_a:step()
      plain_b:step()
    end
    for name, value in pairs(a:state_dict()) do assert.is_true(gp.equal(value, b:state_dict()[name])) end
  end)

  it("is loaded whole or not at all, with every fault named at once", function()
    local pipe <close> = pipe_of()
    local before, state = pipe:state_dict(), pipe:state_dict()
    state["1.weight"]:copy_(7)
    state["1.bias"], state["head.weight"], state.extra = nil, gp.ones { 2 }, gp.ones { 1 }
    local ok, text = pcall(pipe.load_state_dict, pipe, state)
    assert.is_false(ok)
    for _, part in ipairs { "(3 faults)", "missing: 1.bias (f32 8)", "wrong: head.weight is f32 2, expected f32 3x8", "unexpected: extra" } do
      assert(text:find(part, 1, true), text)
    end
    for name, value in pairs(pipe:state_dict()) do assert.is_true(gp.equal(value, before[name])) end
    state["head.weight"] = nil
    pipe:load_state_dict(state, { strict = false })
    assert.equal(7, pipe:state_dict()["1.weight"][1][1])
  end)
end)

-- ---- figures -----------------------------------------------------------------------------------

describe("stats", function()
  it("tells seconds, and per device bubble, activations and bytes", function()
    local pipe <close> = pipe_of { chunks = 4 }
    assert.equal(0, pipe.stats.seconds)
    pipe:step(x, y)
    local stats = pipe.stats
    assert.is_true(stats.seconds > 0)
    for _, key in ipairs { "bubble", "peak_live", "peak_bytes" } do assert.equal(2, #stats[key]) end
    for d = 1, 2 do
      assert.is_true(stats.bubble[d] >= 0 and stats.bubble[d] <= 1)
      assert.is_true(stats.peak_bytes[d] > 0)
    end
  end)

  it("show min(p - r, m) activations for 1F1B and m for GPipe", function()
    for _, chunks in ipairs { 1, 2, 4, 7 } do
      for _, name in ipairs { "1f1b", "gpipe", "naive" } do
        local pipe <close> = pipe_of { balance = { 1, 1, 1, 1 }, chunks = chunks, schedule = name }
        pipe:step(x, y)
        for r = 0, 3 do
          local wanted = name == "1f1b" and math.min(4 - r, chunks) or name == "naive" and 1 or chunks
          assert.equal(wanted, pipe.stats.peak_live[r + 1])
        end
      end
    end
  end)

  it("show the memory that recomputation and 1F1B save", function()
    local function bytes(options)
      options.balance, options.chunks = { 3, 1 }, 7
      local pipe <close> = pipe_of(options)
      pipe:step(x, y)
      return pipe.stats.peak_bytes[1]
    end
    local never = bytes { checkpoint = "never", schedule = "gpipe" }
    assert.is_true(bytes { checkpoint = "never", schedule = "1f1b" } < never)
    assert.is_true(bytes { checkpoint = "always", schedule = "gpipe" } < never)
  end)
end)

-- JSON as far as traces have it: text without escapes, numbers, lists, objects. Errors where it is none.
local function parse_json(text)
  local at = 1
  local value
  local function skip(pattern)
    local found = text:match("^%s*(" .. pattern .. ")%s*", at)
    if not found then error(("no %s at %d: %s"):format(pattern, at, text:sub(at, at + 30)), 0) end
    at = select(2, text:find("^%s*" .. pattern .. "%s*", at)) + 1
    return found
  end
  local function list(close, entry)
    local found = {}
    if text:match("^%s*" .. close, at) then skip(close) return found end
    repeat entry(found) until skip("[," .. close .. "]") ~= ","
    return found
  end
  function value()
    local first = text:match("^%s*(.)", at)
    if first == "{" then
      skip "{"
      return list("}", function(found)
        local key = skip '"[^"\\]*"'
        skip ":"
        found[key:sub(2, -2)] = value()
      end)
    elseif first == "[" then
      skip "%["
      return list("%]", function(found) found[#found + 1] = value() end)
    elseif first == '"' then
      return skip('"[^"\\]*"'):sub(2, -2)
    end
    return tonumber(skip "-?%d[%d.eE+-]*")
  end
  local result = value()
  assert(at > #text, "something follows")
  return result
end

describe("trace", function()
  it("writes the last pass as Chrome trace JSON", function()
    local path = os.tmpname()
    local pipe <close> = pipe_of { chunks = 2, checkpoint = "always" }
    fails_with("trace: no step has run yet", pipe.trace, pipe, path)
    pipe:step(x, y)
    assert.is_true(pipe:trace(path))
    local file = assert(io.open(path))
    local made = parse_json(file:read "a")
    file:close()
    os.remove(path)
    local rows, names = { [0] = {}, {} }, {}
    for _, event in ipairs(made.traceEvents) do
      if event.ph == "X" then
        assert.is_true(event.ts >= 0 and event.dur >= 0)
        assert.equal(("%d%s%d"):format(event.args.stage, event.name:match "%a", event.args.micro), event.name)
        table.insert(rows[event.tid], event.name)
      elseif event.name == "thread_name" then
        names[event.tid] = event.args.name
      end
    end
    assert.equal("0P0 0P1 0F0 0F1 0R0 0B0 0R1 0B1", table.concat(rows[0], " "))
    assert.equal("1P0 1P1 1C0 1C1 1F0 1R0 1B0 1F1 1R1 1B1", table.concat(rows[1], " "))
    assert.same({ [0] = "cpu:0", "cpu:1" }, names)
  end)

  it("returns nil, message and code where the file cannot be written", function()
    local pipe <close> = pipe_of()
    pipe:step(x, y)
    local ok, message, code = pipe:trace "/nonexistent/trace.json"
    assert.is_nil(ok)
    assert.equal("trace: /nonexistent/trace.json: No such file or directory", message)
    assert.equal("io", code)
    fails_with("trace: path is missing, expected a string", pipe.trace, pipe)
  end)
end)

describe("tostring", function()
  it("shows stages, devices and layers", function()
    local pipe <close> = pipe_of { devices = { { "cpu:0", threads = 1 }, { "cpu:3", threads = 2 } }, schedule = { "1f1b", warmup = 2 } }
    assert.equal("pipeline: 2 stages, chunks 3, schedule 1f1b, checkpoint except_last\n"
      .. "  stage 0 on cpu:0 (1 thread): layers 1-2, 40 parameters\n"
      .. "  stage 1 on cpu:3 (2 threads): layers 3-4, 27 parameters", tostring(pipe))
  end)
end)

-- ---- life --------------------------------------------------------------------------------------

describe("close", function()
  it("ends every method but what the model itself knows", function()
    local pipe = pipe_of()
    pipe:step(x, y)
    pipe:close()
    pipe:close()
    for _, name in ipairs { "step", "evaluate", "forward", "backward", "zero_grad", "load_state_dict", "trace" } do
      fails_with(name .. ": the pipeline is closed", pipe[name], pipe, x, y)
    end
    fails_with("stats: the pipeline is closed", function() return pipe.stats end)
    assert.truthy(tostring(pipe):find("pipeline (closed): ", 1, true))
    assert.equal(4, #pipe:parameters())
    assert.truthy(pipe:state_dict()["1.weight"])
  end)

  it("gives the model back: it runs eagerly, is frozen, and goes into another pipeline", function()
    local own = model():eval()
    local first, state
    do
      local pipe <close> = pipe_of({}, own)
      local opt = optim.AdamW(pipe:parameters(), { lr = 0.1 })
      pipe:step(x, y)
      opt:step()
      first, state = pipe:eval():forward(x), pipe:state_dict()
      fails_with("freeze: the parameter belongs to a pipeline", own.freeze, own, "bias")
    end
    for name, value in pairs(own:state_dict()) do assert.is_true(gp.equal(value, state[name])) end
    assert.is_true(training.distance({ own(x) }, { first }, 1e-6, 1e-6) <= 1)
    own:freeze("bias")
    local pipe <close> = pipe_of({ balance = { 1, 3 } }, own)
    pipe:step(x, y)
    assert.is_nil(pipe:parameters()[2].grad)
    assert.truthy(pipe:parameters()[1].grad)
  end)

  it("leaves an optimizer whose parameters move on with them", function()
    local a, b = model(), model()
    local straight <close> = pipe_of({ balance = { 2, 2 } }, a)
    local opt = optim.AdamW(straight:parameters(), { lr = 0.01 })
    for _ = 1, 2 do straight:evaluate(x, y) straight:forward(x) straight:backward(gp.ones { 7, 3 }) opt:step() end
    local first = pipe_of({ balance = { 2, 2 } }, b)
    local moved = optim.AdamW(first:parameters(), { lr = 0.01 })
    first:forward(x)
    first:backward(gp.ones { 7, 3 })
    moved:step()
    first:close()
    fails_with("belong to no live pipeline", moved.step, moved)
    local second <close> = pipe_of({ balance = { 1, 1, 2 } }, b)
    second:forward(x) -- the clock of dropout is the pipeline's: the second draw
    second:forward(x)
    second:backward(gp.ones { 7, 3 })
    moved:step()
    for name, value in pairs(straight:state_dict()) do assert.is_true(gp.equal(value, second:state_dict()[name]), name) end
  end)

  it("happens by <close>, also after an error, and when a pipeline is collected", function()
    local own = model()
    pcall(function()
      local pipe <close> = pipe_of({}, own)
      pipe:step(x, y)
      error "mine"
    end)
    pipe_of({}, own):step(x, y)
    collectgarbage()
    collectgarbage()
    local pipe <close> = pipe_of({}, own)
    assert.equal("number", type(pipe:step(x, y)))
  end)
end)

describe("several pipelines", function()
  it("live at once with models of their own, the same bits as alone", function()
    local function losses(a, b)
      local list = {}
      for i = 1, 3 do list[i] = { a:step(x, y), b:step(x, y) } end
      return list
    end
    local a <close> = pipe_of()
    local b <close> = pipe_of { balance = { 1, 1, 2 }, chunks = 2 }
    local both = losses(a, b)
    local c <close> = pipe_of()
    local d <close> = pipe_of { chunks = 2 }
    for i = 1, 3 do
      assert.equal(both[i][1], c:step(x, y))
      assert.equal(both[i][2], d:step(x, y))
    end
  end)

  it("cannot own one model, or one parameter, at the same time", function()
    local own = model()
    local pipe <close> = pipe_of({}, own)
    fails_with("gp.pipeline: the model belongs to a live pipeline, expected a free one", pipe_of, {}, own)
    local other = nn.Sequential { nn.Linear(4, 8), own[1] }
    fails_with("the model belongs to a live pipeline", gp.pipeline, other, {})
    assert.equal("number", type(pipe:step(x, y)))
    local free <close> = gp.pipeline(nn.Sequential { other[1] }, {}) -- what failed took nothing with it
    assert.same({ 7, 8 }, free:forward(x).shape)
  end)
end)
