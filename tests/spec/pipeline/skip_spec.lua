-- tests/spec/pipeline/skip_spec.lua - skips and several values across cuts have the same bits
-- whatever the cut, and go from stage to stage directly.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn = gp.nn

local check_everywhere, regression = models.check_everywhere, models.regression

-- Makes two blocks of one kind inside a long skip.
local function skipping()
  gp.seed(11)
  local function block()
    return nn.Sequential { nn.Stash "x", nn.Linear(8, 8), nn.Tanh(), nn.Pop("x", "add") }
      :isolate(nn.namespace())
  end
  return nn.Sequential { nn.Linear(6, 8), nn.Stash "far", block(), nn.Dropout(0.2), block(),
    nn.Pop("far", "concat"), nn.Linear(16, 3) }:flatten()
end

-- Makes a model whose layers pass on two or three values.
local function several()
  gp.seed(12)
  local Fork, Join = nn.class("Fork"), nn.class("Join")
  function Fork:forward(x) return x:tanh(), x, x:relu() end
  function Join:forward(a, b, c) return a * b + c end
  return nn.Sequential { nn.Linear(6, 8), Fork(),
    nn.Parallel { nn.Linear(8, 8), nn.Sequential {}, nn.Linear(8, 8) },
    nn.Parallel { nn.Tanh(), nn.Dropout(0.3), nn.ReLU() }, Join(), nn.Linear(8, 3) }
end

describe("the same bits for every cut, schedule and checkpoint mode", function()
  it("with skips over any distance", function() check_everywhere(regression { model = skipping }) end)

  it("with several values between layers",
    function() check_everywhere(regression { model = several }) end)

  it("with a skip of ids and one that needs no gradient", function()
    check_everywhere(regression {
      model = function()
        gp.seed(13)
        local Keep = nn.class("Keep", nil, { stash = { "rows", "flags" } })
        function Keep:forward(x)
          self:stash("rows", x:argmax(2) - 1)
          self:stash("flags", x:gt(0))
          return x
        end
        local Use = nn.class("Use", nil, { pop = { "rows", "flags" } })
        function Use:init() self.table = nn.Embedding(8, 8) end
        function Use:forward(x)
          return gp.where(self:pop "flags", x, x * 0.5) + self.table(self:pop "rows")
        end
        return nn.Sequential { nn.Linear(6, 8), Keep(), nn.Tanh(), nn.Linear(8, 8), Use(),
          nn.Linear(8, 3) }
      end,
    })
  end)

  it("with a loss of several outputs and targets", function()
    local Heads = nn.class("Heads")
    function Heads:init() self.a, self.b = nn.Linear(8, 3), nn.Linear(8, 2) end
    function Heads:forward(x) return self.a(x), self.b(x) end
    local function loss(a, b, y, z)
      local left, right = a - y, b - z
      return (left * left):sum() + (right * right):sum(), a.shape[1]
    end
    check_everywhere(regression {
      model = function()
        gp.seed(14)
        return nn.Sequential { nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), Heads() }
      end,
      y = { models.rows_of(7, 3), models.rows_of(7, 2) }, loss = loss,
    })
  end)
end)

describe("a skip", function()
  it("goes from its stage to the reading stage directly", function()
    local pipe <close> = gp.pipeline(skipping(), { balance = { 2, 4, 5, 2 }, chunks = 2,
      loss = nn.MSELoss(), devices = training.devices(4) })
    pipe:step(models.rows_of(4, 6), models.rows_of(4, 3))
    local outer, said = print, {}
    _G.print = function(text) said[#said + 1] = text end -- luacheck: ignore 122
    local rows = pipe:lowered()
    _G.print = outer -- luacheck: ignore 122
    assert.truthy(rows[1]:find("0SEND_F0>3", 1, true), rows[1])
    assert.truthy(rows[4]:find("3RECV_F0<0", 1, true), rows[4])
    for _, d in ipairs { 2, 3 } do
      local _, received = rows[d]:gsub("RECV_F0", "")
      assert.equal(1, received, rows[d])
    end
    assert.truthy(table.concat(said, "\n"):find("value of 1 (Linear 6 -> 8): stage 0 -> 1 3", 1, true))
  end)
end)
