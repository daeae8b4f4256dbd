-- tests/spec/plan/balance_spec.lua - balances by time, by size and by the words of option
-- `balance`: the expected cuts, and the bits of the list that they stand for.
-- luacheck: ignore 212/self
local gp = require "gpipe"
local expect = require "tests.support.expect"
local fails_with = expect.fails_with
local nn = gp.nn

local function join(list) return table.concat(list, ",") end

-- A layer whose time grows with `work`.
local Work = nn.class "Work"
function Work:init(work) self.work, self.w = 2 * work, nn.Parameter({ 64, 64 }, 0.01) end
function Work:forward(v)
  for _ = 1, self.work do v = v:matmul(self.w):tanh() end
  return v
end

local function working(...)
  local layers = {}
  for i, work in ipairs { ... } do layers[i] = Work(work) end
  return nn.Sequential(layers)
end

-- A layer that keeps `parts` times its input, as torchgpipe's test has one.
local Growing = nn.class "Growing"
function Growing:init(parts) self.parts = parts end
function Growing:forward(v)
  local sum = v
  for i = 1, self.parts do sum = sum + (v * i):sin() end
  return sum
end

-- ---- gp.balance_by_time -------------------------------------------------------------------------

describe("gp.balance_by_time", function()
  it("cuts torchgpipe's example as it does: costs 1 .. 6 give 4,2, and 6 .. 1 give 2,4", function()
    local sample, o = { gp.ones { 16, 64 } }, { timeout = 0.2, device = { "cpu:0", threads = 1 } }
    assert.are.equal("4,2", join(gp.balance_by_time(2, working(1, 2, 3, 4, 5, 6), sample, o)))
    assert.are.equal("2,4", join(gp.balance_by_time(2, working(6, 5, 4, 3, 2, 1), sample, o)))
  end)

  it("gives every layer its input anew: convolution, Flatten, Linear", function()
    local model = nn.Sequential { nn.Conv2d(3, 2, 1), nn.Flatten(), nn.Linear(128, 10) }
    local list = gp.balance_by_time(2, model, { gp.randn { 10, 3, 8, 8 } }, { timeout = 0 })
    assert.are.equal(3, list[1] + list[2])
  end)

  it("adds up forward and both gradients of a profile, and measures nothing", function()
    local function of(...)
      local layers = {}
      for i, t in ipairs { ... } do layers[i] = { forward = t[1], input = t[2], weight = t[3] } end
      return gp.profile { layers = layers }
    end
    local p = of({ 1, 1, 1 }, { 4, 0, 0 }, { 0, 0, 5 }, { 0, 6, 0 })
    assert.are.equal("2,2", join(gp.balance_by_time(2, p, nil, {})))
    assert.are.equal("4", join(gp.balance_by_time(1, p)))
    assert.are.equal("1,1,1,1", join(gp.balance_by_time(4, p)))
  end)

  it("takes a model whose parameters have gradients, and several inputs", function()
    local model = nn.Sequential { nn.Linear(4, 4), nn.Linear(4, 4) }
    do
      local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
      pipe:step(gp.ones { 2, 4 }, gp.ones { 2, 4 })
      assert.are.equal("1,1", join(gp.balance_by_time(2, model, gp.ones { 2, 4 }, { timeout = 0 })))
    end
    local two = nn.Sequential { nn.Parallel { nn.Linear(4, 4), nn.Tanh() }, nn.Identity() }
    assert.are.equal("1,1", join(gp.balance_by_time(2, two,
      { { gp.ones { 2, 4 }, gp.ones { 2, 4 } } }, { timeout = 0 })))
  end)
end)

-- ---- gp.balance_by_size -------------------------------------------------------------------------

describe("gp.balance_by_size", function()
  local function growing(first, last, step)
    local layers = { nn.Linear(64, 64) } -- before it backward needs nothing, so nothing is kept
    for i = first, last, step do layers[#layers + 1] = Growing(i) end
    return nn.Sequential(layers)
  end

  it("cuts torchgpipe's examples as it does", function()
    local sample = { gp.ones { 16, 64 } }
    local only_kept = { param_scale = 0 }
    assert.are.equal("5,2", join(gp.balance_by_size(2, growing(1, 6, 1), sample, only_kept)))
    assert.are.equal("3,4", join(gp.balance_by_size(2, growing(6, 1, -1), sample, only_kept)))
    local function linears(first, last, step)
      local layers = {}
      for i = first, last, step do
        layers[#layers + 1] = nn.Sequential {}
        for k = 1, i do layers[#layers][k] = nn.Linear(64, 64) end
      end
      return nn.Sequential(layers)
    end
    local o = { param_scale = 100 }
    assert.are.equal("4,2", join(gp.balance_by_size(2, linears(1, 6, 1), sample, o)))
    assert.are.equal("2,4", join(gp.balance_by_size(2, linears(6, 1, -1), sample, o)))
  end)

  it("weighs what is kept against parameters by param_scale and chunks", function()
    local layers = {}
    for i = 1, 6 do layers[i] = { saved_bytes = 100 * (7 - i), parameter_bytes = 100 * i } end
    local p = gp.profile { layers = layers }
    local function of(o) return join(gp.balance_by_size(2, p, nil, o)) end
    assert.are.equal("2,4", of { param_scale = 0 })
    assert.are.equal("4,2", of { param_scale = 100 })
    assert.are.equal("2,4", of { param_scale = 0.1 })
    assert.are.equal("4,2", of { param_scale = 0.1, chunks = 100 })
  end)

  it("plans for one micro-batch of the sample, whatever the device", function()
    local model = nn.Sequential { nn.Linear(64, 256), nn.Tanh(), nn.Tanh(), nn.Linear(256, 64) }
    local sample = { gp.ones { 512, 64 } }
    local whole = gp.balance_by_size(2, model, sample, { param_scale = 4 })
    local pieces = gp.balance_by_size(2, model, sample, { param_scale = 4, chunks = 512 })
    assert.are.same({ "2,2", "1,3" }, { join(whole), join(pieces) })
    assert.are.same(whole, gp.balance_by_size(2, model, sample,
      { param_scale = 4, device = "cuda:0" }))
  end)
end)

-- ---- wrong calls --------------------------------------------------------------------------------

describe("balancing refuses", function()
  local p = gp.profile { layers = { { forward = 1 }, { forward = 1 } } }
  local cases = {
    { gp.balance_by_time, "gp.balance_by_time", { timeout = -1 }, "option 'timeout' is -1" },
    { gp.balance_by_size, "gp.balance_by_size", { param_scale = -1 }, "'param_scale' is -1" },
    { gp.balance_by_size, "gp.balance_by_size", { chunks = 0 }, "option 'chunks' is 0" },
    { gp.balance_by_time, "gp.balance_by_time", { devise = "cpu:0" }, "did you mean 'device'?" },
  }
  for _, case in ipairs(cases) do
    it(case[4], function() fails_with(case[4], case[1], 2, p, nil, case[3]) end)
  end
  for _, name in ipairs { "gp.balance_by_time", "gp.balance_by_size" } do
    local f = gp[name:sub(4)]
    it("wrong stages, models and samples: " .. name, function()
      fails_with(name .. ": stages is missing, expected an integer >= 1", f)
      fails_with(name .. ": stages is 0, expected an integer >= 1", f, 0, p)
      fails_with(name .. ": the model is 3, expected an nn.Sequential with layers, or a profile", f,
        2, 3, { gp.ones { 2, 2 } })
      fails_with(name .. ": the sample is a table beside a profile, expected nil", f, 2, p,
        { gp.ones { 2, 2 } })
      fails_with(name .. ": the sample is nil, expected {x, y} or {x}", f, 2,
        nn.Sequential { nn.Linear(2, 2) })
      fails_with(name .. ": the profile has no ", f, 1, gp.profile { layers = { {} } })
    end)
  end
  it("more stages than layers", function()
    fails_with("gp.balance_by_time: 3 stages and 2 layers, expected at least a layer per stage",
      gp.balance_by_time, 3, p)
    fails_with("gp.balance_by_size: 2 stages and 1 layer", gp.balance_by_size, 2,
      nn.Sequential { nn.Linear(2, 2) }, gp.ones { 2, 2 })
  end)
end)

-- ---- option balance -----------------------------------------------------------------------------

local ROWS = 8

local function model()
  gp.seed(5)
  return nn.Sequential {
    nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.LayerNorm(64),
    nn.Linear(64, 8),
  }
end

local function options(more)
  local o = { devices = 2, chunks = 2, loss = nn.CrossEntropyLoss(), seed = 1 }
  for key, value in pairs(more) do o[key] = value end
  return o
end

local x, y = gp.randn({ ROWS, 16 }, { seed = 1 }), gp.zeros({ ROWS }, { dtype = "i64" })

-- Trains for two steps; returns the balance, the losses and the last parameters.
local function trained(more)
  local pipe <close> = gp.pipeline(model(), options(more))
  local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
  local losses = {}
  for i = 1, 2 do
    losses[i] = pipe:step(x, y)
    opt:step()
  end
  return pipe.balance, losses, pipe:state_dict()
end

describe("option balance", function()
  local words = {
    { "parameters", "2,4" }, { "uniform", "3,3" }, { "type:Linear", "5,1" },
    { "type:tanh", "3,3" }, { "type:^linear$|norm", "4,2" }, { "type:L%a+r$", "5,1" },
    { "time" }, { "memory", "2,4" },
  }
  for _, case in ipairs(words) do
    local word, wanted = table.unpack(case)
    it(("%s cuts as expected, and has the bits of its list"):format(word), function()
      local list, losses, state = trained { balance = word, sample = { x, y } }
      if wanted then assert.are.equal(wanted, join(list)) end
      local same, again, values = trained { balance = list }
      assert.are.same(list, same)
      assert.are.same(losses, again)
      for name, value in pairs(values) do assert.is_true(gp.equal(value, state[name]), name) end
    end)
  end

  it("gives the number of stages that the schedule has", function()
    local function cut(o)
      local pipe <close> = gp.pipeline(model(), options(o))
      return join(pipe.balance)
    end
    assert.are.equal("2,2,1,1", cut { balance = "uniform", schedule = "zbv" })
    assert.are.equal("2,2,2", cut { balance = "uniform", devices = 3 })
    assert.are.equal("6", cut { balance = "uniform", devices = 1 })
    assert.are.equal(cut {}, cut { balance = "parameters" })
  end)

  it("gives the blocks of a GPT evenly to the stages that its embedding leaves", function()
    local gpt = gp.models.gpt2 {
      layers = 12, width = 16, heads = 2, context = 8, vocabulary = 5000,
    }
    local pipe <close> = gp.pipeline(gpt, { devices = 8, chunks = 8 })
    local most = 0
    for s = 2, #pipe.balance do most = math.max(most, pipe.balance[s]) end
    assert.are.equal(8, #pipe.balance)
    assert.are.equal(2, most) -- 13 layers over 7 stages
    local profile = gp.profile { layers = { { forward = 9 }, { forward = 1 }, { forward = 1 },
      { forward = 1 }, { forward = 1 } } }
    assert.are.equal("1,2,2", join(gp.balance_by_time(3, profile)))
  end)

  it("by time gives the slow layer a stage of its own", function()
    local pipe <close> = gp.pipeline(working(1, 1, 12, 1), {
      devices = 3, balance = "time", loss = nn.MSELoss(), checkpoint = "never",
      sample = { gp.ones { 16, 64 }, gp.ones { 16, 64 } },
    })
    assert.are.equal("2,1,1", join(pipe.balance))
  end)

  it("by memory counts what is kept and twice the parameters", function()
    local wide = nn.Sequential { nn.Linear(4, 512), nn.Tanh(), nn.Tanh(), nn.Linear(512, 4) }
    local sample = { gp.ones { 64, 4 }, gp.ones { 64, 4 } }
    local pipe <close> = gp.pipeline(wide, {
      devices = 2, balance = "memory", loss = nn.MSELoss(), chunks = 4, sample = sample,
    })
    assert.are.same(gp.balance_by_size(2, wide, sample, { chunks = 4 }), pipe.balance)
  end)

  it("is known to dry runs, except by time", function()
    local function cut(word)
      return join(gp.dry_run(model(), { balance = word, devices = 2, loss = nn.CrossEntropyLoss(),
        sample = { x, y } }).balance)
    end
    assert.are.same({ "3,3", "2,4", "5,1" }, { cut "uniform", cut "memory", cut "type:linear" })
    fails_with('balance = "time" is measured on a device, and a dry run opens none', cut, "time")
  end)

  local refused = {
    { { balance = "time" },
      'gp.pipeline: balance = "time" needs option \'sample\', expected {x, y}: a batch to' },
    { { balance = "memory" }, 'gp.pipeline: balance = "memory" needs option \'sample\'' },
    { { balance = "even" }, "option 'balance' is \"even\" (string), expected a list of layers" },
    { { balance = "parameter" }, "(did you mean 'parameters'?)" },
    { { balance = "type:" }, "option 'balance' is \"type:\" (string)" },
    { { balance = 2 }, "option 'balance' is 2, expected a list of layers" },
    { { balance = "type:conv" },
      "balance = 'type:conv' matches no layer, expected a pattern for the name of a class (the "
        .. "layers are Linear, Tanh, LayerNorm)" },
    { { balance = "type:[" }, "balance names the pattern '[': malformed pattern" },
    { { balance = "time", sample = { gp.ones { 8, 3 }, y } }, "1 (Linear 16 -> 64)" },
  }
  for _, case in ipairs(refused) do
    it("is refused: " .. case[2], function()
      fails_with(case[2], gp.pipeline, model(), options(case[1]))
    end)
  end
end)
