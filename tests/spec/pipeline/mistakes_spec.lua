-- tests/spec/pipeline/mistakes_spec.lua - errors in users' layers and losses are named, with the
-- user's line.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local expect = require "tests.support.expect"
local failure, fails_with = expect.failure, expect.fails_with
local nn, optim = gp.nn, gp.optim

local misuse = require "tests.support.misuse"
local model, ids, pipe_of = misuse.model, misuse.ids, misuse.pipe_of
local x, y = ids(5), ids(5)

-- ---- mistakes in forward and in losses ----------------------------------------------------------

describe("a user's layer", function()
  local function with_forward(forward)
    local Mine = nn.class("Mine")
    Mine.forward = forward
    return model(Mine())
  end

  -- Checks that the text holds this file, the line of the mistake, and the given parts.
  local function check_text(forward, line, ...)
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(forward))
    local text = failure(pipe.step, pipe, x, y)
    assert(text:find(("mistakes_spec.lua:%d: "):format(line), 1, true), text)
    for _, part in ipairs { ... } do assert(text:find(part, 1, true), text) end
    assert.equal(text, failure(pipe.step, pipe, x, y))
  end
  local function here() return debug.getinfo(2, "l").currentline end

  it("that raises is named with its line", function()
    check_text(function(_, v) return v + nil end, here(), "add: ")
    check_text(function() error "mine" end, here(), "mine")
    check_text(function(_, v) return v.nothing end, here(),
      "3 (Mine): Tensor: there is no field or method 'nothing'")
    check_text(function(_, v) return v:reshape { 7, -1 } end, here(), "3 (Mine): reshape: ")
  end)

  it("that branches on values gets an error that it cannot be pipelined", function()
    local wanted = "data-dependent control flow cannot be pipelined"
    check_text(function(_, v) return v:sum():item() > 0 and v or -v end, here(), "3 (Mine): item: ",
      wanted)
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
    broken = true -- forward ran once for this shape, so its new behaviour has no effect
    assert.equal("number", type(pipe:step(x, y)))
  end)

  it("that keeps a value of another trace gets an error", function()
    local kept
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function(_, v)
      kept = kept or v
      return v + kept
    end))
    fails_with("a value of a trace", pipe.step, pipe, x, y)
  end)

  it("that runs another pipeline, or catches errors, is traced all the same", function()
    local inner <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 4) }, { loss = nn.MSELoss() })
    local seen
    local pipe <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function(_, v)
      seen = inner:step(gp.ones { 3, 4 }, gp.ones { 3, 4 })
      pcall(function() return v:reshape { 7, 7 } end)
      return v
    end))
    local plain <close> = pipe_of({ balance = { 2, 2 } }, with_forward(function(_, v) return v end))
    assert.equal(plain:step(x, y), pipe:step(x, y))
    assert.equal("number", type(seen))
  end)

  it("that closes its own pipeline gets an error", function()
    local pipe
    pipe = pipe_of({ balance = { 2, 2 } }, with_forward(function(_, v)
      pipe:close()
      return v
    end))
    fails_with("step: forward closed the pipeline that it runs in", pipe.step, pipe, x, y)
  end)

  it("that uses a parameter from outside of the model gets the advice to assign it", function()
    local outside = nn.Parameter({ 4 }, nn.init.ones())
    local pipe <close> = pipe_of({ balance = { 2, 2 } },
      with_forward(function(_, v) return v * outside end))
    fails_with("a parameter of shape 4 is used in forward but is not part of the model: assign it "
      .. "to a module of it",
      pipe.step, pipe, x, y)
    fails_with("is not part of the model", pipe.evaluate, pipe, x, y)
  end)

  it("that shares a written buffer with another stage is refused, and both are named",
    function()
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
    fails_with("3 (Write): it shares a Buffer that forward writes with 1 (Read), in stages 1 and 0",
      cut.step, cut,
      a, b)
  end)
end)

describe("a user's loss", function()
  local a, b = gp.ones { 5, 4 }, gp.ones { 5, 3 }
  local cases = {
    { "nothing", function() end,
      "loss: the function returned nil, expected a scalar tensor (or sum, count)" },
    { "a number", function() return 3 end,
      "loss: the function returned 3, expected a scalar tensor" },
    { "many elements", function(o) return o end,
      "loss: the function returned a tensor of 3x3, expected a scalar tensor" },
    { "an integer", function(_, t) return t:argmax(), 1 end,
      "loss: the sum is i64 scalar, expected a scalar of f32 or f64" },
    { "a count of many elements", function(o, t) return o:sum(), t:gt(0) end,
      "loss: the count is i64 3x3, expected a scalar of i64" },
    { "a count that depends on the output", function(o) return o:sum(), o:gt(0):sum() end,
      "loss: the count depends on the model's output; it may depend on the targets alone" },
    { "a negative count", function(o) return o:sum(), -1 end,
      "loss: the count is -1, expected a number of rows >= 0" },
    { "half a row", function(o) return o:sum(), 1.5 end,
      "loss: the count is 1.5 (float), expected" },
    { "a count of text", function(o) return o:sum(), "2" end,
      "loss: the count is \"2\" (string), expected" },
    { "an error", function() error "mine" end, "mine" },
    { "a branch on a value", function(o) return o:sum():item() end,
      "data-dependent control flow cannot be pipelined" },
  }
  it("whose kind of result depends on the number of rows is refused", function()
    local wide = gp.pipeline(nn.Sequential { nn.Linear(4, 3) }, { chunks = 2, loss = function(o, t)
      return o:sum(), o.shape[1] > 2 and t:gt(0):sum() or 1
    end })
    fails_with("loss: it is of another kind for 3 rows than for 2: sum or count must not depend",
      wide.step, wide, a, b)
    wide:close()
  end)

  for _, case in ipairs(cases) do
    it("that returns " .. case[1] .. " gets an error that says what is expected", function()
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 3) },
        { chunks = 2, loss = case[2] })
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
    fails_with("forward: the model makes f32 scalar of 3 rows, expected the rows (or a multiple)",
      pipe.forward, pipe,
      gp.ones { 5, 4 })
  end)
  it("whose rows are not those of the input", function()
    local pipe <close> = of(function(_, v) return v:sum(1) end)
    fails_with("forward: the model makes f32 4 of 3 rows", pipe.forward, pipe, gp.ones { 5, 4 })
    fails_with("forward: the model makes f32 4 of 2 rows but f32 4 of 1", pipe.forward, pipe,
      gp.ones { 3, 4 })
  end)
end)

-- ---- values that are not finite -----------------------------------------------------------------

describe("a value that is not finite", function()
  local Blow, Squash = nn.class("Blow"), nn.class("Squash")
  function Blow:forward(v) return (v * v * 1e4):exp() end
  function Squash:forward(v) return v:tanh() end
  local function blown(options)
    gp.seed(1)
    options.loss, options.chunks = options.loss or nn.MSELoss(), 2
    return gp.pipeline(nn.Sequential { nn.Linear(4, 4, { bias = false }), Blow(), Squash() },
      options)
  end
  local a, b = gp.ones { 5, 4 }, gp.ones { 5, 4 }

  for _, balance in ipairs { { 3 }, { 2, 1 }, { 1, 1, 1 } } do
    it("is raised with finite = true, with the first layer that made it: " .. #balance .. " stages",
      function()
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
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 4), Root() },
      { loss = nn.MSELoss(), finite = true })
    local text = failure(pipe.step, pipe, a, b)
    assert(text:find("2 (Root)", 1, true) and text:find("in the backward pass", 1, true), text)
  end)

  it("is checked without changing a bit of finite values", function()
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
