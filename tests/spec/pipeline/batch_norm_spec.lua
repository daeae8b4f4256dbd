-- tests/spec/pipeline/batch_norm_spec.lua - batch norm in pipelines: how its running statistics
-- move, and that neither cuts nor schedules nor recomputation change a bit of them.

local gp = require "gpipe"
local synchronous = require "tests.support.synchronous"
local training = require "tests.support.training"

local nn = gp.nn

local ROWS = 14
local X = gp.randn({ ROWS, 3, 4, 4 }, { seed = 31 }) * gp.tensor { 1, 10, 100 }:reshape(3, 1, 1)
  + 100
local Y = gp.randn({ ROWS, 2 }, { seed = 32 })

-- Makes six layers, of which the first norm reads the data.
local function model(momentum)
  return function()
    gp.seed(6)
    return nn.Sequential {
      nn.BatchNorm2d(3, { momentum = momentum }), nn.Conv2d(3, 4, 3, { padding = 1 }),
      nn.Sequential { nn.BatchNorm2d(4), nn.ReLU() },
      nn.Sequential { nn.Conv2d(4, 2, 3), nn.GroupNorm(1, 2), nn.Flatten() },
      nn.Sequential { nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU() }, nn.Linear(6, 2),
    }
  end
end

local function setup(momentum)
  return { model = model(momentum), x = X, y = Y, loss = nn.MSELoss(), steps = 2 }
end

local function run(options, momentum) return training.run(setup(momentum), options) end

-- Returns running statistics after steps without updates.
local function track(options, steps)
  local made = model(options.momentum)()
  local pipe <close> = gp.pipeline(made, {
    loss = nn.MSELoss(), chunks = options.chunks, checkpoint = options.checkpoint,
    deferred_batch_norm = options.deferred, balance = options.balance,
  })
  for _ = 1, steps do pipe:step(X, Y) end
  return made:state_dict()
end

local function near(a, b, bound)
  a, b = a:to "f64", b:to "f64"
  local off = ((a - b):abs() / (b:abs() + 1)):max():item()
  assert.is_true(off <= bound, ("off by %g, allowed %g"):format(off, bound))
end

local CASES = {
  { "1f1b" }, { "gpipe" }, { "gpipe", backward = "lifo" }, { "interleaved_1f1b" }, { "zb_h1" },
  { "interleaved_zero_bubble" }, { "zbv" },
}

describe("running statistics in a pipeline", function()
  it("move once for every micro-batch, in order, recomputed or not", function()
    local layer = model()()[1]
    for _, part in ipairs { { 1, 5 }, { 6, 5 }, { 11, 4 } } do layer(X:narrow(1, part[1], part[2])) end
    local wanted = layer:state_dict()
    for _, checkpoint in ipairs { "always", "never", "except_last" } do
      local state = track({ chunks = 3, checkpoint = checkpoint, balance = { 3, 3 } }, 1)
      assert.are.equal(3, state["1.num_batches_tracked"]:item())
      for name, value in pairs(wanted) do
        assert(gp.equal(value, state["1." .. name]), checkpoint .. " " .. name)
      end
    end
  end)

  it("are used in evaluation", function()
    local made = model()()
    local pipe <close> = gp.pipeline(made, { balance = { 2, 4 }, chunks = 3, loss = nn.MSELoss() })
    pipe:step(X, Y)
    pipe:eval()
    local y, before = pipe:forward(X), made:state_dict()
    assert(gp.equal(before["1.running_mean"], made[1].running_mean:value()))
    near(y, made:eval()(X), 1e-5)
    assert(gp.equal(before["3.1.running_var"], made[3][1].running_var:value()))
  end)

  it("stay as they were where a step fails", function()
    for _, deferred in ipairs { false, true } do
      local made = nn.Sequential { nn.BatchNorm1d(3), nn.Linear(3, 2) }
      local pipe <close> = gp.pipeline(made, {
        chunks = 3, loss = nn.CrossEntropyLoss(), deferred_batch_norm = deferred,
      })
      local x, ids = gp.randn { 6, 3 }, gp.tensor({ 0, 1, 0, 1, 0, 1 }, { dtype = "i64" })
      pipe:step(x, ids)
      local before = made:state_dict()
      assert.is_false(pcall(pipe.step, pipe, x, ids + 1))
      for name, value in pairs(before) do assert(gp.equal(value, made:state_dict()[name]), name) end
      pipe:step(x, ids)
      assert.are.equal(deferred and 2 or 6, made[1].num_batches_tracked:value():item())
    end
  end)

  it("have the same bits for every cut, schedule and checkpoint mode", function()
    local wanted = run { chunks = 4, schedule = "naive", checkpoint = "never" }
    local modes = { "always", "never", "except_last" }
    for i, case in ipairs(CASES) do
      for stages = 1, 3 do
        local options = { chunks = 4, schedule = synchronous.schedule(case),
          balance = synchronous.cut(6, stages), checkpoint = modes[(i + stages) % 3 + 1] }
        if synchronous.is_defined(case, stages, 4) then
          assert.are.equal(nil, training.difference(wanted, run(options)), case[1] .. stages)
        end
      end
    end
  end)
end)

describe("deferred batch norm", function()
  it("moves running statistics once a mini-batch, by those of the full batch", function()
    for _, momentum in ipairs { 0.1, 0.75, false } do
      local wanted = track({ chunks = 1, momentum = momentum }, 3)
      for _, chunks in ipairs { 1, 3, 4 } do
        local state = track({ chunks = chunks, momentum = momentum, deferred = true }, 3)
        near(state["1.running_mean"], wanted["1.running_mean"], 1e-6)
        near(state["1.running_var"], wanted["1.running_var"], 1e-6)
        assert.are.equal(3, state["5.2.num_batches_tracked"]:item())
      end
    end
  end)

  -- The data are torchgpipe's: channels of three scales, samples ever farther away.
  it("has the full batch's statistics of samples that lie far apart", function()
    local x = gp.randn({ 16, 3, 8, 8 }, { seed = 51 }) * gp.tensor { 1, 10, 100 }:reshape(3, 1, 1)
    for i = 1, 16 do x[i]:copy_(x[i] + 2 ^ (i - 1)) end
    for _, momentum in ipairs { 0.1, false } do
      local norms = {}
      for k, chunks in ipairs { 1, 4 } do
        norms[k] = nn.Sequential { nn.BatchNorm2d(3, { momentum = momentum }) }
        local pipe <close> = gp.pipeline(norms[k], {
          chunks = chunks, deferred_batch_norm = true, loss = nn.MSELoss(),
        })
        for _ = 1, 2 do pipe:step(x, x) end
      end
      for name, value in pairs(norms[1]:state_dict()) do
        near(norms[2]:state_dict()[name], value, 1e-6)
      end
    end
  end)

  it("changes no gradient", function()
    local plain, deferred = run { chunks = 4 }, run { chunks = 4, deferred_batch_norm = true }
    for name, gradient in pairs(plain.gradients) do
      assert(gp.equal(gradient, deferred.gradients[name]), name)
    end
  end)

  it("has the same bits for every cut, schedule and checkpoint mode", function()
    local wanted = run { chunks = 4, schedule = "naive", checkpoint = "never",
      deferred_batch_norm = true }
    for _, case in ipairs(CASES) do
      for stages = 1, 3 do
        for _, checkpoint in ipairs { "always", "never", "except_last" } do
          if synchronous.is_defined(case, stages, 4) then
            local got = run { chunks = 4, schedule = synchronous.schedule(case),
              balance = synchronous.cut(6, stages), checkpoint = checkpoint,
              deferred_batch_norm = true }
            assert.are.equal(nil, training.difference(wanted, got), case[1] .. stages .. checkpoint)
          end
        end
      end
    end
  end)

  it("leaves the model's state as it is for its readers", function()
    local names = {}
    for name in pairs(track({ chunks = 2, deferred = true }, 1)) do names[#names + 1] = name end
    for name in pairs(model()():state_dict()) do names[#names + 1] = name end
    table.sort(names)
    for i = 1, #names, 2 do assert.are.equal(names[i], names[i + 1]) end
  end)

  it("ends with its pipeline", function()
    local made = model()()
    for _, deferred in ipairs { true, false } do
      local pipe <close> = gp.pipeline(made, {
        chunks = 2, loss = nn.MSELoss(), deferred_batch_norm = deferred,
      })
      pipe:step(X, Y)
    end
    made(X)
    assert.are.equal(1 + 2 + 1, made[1].num_batches_tracked:value():item())
  end)
end)
