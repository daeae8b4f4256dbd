-- tests/spec/pipeline/transparency_models_spec.lua - whatever a model holds, no cut, schedule or
-- checkpoint mode changes a bit.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn
local check_everywhere, regression, with = models.check_everywhere, models.regression, models.with
local rows_of = models.rows_of

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

describe("the same bits for every cut, schedule and checkpoint mode", function()
  it("in f64", function()
    local run = training.check_same(models.setup { model = models.gpt "f64" },
      training.combinations { balance = models.CUTS })
    assert.equal("f64", run.state["1.weight"].dtype)
  end)

  it("with a buffer that forward writes", function()
    local run = check_everywhere(regression {
      model = with(function() return Center(8) end, nn.ReLU) })
    -- four steps of seven rows: recomputation counts no row twice
    assert.equal(28, run.state["3.seen"]:item())
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
        return with(function() return write end, nn.Tanh, function() return Read(write) end,
          nn.ReLU,
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

  it("with one weight that three layers use", function()
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

  it("with values that depend only on parameters, used in this stage and in others", function()
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
    function Again:forward(x)
      return x:matmul(self.from.direction:transpose(1, 2)) + self.from.scale
    end
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

  it("with rows hidden by dimensions of one element: permuted, broadcast, read as sizes", function()
    local Stash, Turned, Gated, Asks = nn.class("Stash"), nn.class("Turned"), nn.class("Gated"),
      nn.class("Asks")
    function Stash:forward(x)
      self.turned, self.mean = x:transpose(1, 2), x:mean(1, true)
      return x
    end
    function Turned:init(from) self.from = from end
    function Turned:forward(x) return x + self.from.turned:reshape { 8, -1 }:transpose(1, 2) end
    function Gated:init(from) self.from = from end
    function Gated:forward(x) return x + self.from.mean end
    function Asks:forward(x) return x.shape[1] > 1 and x * 2 or x end
    local made = regression {
      x = rows_of(3, 6), y = rows_of(3, 3), model = function()
        local stash = Stash()
        return with(function() return stash end, nn.Tanh, function() return Turned(stash) end,
          function() return Gated(stash) end, Asks)()
      end,
    }
    check_everywhere(made, 2) -- two rows and one row: their graphs and edges between stages differ
    check_everywhere(made, 3)
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
    check_everywhere(regression {
      model = with(Same, nn.Flatten, Same, nn.ReLU, function() return nn.Dropout(0) end) })
  end)

  it("with a model that ends in a view, without parameters", function()
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
        return with(nn.Tanh,
          function() return nn.Linear(8, 8) end)():freeze("^5%."):freeze("^4%.bias$")
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

  it("with a tensor that forward reads from outside", function()
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
