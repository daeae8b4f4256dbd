-- tests/spec/cuda/precision_spec.lua - pipelines in tf32, bf16 and f16 are near f32, and give the
-- same bits for every cut.

local gp = require "gpipe"
local inside = require "gpipe.pipeline.object".inside
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local training = require "tests.support.training"
local nn, optim = gp.nn, gp.optim

local on_gpu = gpu.spec(it)

-- How far losses (relative) and first gradients (relative plus absolute) may be from f32's after
-- three steps.
local NEAR = {
  tf32 = { 2e-3, 1e-2 }, -- products have values of 11 bits
  f16 = { 2e-3, 1e-2 }, -- every value has 11 bits
  bf16 = { 1e-2, 6e-2 }, -- every value has 8 bits
}

local function gpus(n)
  local list = {}
  for i = 1, n do list[i] = "cuda:0" end
  return list
end

local function mlp()
  gp.seed(3)
  return nn.Sequential {
    nn.Linear(6, 24), nn.GELU("tanh"), nn.LayerNorm(24), nn.Linear(24, 24), nn.Tanh(),
    nn.Linear(24, 3),
  }
end

local SETUPS = {
  { "a perceptron with squared differences", function()
    return { model = mlp, x = models.rows_of(7, 6), y = models.rows_of(7, 3), loss = nn.MSELoss(),
      steps = 3 }
  end },
  { "a small GPT", function() return models.setup { steps = 3 } end },
}

-- ---- near f32 ----------------------------------------------------------------------------------

local function run(setup, precision, fields)
  local options = { devices = gpus(1), chunks = 3, precision = precision }
  for key, value in pairs(fields or {}) do options[key] = value end
  return training.run(setup, options)
end

for _, named in ipairs(SETUPS) do
  for precision, bounds in pairs(NEAR) do
    describe(named[1] .. " in " .. precision, function()
      on_gpu("has nearly the losses and gradients of f32", function()
        local setup = named[2]()
        local wide, narrow = run(setup, "f32"), run(setup, precision)
        for step, loss in ipairs(wide.losses) do
          assert(math.abs(narrow.losses[step] - loss) <= bounds[1] * loss,
            ("loss %d is %.9g, in f32 %.9g"):format(step,
            narrow.losses[step], loss))
        end
        local distance = training.distance(narrow.first, wide.first, bounds[2], bounds[2] / 10)
        assert(distance <= 1, ("gradients are %.3g times as far as allowed"):format(distance))
      end)
    end)
  end
end

-- ---- the same bits -----------------------------------------------------------------------------

local function everywhere(precision)
  local list = training.combinations {
    balance = { { 7 }, { 3, 4 }, { 2, 3, 2 } }, schedule = { "gpipe", "1f1b", "zb_h1" }, chunks = 3,
  }
  for _, options in ipairs(list) do
    options.devices, options.precision = gpus(#options.balance), precision
    if #options.balance == 1 then options.schedule = "gpipe" end
  end
  return list
end

for _, precision in ipairs { "bf16", "f16" } do
  describe("a pipeline in " .. precision, function()
    on_gpu("gives the same bits for every cut, schedule and checkpoint mode", function()
      training.check_same(models.setup { steps = 2 }, everywhere(precision))
    end)

    on_gpu("keeps parameters, gradients and outputs in f32", function()
      local pipe <close> = gp.pipeline(mlp(),
        { devices = gpus(2), balance = { 3, 3 }, precision = precision })
      local out = pipe:forward(models.rows_of(4, 6))
      assert.are.equal("f32", out.dtype)
      pipe:backward(gp.ones(out.shape))
      for _, p in ipairs(pipe:parameters()) do
        assert.are.equal("f32", p.value.dtype)
        assert.are.equal("f32", p.grad.dtype)
      end
    end)

    on_gpu("sends halves from stage to stage", function()
      local pipe <close> = gp.pipeline(mlp(),
        { devices = gpus(2), balance = { 3, 3 }, precision = precision,
        loss = nn.MSELoss() })
      pipe:step(models.rows_of(4, 6), models.rows_of(4, 3))
      local _, plan = next(pipe.plans)
      for _, edge in ipairs(inside(pipe).core:edges(plan.handle)) do
        assert.are.equal(4 * 24 * 2, edge.bytes)
      end
    end)
  end)
end

describe("a layer of a model in bf16", function()
  local Probe = nn.class("Probe")
  function Probe:init(seen)
    self.w, self.rows, self.seen = nn.Parameter({ 6 }, 0.5), nn.Buffer({ 6 }), seen
  end
  function Probe:forward(x)
    self.seen(x, self.w, self.rows)
    self.rows:copy_(x:sum(1))
    return (x * (self.w + 1) / 2) * self.w:mean()
  end

  on_gpu("sees its input and its parameters in bf16, and its buffers in f32", function()
    local seen = {}
    local probe = Probe(function(...) for i, t in ipairs { ... } do seen[i] = t.dtype end end)
    local pipe <close> = gp.pipeline(nn.Sequential { probe },
      { devices = gpus(1), precision = "bf16",
      loss = function(out) return out:sum(), 1 end })
    assert.are.equal(4 * 6 * 1.5 / 2 * 0.5, pipe:step(gp.ones { 4, 6 }, gp.ones { 4 }))
    assert.are.same({ "bf16", "bf16", "f32" }, seen)
    assert.are.equal(4, probe.rows:value()[1])
    assert.are.equal("f32", probe.w.dtype)
  end)
end)

-- ---- loss scaling ------------------------------------------------------------------------------

local function scaled(fields, scale)
  local options = { devices = gpus(1), precision = "f16", loss = nn.MSELoss(), loss_scale = scale }
  for key, value in pairs(fields or {}) do options[key] = value end
  return gp.pipeline(mlp(), options)
end

local x, y = models.rows_of(6, 6), models.rows_of(6, 3)

-- Runs steps of a pipeline; returns the scale after each.
local function steps(pipe, n, after)
  local list = {}
  for i = 1, n do
    pipe:step(x, y)
    if after then after() end
    list[i] = pipe.stats.loss_scale
  end
  return list
end

describe("the loss scale of f16", function()
  on_gpu("grows after a window of steps that were finite", function()
    local pipe <close> = scaled(nil, { initial = 16, window = 3, growth = 4 })
    assert.are.same({ 16, 16, 64, 64, 64, 256 }, steps(pipe, 6))
    assert.are.equal(0, pipe.stats.skipped)
  end)

  on_gpu("backs off where gradients overflow, and nothing is updated", function()
    local pipe <close> = scaled(nil, { initial = 2 ^ 30, backoff = 0.25 })
    local opt = optim.AdamW(pipe:parameters(), { lr = 0.1 })
    local before = pipe:state_dict()
    pipe:step(x, y)
    opt:step()
    assert.are.equal(2 ^ 28, pipe.stats.loss_scale)
    assert.are.equal(1, pipe.stats.skipped)
    for name, value in pairs(pipe:state_dict()) do assert(gp.equal(value, before[name]), name) end
    assert.are.equal(0, opt:state_dict().step:item())
  end)

  on_gpu("lets training go on with the first scale that fits, as if no step had been skipped",
    function()
    local function train(initial, use)
      local pipe <close> = scaled({ devices = gpus(2), balance = { 2, 4 }, chunks = 2 },
        { initial = initial })
      local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
      if use then pipe:use(opt, { clip_norm = 1 }) end
      local skipped = 0
      while skipped == pipe.stats.skipped do
        pipe:step(x, y)
        if not use then optim.clip_grad_norm(pipe:parameters(), 1) opt:step() end
        if pipe.stats.skipped == skipped then break end
        skipped = pipe.stats.skipped
      end
      return pipe:state_dict(), pipe.stats.loss_scale, skipped, opt:state_dict().step:item()
    end
    local state, scale, skipped, count = train(2 ^ 34)
    assert(skipped > 2 and count == 1)
    local other, _, none = train(scale)
    assert.are.equal(0, none)
    local used = train(2 ^ 34, true)
    for name, value in pairs(state) do
      assert(gp.equal(value, other[name]), name .. " depends on what was skipped")
      assert(gp.equal(value, used[name]), name .. " depends on who updates")
    end
  end)

  on_gpu("is divided out of gradients, also of accumulated ones", function()
    local function gradients(initial)
      local pipe <close> = scaled(nil, { initial = initial, window = 1 })
      pipe:step(x, y)
      pipe:step(x, y, { accumulate = true })
      return training.gradients(pipe)
    end
    local one, other = gradients(1), gradients(1024)
    assert(training.distance(one, other, 1e-2, 1e-3) <= 1)
  end)

  on_gpu("is read and set as a table", function()
    local pipe <close> = scaled(nil, { initial = 16, window = 3 })
    steps(pipe, 2)
    local state = pipe:loss_scale()
    assert.are.same({ scale = 16, growth = 2, backoff = 0.5, min = 1, window = 3, good = 2,
      skipped = 0 }, state)
    local other <close> = scaled(nil, { initial = 2 })
    other:loss_scale(state)
    assert.are.same({ 32 }, steps(other, 1))
    assert.has_error(function() other:loss_scale { scale = 0 } end)
  end)

  on_gpu("raises an error when the smallest scale does not help", function()
    local pipe <close> = scaled({ loss = function(out) return out:sum() * 1e30 * 1e30 end },
      { initial = 2 })
    local count, message = 0, nil
    while not message and count < 50 do
      local good, text = pcall(pipe.step, pipe, x, y)
      count, message = count + 1, not good and text or nil
    end
    assert.are.equal(21, count)
    assert.matches("loss scale: the gradients of 20 steps in a row were not finite at the smallest "
      .. "scale, 1", message)
  end)
end)

-- ---- what is refused ---------------------------------------------------------------------------

local function refusal(options)
  local good, message = pcall(gp.pipeline, mlp(), options)
  assert.is_false(good)
  return message
end

describe("precision", function()
  it("may be tf32 on CPU devices, where it changes nothing", function()
    local pipe <close> = gp.pipeline(mlp(),
      { devices = { "cpu:0" }, precision = "tf32", loss = nn.MSELoss() })
    local other <close> = gp.pipeline(mlp(), { devices = { "cpu:0" }, loss = nn.MSELoss() })
    assert.are.equal(other:step(x, y), pipe:step(x, y))
  end)

  it("takes loss_scale only for f16", function()
    assert.matches("loss_scale is for precision 'f16', not for 'bf16'",
      refusal { devices = { "cpu:0" },
      precision = "bf16", loss_scale = {} })
  end)

  on_gpu("cannot be f16 where stages are updated at different times", function()
    assert.matches("expected a synchronous schedule",
      refusal { devices = gpus(1), precision = "f16",
      schedule = "pipedream" })
    local pipe <close> = scaled()
    local opt = optim.SGD(pipe:parameters(), { lr = 0.1 })
    local good, message = pcall(pipe.use, pipe, opt, { barrier = false })
    assert.is_false(good)
    assert.matches("it needs the barrier", message)
  end)
end)

-- ---- constants and buffers ----------------------------------------------------------------------

local Table = nn.class("Table") -- adds its constant, and a part of its buffer

function Table:init()
  self.constant, self.kept = gp.rand { 8 }, nn.Buffer({ 4, 8 }, nn.init.normal(0, 1))
end

function Table:forward(v) return v * self.constant + self.kept:narrow(1, 2, 1):reshape { 8 } end

describe("f32 constants and buffers in a model of halves", function()
  local function setup()
    return {
      model = function()
        gp.seed(5)
        return nn.Sequential { nn.Linear(6, 8), Table(), nn.Linear(8, 3) }
      end,
      x = models.rows_of(7, 6), y = models.rows_of(7, 3), loss = nn.MSELoss(), steps = 3,
    }
  end

  for _, precision in ipairs { "bf16", "f16" } do
    on_gpu("are read in " .. precision, function()
      local wide, narrow = run(setup(), "f32"), run(setup(), precision)
      for step, loss in ipairs(wide.losses) do
        assert(math.abs(narrow.losses[step] - loss) <= NEAR[precision][1] * loss, "loss " .. step)
      end
    end)
  end
end)
