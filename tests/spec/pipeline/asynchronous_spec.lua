-- tests/spec/pipeline/asynchronous_spec.lua - asynchronous schedules follow their papers' update
-- rules, bit for bit.
--
-- Sources: Narayanan et al. 2019 (PipeDream: weight stashing, vertical sync), 2021 (PipeDream-2BW).
-- tests/support/asynchronous.lua simulates the rules one mini-batch after another.
local gp = require "gpipe"
local asynchronous = require "tests.support.asynchronous"
local nn, optim = gp.nn, gp.optim

local RULES = { "pipedream", "vertical_sync", "pipedream_2bw" }

local function check(made, rule, p, chunks, script, options)
  local want = asynchronous.simulate(made, rule, p, chunks, script)
  local got = asynchronous.run(made, rule, p, chunks, script, options)
  local what = asynchronous.difference(want, got)
  if what then error(("%s, %d stages, %d chunks: %s"):format(rule, p, chunks, what), 2) end
  return got
end

-- Makes a script of n steps of the same rows, with another learning rate at each.
local function steady(n, rows)
  local script = {}
  for t = 1, n do script[t] = { rows = rows, lr = 0.02 / t } end
  return script
end

describe("losses, parameters and moments are those of the update rule", function()
  for _, rule in ipairs(RULES) do
    for p = 1, 8 do
      it(("%s, %d stages"):format(rule, p), function()
        for _, chunks in ipairs { 1, 2, 3, 5, 8 } do
          check(asynchronous.tower(), rule, p, chunks, steady(5, 2 * chunks))
        end
      end)
    end
  end
end)

describe("a script of training gives what the update rule gives", function()
  local made = asynchronous.tower()
  -- Micro-batches do not divide the batches, rows are fewer than chunks, sizes change (the pipeline
  -- drains in between), and the script reads the state in the middle.
  local scripts = {
    ["uneven batches"] = steady(5, 11),
    ["fewer rows than chunks"] = steady(5, 2),
    ["one row"] = steady(4, 1),
    ["sizes that change"] = { { rows = 8 }, { rows = 8 }, { rows = 11 }, { rows = 11 },
      { rows = 3 }, { rows = 8 },
      { rows = 8 }, { rows = 1 } },
    ["flushes"] = { { rows = 9, then_ = "flush" }, { rows = 9 }, { rows = 9, then_ = "flush" },
      { rows = 9 } },
    ["evaluation in the middle"] = { { rows = 9 }, { rows = 9, then_ = "evaluate" },
      { rows = 9, lr = 0.05 },
      { rows = 9, then_ = "evaluate" } },
    ["states in the middle"] = { { rows = 7 }, { rows = 7, then_ = "state" }, { rows = 7 },
      { rows = 7 },
      { rows = 7, lr = 0.001, then_ = "state" } },
  }
  for name, script in pairs(scripts) do
    it(name, function()
      for _, rule in ipairs(RULES) do
        for _, p in ipairs { 1, 2, 4 } do
          for _, chunks in ipairs { 1, 3, 4 } do check(made, rule, p, chunks, script) end
        end
      end
    end)
  end

  for _, checkpoint in ipairs { "always", "never" } do
    it("checkpoint = " .. checkpoint, function()
      for _, rule in ipairs(RULES) do
        check(made, rule, 4, 3, steady(5, 7), { checkpoint = checkpoint })
      end
    end)
  end
end)

describe("the update rule holds", function()
  local function check_all(made, options)
    for _, rule in ipairs(RULES) do
      for _, p in ipairs { 2, 4 } do
        for _, chunks in ipairs { 1, 3 } do check(made, rule, p, chunks, steady(5, 7), options) end
      end
    end
  end

  for name, make in pairs {
    SGD = function(p) return optim.SGD(p, { lr = 0.1 }) end,
    ["SGD with Nesterov momentum"] = function(p) return optim.SGD(p,
      { lr = 0.1, momentum = 0.9, nesterov = true }) end,
    Adam = function(p) return optim.Adam(p, { lr = 0.01, weight_decay = 0.1 }) end,
    ["AdamW in groups"] = function(p)
      local weights, others = {}, {}
      for _, entry in ipairs(p) do
        table.insert(entry.name:match "weight$" and weights or others, entry)
      end
      return optim.AdamW({ { params = weights, weight_decay = 0.1, lr = 0.02 },
        { params = others } }, { lr = 0.01 })
    end,
  } do
    it("with " .. name, function() check_all(asynchronous.tower { optimizer = make }) end)
  end

  it("with several threads on a device", function()
    check_all(asynchronous.tower(), { devices = {
      { "cpu:0", threads = 2 }, { "cpu:1", threads = 3 }, { "cpu:0", threads = 2 },
      { "cpu:1", threads = 1 },
    } })
  end)

  it("where nothing flows back to the first stage", function()
    local plain = asynchronous.tower()
    check_all(asynchronous.tower { model = function()
      local model = plain.model()
      for i = 1, 4 do model:freeze("^" .. i .. "%.") end
      return model
    end })
  end)

  it("where only the last stage learns", function()
    local plain = asynchronous.tower()
    check_all(asynchronous.tower { model = function()
      local model = plain.model()
      for i = 1, 7 do model:freeze("^" .. i .. "%.") end
      return model
    end })
  end)

  it("with one weight in several layers of a stage", function()
    local plain = asynchronous.tower()
    check_all(asynchronous.tower { model = function()
      local model = plain.model()
      model[1][2].weight = model[2][2].weight
      model[8][2].bias, model[7][2].bias = model[8][2].bias, model[8][2].bias
      return model
    end })
  end)

  it("with a skip over the stages", function()
    local plain = asynchronous.tower()
    check_all(asynchronous.tower { model = function()
      local kept
      local Keep, Add = nn.class("Keep"), nn.class("Add")
      function Keep.forward(_, x) kept = x return x end
      function Add.forward(_, x) return x + kept end
      local model = plain.model()
      return nn.Sequential { nn.Sequential { model[1], Keep() }, model[2], model[3], model[4],
        model[5], model[6],
        model[7], nn.Sequential { Add(), model[8] } }
    end })
  end)

  it("with a buffer that forward writes", function()
    local plain = asynchronous.tower()
    local Center = nn.class("Center")
    function Center:init(n) self.mean = nn.Buffer({ n }) end
    function Center:forward(x)
      if self:is_training() then self.mean:copy_(self.mean * 0.9 + x:mean(1) * 0.1) end
      return x - self.mean
    end
    check_all(asynchronous.tower { model = function()
      local layers, model = {}, plain.model()
      for i = 1, 8 do layers[i] = nn.Sequential { model[i], Center(6) } end
      return nn.Sequential(layers)
    end })
  end)

  it("with values that depend on parameters only", function()
    local plain = asynchronous.tower()
    local Normed = nn.class("Normed")
    function Normed:init() self.w = nn.Parameter({ 6, 6 }, nn.init.normal(0, 1)) end
    function Normed:forward(x)
      return x:matmul(self.w / ((self.w * self.w):sum(2, true) + 1e-6):sqrt())
    end
    check_all(asynchronous.tower { model = function()
      local layers, model = {}, plain.model()
      for i = 1, 8 do layers[i] = nn.Sequential { model[i], Normed() } end
      return nn.Sequential(layers)
    end })
  end)

  it("with layers wide enough for packed weights", function()
    local made = asynchronous.tower { width = 64, layers = 4 }
    function made.model()
      gp.seed(3)
      local layers = {}
      for i = 1, 4 do layers[i] = nn.Sequential { nn.Linear(64, 64), nn.Tanh() } end
      return nn.Sequential(layers)
    end
    for _, rule in ipairs(RULES) do check(made, rule, 4, 2, steady(6, 33)) end
  end)

  it("on ids, some of which the loss ignores", function()
    local made = asynchronous.tower { loss = nn.CrossEntropyLoss { ignore_index = 0 } }
    function made.model()
      gp.seed(3)
      return nn.Sequential {
        nn.Embedding(7, 6), nn.Linear(6, 6), nn.Tanh(), nn.LayerNorm(6), nn.Dropout(0.1),
        nn.Linear(6, 6), nn.GELU(),
        nn.Linear(6, 7),
      }
    end
    function made.batch(t, rows)
      local ids = {}
      for i = 1, rows do ids[i] = { (i + t) % 7, i * i % 7, i % 2 == 0 and 0 or 3 } end
      local x = gp.tensor(ids, { dtype = "i64" })
      return x, x
    end
    check_all(made)
  end)

  it("in f64", function()
    local d = { dtype = "f64" }
    local made = asynchronous.tower {}
    function made.model()
      gp.seed(3)
      local layers = {}
      for i = 1, 8 do
        layers[i] = nn.Sequential { nn.Linear(6, 6, d), nn.Dropout(0.2), nn.Tanh() }
      end
      return nn.Sequential(layers)
    end
    function made.batch(t, rows)
      return gp.randn({ rows, 6 }, { seed = t, dtype = "f64" }),
        gp.randn({ rows, 6 }, { seed = -t, dtype = "f64" })
    end
    check_all(made)
  end)
end)
