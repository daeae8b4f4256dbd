-- tests/spec/pipeline/state_spec.lua - the owner of a model's values: parameters, state
-- dictionaries, close, several pipelines.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn, optim = gp.nn, gp.optim
local model, pipe_of, x, y = models.classifier()

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

-- The clock of dropout is the number of training passes: without it a resumed run would drop other
-- elements.
describe("progress", function()
  it("can be set in another pipeline, and training with dropout goes on to the bit", function()
    local a <close> = pipe_of { balance = { 3, 1 }, seed = 5 }
    local opt_a = optim.AdamW(a:parameters(), { lr = 1e-2 })
    for _ = 1, 3 do a:step(x, y) opt_a:step() end
    local state, moments, progress = a:state_dict(), opt_a:state_dict(), a:progress()
    assert.equal(3, progress.steps)
    local b <close> = pipe_of { balance = { 1, 1, 2 }, seed = 5 }
    local opt_b = optim.AdamW(b:parameters(), { lr = 1e-2 })
    b:load_state_dict(state)
    opt_b:load_state_dict(moments)
    assert.equal(b, b:load_progress(progress))
    assert.same(progress, b:progress())
    for _ = 1, 3 do
      assert.equal(a:step(x, y), b:step(x, y))
      opt_a:step()
      opt_b:step()
    end
    for name, value in pairs(a:state_dict()) do
      assert.is_true(gp.equal(value, b:state_dict()[name]), name)
    end
  end)

  it("is a plain table, of numbers that are checked", function()
    local pipe <close> = pipe_of()
    local progress = pipe:progress()
    assert.is_nil(getmetatable(progress))
    assert.equal("integer", math.type(progress.steps))
    for _, case in ipairs {
      { { steps = -1 }, "steps" }, { { steps = 1.5 }, "steps" },
      { { steps = 2 ^ 40 // 1 }, "steps" },
      { { stesp = 1 }, "stesp" }, { {}, "steps" }, { 3, "3" },
      { { steps = 1, loss_scale = {} }, "loss_scale" },
    } do
      local good, message = pcall(pipe.load_progress, pipe, case[1])
      assert.is_false(good)
      assert.matches(case[2], tostring(message), 1, true)
      assert.same(progress, pipe:progress())
    end
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

  it("moves by a file to a pipeline with another cut, and training goes on with the same "
    .. "bits", function()
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
    for name, value in pairs(a:state_dict()) do
      assert.is_true(gp.equal(value, b:state_dict()[name]))
    end
  end)

  it("is loaded whole or not at all, with every fault named at once", function()
    local pipe <close> = pipe_of()
    local before, state = pipe:state_dict(), pipe:state_dict()
    state["1.weight"]:copy_(7)
    state["1.bias"], state["head.weight"], state.extra = nil, gp.ones { 2 }, gp.ones { 1 }
    local ok, text = pcall(pipe.load_state_dict, pipe, state)
    assert.is_false(ok)
    for _, part in ipairs { "(3 faults)", "missing: 1.bias (f32 8)",
      "wrong: head.weight is f32 2, expected f32 3x8",
      "unexpected: extra" } do
      assert(text:find(part, 1, true), text)
    end
    for name, value in pairs(pipe:state_dict()) do assert.is_true(gp.equal(value, before[name])) end
    state["head.weight"] = nil
    pipe:load_state_dict(state, { strict = false })
    assert.equal(7, pipe:state_dict()["1.weight"][1][1])
  end)
end)

-- ---- life --------------------------------------------------------------------------------------

describe("close", function()
  it("ends every method except those that need only the model", function()
    local pipe = pipe_of()
    pipe:step(x, y)
    pipe:close()
    pipe:close()
    for _, name in ipairs { "step", "evaluate", "forward", "backward", "load_state_dict",
      "trace" } do
      fails_with(name .. ": the pipeline is closed", pipe[name], pipe, x, y)
    end
    fails_with("zero_grad: the pipeline is closed", pipe.zero_grad, pipe)
    fails_with("stats: the pipeline is closed", function() return pipe.stats end)
    assert.truthy(tostring(pipe):find("pipeline (closed): ", 1, true))
    assert.equal(4, #pipe:parameters())
    assert.truthy(pipe:state_dict()["1.weight"])
  end)

  it("releases the model, which runs eagerly, is frozen, and goes into another pipeline", function()
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

  it("leaves an optimizer that follows its parameters to the next pipeline", function()
    local a, b = model(), model()
    local straight <close> = pipe_of({ balance = { 2, 2 } }, a)
    local opt = optim.AdamW(straight:parameters(), { lr = 0.01 })
    for _ = 1, 2 do
      straight:evaluate(x, y) straight:forward(x) straight:backward(gp.ones { 7, 3 }) opt:step()
    end
    local first = pipe_of({ balance = { 2, 2 } }, b)
    local moved = optim.AdamW(first:parameters(), { lr = 0.01 })
    first:forward(x)
    first:backward(gp.ones { 7, 3 })
    moved:step()
    first:close()
    fails_with("belong to no live pipeline", moved.step, moved)
    local second <close> = pipe_of({ balance = { 1, 1, 2 } }, b)
    second:forward(x) -- this is the pipeline's second draw of dropout
    second:forward(x)
    second:backward(gp.ones { 7, 3 })
    moved:step()
    for name, value in pairs(straight:state_dict()) do
      assert.is_true(gp.equal(value, second:state_dict()[name]),
      name) end
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
  it("exist at once with models of their own, and have the same bits as alone", function()
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
    fails_with("gp.pipeline: the model belongs to a live pipeline, expected a free one", pipe_of,
      {}, own)
    local other = nn.Sequential { nn.Linear(4, 8), own[1] }
    fails_with("the model belongs to a live pipeline", gp.pipeline, other, {})
    assert.equal("number", type(pipe:step(x, y)))
    -- the failed attempt did not take the layer
    local free <close> = gp.pipeline(nn.Sequential { other[1] }, {})
    assert.same({ 7, 8 }, free:forward(x).shape)
  end)
end)
