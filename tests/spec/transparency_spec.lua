-- tests/spec/transparency_spec.lua - a pipeline changes no bit: any cut, schedule, checkpoint, number of threads.
--
-- DESIGN section 8, D1 D3 D4. Every comparison is ==, but for the one with an undivided batch, whose sums are
-- added in another order.
local gp = require "gpipe"
local training = require "tests.support.training"
local nn = gp.nn

local CLOSE = {
  loss = 1e-5,                                  -- relative: sums of f32 in another order
  gradient = { relative = 1e-4, absolute = 1e-7 }, -- the same, for elements that nearly cancel
}

-- ---- models ------------------------------------------------------------------------------------

local Gate = nn.class("Gate")
function Gate:init(n, dtype)
  self.w = nn.Parameter({ n }, nn.init.normal(0, 0.5), { dtype = dtype })
end
function Gate:forward(x) return x * (x * self.w):sigmoid() end

local C, V = 16, 11 -- width, vocabulary

-- Embedding, a module of the user's, dropout, residuals, attention: seven layers.
local function gpt(dtype)
  local d = { dtype = dtype }
  return function()
    gp.seed(7)
    local attention = nn.CausalSelfAttention(C, 2, { dropout = 0.1, dtype = dtype })
    return nn.Sequential {
      nn.Embedding(V, C, d), Gate(C, dtype), nn.Dropout(0.2),
      nn.Residual(nn.Sequential { nn.LayerNorm(C, d), attention }),
      nn.Residual(nn.Sequential { nn.LayerNorm(C, d), nn.Linear(C, 2 * C, d), nn.GELU("tanh"), nn.Linear(2 * C, C, d) }),
      nn.LayerNorm(C, d), nn.Linear(C, V, d),
    }
  end
end

local function ids(rows, columns)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for t = 1, columns do list[i][t] = (i * 5 + t * t) % V end
  end
  return gp.tensor(list, { dtype = "i64" })
end

local function setup(fields)
  local made = { model = gpt(), x = ids(7, 6), y = ids(7, 6), loss = nn.CrossEntropyLoss() }
  for key, value in pairs(fields or {}) do made[key] = value end
  return made
end

local CUTS = { { 7 }, { 3, 4 }, { 2, 3, 2 }, { 1, 2, 2, 2 } }

-- ---- the promise -------------------------------------------------------------------------------

describe("20 steps with dropout, a custom module, residuals, attention and an embedding", function()
  it("give the same bits for 1 to 4 stages, every schedule, checkpoint mode and number of threads", function()
    local list = training.combinations { balance = CUTS, threads = { 1, 2, 3 } }
    assert.equal(108, #list)
    local run = training.check_same(setup { steps = 20 }, list)
    assert.is_true(run.losses[20] < run.losses[1] / 2) -- it learned: zeros would be equal too
  end)

  it("give the same bits wherever the model is cut", function()
    local cuts = {}
    for first = 1, 6 do cuts[#cuts + 1] = { first, 7 - first } end
    for first = 1, 5 do cuts[#cuts + 1] = { first, 1, 6 - first } end
    training.check_same(setup { steps = 4 }, training.combinations {
      balance = cuts, schedule = { "1f1b" }, checkpoint = { "except_last" },
    })
  end)

  it("give the same bits on more devices than there are cores", function()
    local deep = function()
      gp.seed(9)
      local layers = { nn.Embedding(V, C) }
      for i = 2, 9 do layers[i] = nn.Residual(nn.Sequential { nn.LayerNorm(C), nn.Linear(C, C), nn.Tanh() }) end
      layers[10] = nn.Linear(C, V)
      return nn.Sequential(layers)
    end
    training.check_same(setup { model = deep }, training.combinations {
      balance = { { 10 }, { 1, 1, 1, 1, 1, 1, 2, 2 }, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } }, threads = { 1, 2 },
      schedule = { "gpipe", "1f1b" }, checkpoint = { "except_last" }, chunks = 5,
    })
  end)

  it("give the same bits when two stages share a device name", function()
    local list = training.combinations { balance = { { 7 }, { 3, 4 } }, checkpoint = { "never" } }
    for _, options in ipairs(list) do options.devices = { "cpu:0", "cpu:0" } end
    for _, options in ipairs(list) do options.devices[#options.balance + 1] = nil end
    training.check_same(setup(), list)
  end)
end)

describe("batches that micro-batches do not divide", function()
  for _, case in ipairs { { 1, 1 }, { 1, 4 }, { 2, 4 }, { 5, 4 }, { 7, 4 }, { 9, 4 }, { 13, 5 }, { 16, 10 } } do
    local rows, chunks = case[1], case[2]
    it(("give the same bits: %d rows in %d chunks"):format(rows, chunks), function()
      training.check_same(setup { x = ids(rows, 3), y = ids(rows, 3) }, training.combinations {
        balance = CUTS, schedule = { "gpipe", "1f1b" }, checkpoint = { "always", "except_last" }, chunks = chunks,
      })
    end)

    it(("are the undivided batch: %d rows in %d chunks"):format(rows, chunks), function()
      local one = setup { x = ids(rows, 3), y = ids(rows, 3), steps = 1 }
      local whole = training.run(one, { balance = { 7 }, chunks = 1 })
      local parts = training.run(one, { balance = { 2, 3, 2 }, chunks = chunks })
      assert.is_true(math.abs(parts.losses[1] - whole.losses[1]) <= CLOSE.loss * whole.losses[1])
      local g = CLOSE.gradient
      assert.is_true(training.distance(parts.first, whole.first, g.relative, g.absolute) <= 1)
    end)
  end
end)

-- ---- what else a model may hold ----------------------------------------------------------------

-- Counts rows and keeps a running mean of its input, which it subtracts.
local Center = nn.class("Center")
function Center:init(n)
  self.mean, self.seen = nn.Buffer({ n }), nn.Buffer({ 1 })
end
function Center:forward(x)
  if self:is_training() then
    self.mean:copy_(self.mean * 0.9 + x:mean(1) * 0.1)
    self.seen:copy_(self.seen + x.shape[1])
  end
  return x - self.mean
end

local function rows_of(n, width, dtype)
  return gp.randn({ n, width }, { seed = n + width, dtype = dtype })
end

-- A trunk of small layers with something in the middle.
local function with(...)
  local middle = { ... }
  return function()
    gp.seed(11)
    local layers = { nn.Linear(6, 8), nn.Tanh() }
    for _, make in ipairs(middle) do layers[#layers + 1] = make() end
    layers[#layers + 1] = nn.Linear(8, 3)
    return nn.Sequential(layers)
  end
end

local function regression(fields)
  local made = { x = rows_of(7, 6), y = rows_of(7, 3), loss = nn.MSELoss(), steps = 4 }
  for key, value in pairs(fields) do made[key] = value end
  return made
end

-- Cuts of n layers into 1 to 4 stages, each at a few places.
local function cuts_of(n)
  local cuts = { { n } }
  for stages = 2, math.min(4, n) do
    for _, first in ipairs { 1, n - stages + 1 } do
      local cut = { first }
      for i = 2, stages - 1 do cut[i] = 1 end
      cut[stages] = n - first - (stages - 2)
      cuts[#cuts + 1] = cut
    end
  end
  return cuts
end

local function check_everywhere(made, chunks)
  return training.check_same(made, training.combinations {
    balance = cuts_of(#made.model()), schedule = { "gpipe", "1f1b" }, chunks = chunks,
  })
end

describe("the same bits for every cut, schedule and checkpoint mode", function()
  it("in f64", function()
    local run = training.check_same(setup { model = gpt("f64") }, training.combinations { balance = CUTS })
    assert.equal("f64", run.state["1.weight"].dtype)
  end)

  it("with a buffer that forward writes", function()
    local run = check_everywhere(regression { model = with(function() return Center(8) end, nn.ReLU) })
    assert.equal(28, run.state["3.seen"]:item()) -- four steps of seven rows: recomputation counts nothing twice
  end)

  it("with a written buffer that later layers read", function()
    local Write, Read = nn.class("Write"), nn.class("Read")
    function Write:init() self.seen = nn.Buffer({ 8 }) end
    function Write:forward(x)
      self.seen:copy_(self.seen + x:mean(1))
      self.seen:copy_(self.seen * 0.5)
      return x
    end
    function Read:init(from) self.from = from end
    function Read:forward(x) return x * self.from.seen end
    check_everywhere(regression {
      model = function()
        local write = Write()
        return with(function() return write end, nn.Tanh, function() return Read(write) end, nn.ReLU,
          function() return Read(write) end)()
      end,
    }, 5)
  end)

  it("with one weight in two stages", function()
    local run = check_everywhere(regression {
      model = function()
        gp.seed(3)
        local a, b = nn.Linear(6, 6), nn.Linear(6, 6)
        b.weight = a.weight
        return nn.Sequential { a, nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), b, nn.Linear(6, 3) }
      end,
    })
    assert.is_nil(run.state["5.weight"])
    assert.truthy(run.state["5.bias"])
  end)

  it("with one weight used thrice, once only looked at", function()
    check_everywhere(regression {
      model = function()
        gp.seed(3)
        local shared = nn.Parameter({ 8 }, nn.init.normal(0, 1))
        local Scale = nn.class("Scale")
        function Scale:init() self.w = shared end
        function Scale:forward(x) return x * self.w + self.w end
        return with(Scale, nn.Tanh, Scale, Scale)()
      end,
    })
  end)

  it("with values that depend on parameters only, used in this stage and in others", function()
    local Normed, Again = nn.class("Normed"), nn.class("Again")
    function Normed:init()
      self.w = nn.Parameter({ 8, 8 }, nn.init.normal(0, 1))
      self.scale = nn.Parameter({ 1 }, nn.init.constant(2))
    end
    function Normed:forward(x)
      local norm = ((self.w * self.w):sum(2, true) + 1e-6):sqrt()
      self.direction = self.w / norm * self.scale:exp()
      return x:matmul(self.direction)
    end
    function Again:init(from) self.from = from end
    function Again:forward(x) return x:matmul(self.from.direction:transpose(1, 2)) + self.from.scale end
    check_everywhere(regression {
      model = function()
        local normed = Normed()
        return with(function() return normed end, nn.Tanh, function() return Again(normed) end)()
      end,
      loss = function(output, target)
        local gap = output - target
        return (gap * gap):sum(), output:numel()
      end,
    }, 5)
  end)

  it("with a loss that reads parameters itself", function()
    local decayed
    check_everywhere(regression {
      model = function()
        local model = with(nn.Tanh)()
        decayed = model[1].weight
        return model
      end,
      loss = function(output, target)
        local gap = output - target
        return (gap * gap):sum() + (decayed * decayed):sum() * output.shape[1], output.shape[1]
      end,
    })
  end)

  it("with a value that a later layer reads from an upvalue", function()
    check_everywhere(regression {
      model = function()
        local kept
        local Stash, Pop = nn.class("Stash"), nn.class("Pop")
        function Stash:forward(x) kept = x return x end
        function Pop:forward(x) return x + kept * x end
        return with(Stash, nn.ReLU, nn.Tanh, Pop, nn.Sigmoid)()
      end,
    })
  end)

  it("with a strided value that two later layers read from the module that made it", function()
    check_everywhere(regression {
      model = function()
        local Stash, Pop = nn.class("Stash"), nn.class("Pop")
        function Stash:forward(x) self.kept = x:transpose(1, 2) return x end
        function Pop:init(from) self.from = from end
        function Pop:forward(x) return x + self.from.kept:transpose(1, 2) * 0.5 end
        local stash = Stash()
        return with(function() return stash end, nn.Tanh, function() return Pop(stash) end, nn.ReLU,
          function() return Pop(stash) end)()
      end,
    })
  end)

  it("with two values between layers", function()
    local Fork, Both, Join = nn.class("Fork"), nn.class("Both"), nn.class("Join")
    function Fork:forward(x) return x:tanh(), x:argmax(2) end
    function Both:forward(x, best) return x * 2, best end
    function Join:forward(x, best) return x * best:to("f32"):reshape { -1, 1 } end
    check_everywhere(regression { model = with(Fork, Both, Both, Join) })
  end)

  it("with layers that have no parameters, or do nothing", function()
    local Same = nn.class("Same")
    function Same:forward(x) return x end
    check_everywhere(regression { model = with(Same, nn.Flatten, Same, nn.ReLU, function() return nn.Dropout(0) end) })
  end)

  it("with a model that has no parameters at the end but a view", function()
    check_everywhere(regression {
      y = rows_of(7, 6), model = function()
        gp.seed(2)
        local Turn = nn.class("Turn")
        function Turn:forward(x) return x:reshape { -1, 3, 2 }:transpose(2, 3) end
        return nn.Sequential { nn.Linear(6, 6), Turn(), nn.Flatten(), nn.Dropout(0) }
      end,
    })
  end)

  it("with a frozen first stage", function()
    local function frozen()
      local model = with(nn.Tanh, nn.ReLU)()
      return model:freeze("^1%.")
    end
    local run = check_everywhere(regression { model = frozen }, 5)
    assert.is_nil(run.gradients["1.weight"])
    assert.is_true(gp.equal(run.state["1.weight"], frozen():state_dict()["1.weight"]))
  end)

  it("with a frozen last stage, and single frozen parameters in the middle", function()
    check_everywhere(regression {
      model = function()
        return with(nn.Tanh, function() return nn.Linear(8, 8) end)():freeze("^5%."):freeze("^4%.bias$")
      end,
    })
  end)

  it("with nothing left to train", function()
    local run = check_everywhere(regression {
      frozen = true, model = function() return with(nn.Tanh)():freeze(".") end,
    })
    assert.equal(run.losses[1], run.losses[4])
  end)

  it("with a parameter that no layer uses", function()
    local Idle = nn.class("Idle")
    function Idle:init() self.w = nn.Parameter({ 3 }, nn.init.ones()) end
    function Idle:forward(x) return x end
    local run = check_everywhere(regression { model = with(Idle) })
    assert.same({ 0, 0, 0 }, run.gradients["3.w"]:totable())
  end)

  it("with a tensor that forward knows from outside", function()
    local mask = gp.tensor { { 1, 0 }, { 1, 1 }, { 0, 1 }, { 2, 1 } }:transpose(1, 2):reshape(8)
    local Mask = nn.class("Mask")
    function Mask:forward(x) return x * mask + mask:sum() end
    check_everywhere(regression { model = with(Mask, nn.ReLU, Mask) })
  end)

  it("with a layer of width 1 and rows of one element", function()
    check_everywhere(regression {
      x = rows_of(5, 1), y = rows_of(5, 1), model = function()
        gp.seed(1)
        return nn.Sequential { nn.Linear(1, 1), nn.LayerNorm(1), nn.Tanh(), nn.Linear(1, 1) }
      end,
    })
  end)
end)

-- ---- losses ------------------------------------------------------------------------------------

describe("the same bits, and the undivided batch's loss", function()
  local function check(made, chunks)
    made.steps = 2
    local run = check_everywhere(made, chunks or 3)
    local whole = training.run(made, { balance = { #made.model() }, chunks = 1 })
    assert.is_true(math.abs(run.losses[1] - whole.losses[1]) <= CLOSE.loss * math.abs(whole.losses[1]))
    local g = CLOSE.gradient
    assert.is_true(training.distance(run.first, whole.first, g.relative, g.absolute) <= 1)
    return run
  end

  it("with ignored ids, other numbers of them in every micro-batch", function()
    local y = gp.tensor({ { 1, 2, 3 }, { -1, -1, 4 }, { -1, -1, -1 }, { 0, -1, 1 }, { 5, 5, 5 } }, { dtype = "i64" })
    local made = setup { x = ids(5, 3), y = y, loss = nn.CrossEntropyLoss { ignore_index = -1 } }
    made.model = function()
      gp.seed(4)
      return nn.Sequential { nn.Embedding(V, C), nn.Tanh(), nn.LayerNorm(C), nn.Linear(C, V) }
    end
    check(made, 5)
  end)

  it("with nothing but ignored ids: loss 0 and gradients 0", function()
    local y = gp.full({ 5, 3 }, -1, { dtype = "i64" })
    local made = setup { x = ids(5, 3), y = y, loss = nn.CrossEntropyLoss { ignore_index = -1 }, steps = 1 }
    local run = training.check_same(made, training.combinations { balance = { { 7 }, { 3, 4 } } })
    assert.equal(0, run.losses[1])
    for _, grad in pairs(run.first) do assert.is_true(gp.equal(grad, gp.zeros(grad.shape))) end
  end)

  it("with smoothed labels and u8 ids", function()
    check(setup { y = ids(7, 6):to("u8"), loss = nn.CrossEntropyLoss { label_smoothing = 0.1 } })
  end)

  it("with reduction sum", function()
    local mean = check(regression { model = with(nn.Tanh) })
    local sum = check(regression { model = with(nn.Tanh), loss = nn.MSELoss { reduction = "sum" } })
    assert.is_true(math.abs(sum.losses[1] - 21 * mean.losses[1]) < 1e-5 * sum.losses[1])
    check(setup { loss = nn.CrossEntropyLoss { reduction = "sum" } })
  end)

  it("with a function that returns sum and count", function()
    local named = check(regression { model = with(nn.Tanh) })
    local own = check(regression { model = with(nn.Tanh), loss = function(output, target)
      local gap = output - target
      return (gap * gap):sum(), output:numel()
    end })
    assert.is_true(math.abs(own.losses[1] - named.losses[1]) < 1e-6)
  end)

  it("with a function whose count depends on the target", function()
    check(regression { model = with(nn.Tanh), loss = function(output, target)
      local wanted = target:gt(0):to("f32")
      local gap = (output - target) * wanted
      return (gap * gap):sum(), wanted:sum()
    end })
  end)

  it("with a function that returns one scalar: the mean over its rows", function()
    local named = check(regression { model = with(nn.Tanh) })
    local own = check(regression { model = with(nn.Tanh), loss = function(output, target)
      local gap = output - target
      return (gap * gap):mean()
    end })
    assert.is_true(math.abs(own.losses[1] - named.losses[1]) < 1e-6)
  end)

  it("with a model that makes the loss itself, in a stage before the last", function()
    local Sum, Same = nn.class("Sum"), nn.class("Same")
    function Sum:forward(x) return (x * x):sum() end
    function Same:forward(x) return x end
    local made = regression { loss = function(output, target) return output, target:gt(0):to("i64"):sum() end }
    made.model = function() return nn.Sequential { with(nn.Tanh)(), Sum(), Same(), nn.Dropout(0) } end
    check(made)
  end)
end)

describe("gradients", function()
  it("are added over steps on request, the same bits for every cut", function()
    local made, results = setup(), {}
    for i, balance in ipairs(CUTS) do
      local pipe <close> = gp.pipeline(made.model(), { balance = { table.unpack(balance) }, chunks = 3, loss = made.loss, seed = 5 })
      pipe:step(made.x, made.y)
      pipe:evaluate(made.x, made.y)
      pipe:step(made.x, made.y, { accumulate = true })
      results[i] = { losses = {}, first = {}, state = {}, gradients = training.gradients(pipe) }
      assert.is_nil(training.difference(results[1], results[i]))
    end
  end)
end)
