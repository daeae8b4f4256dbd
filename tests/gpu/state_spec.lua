-- tests/gpu/state_spec.lua - parameters on GPUs are read, saved, loaded and clipped; the script's
-- own tensors on a GPU.
local gp = require "gpipe"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local expect = require "tests.support.expect"
local gpu = require "tests.support.gpu"
local models = require "tests.support.models"
local placements = require "tests.support.placements"
local nn, optim = gp.nn, gp.optim
local on_gpu, fails_with = gpu.spec(it, pending), expect.fails_with
local x, y = models.ids(7, 6), models.ids(7, 6)

local function pipe_of(devices, balance)
  return gp.pipeline(models.gpt()(), {
    balance = balance, devices = devices, chunks = 3, loss = nn.CrossEntropyLoss(), seed = 5,
  })
end

local function train(pipe, opt, steps)
  local losses = {}
  for step = 1, steps do
    losses[step] = pipe:step(x, y)
    opt:step()
  end
  return losses
end

local function check_equal(wanted, got)
  for name, value in pairs(wanted) do
    assert.is_true(gp.equal(value:to "cpu", got[name]:to "cpu"), name)
  end
end

-- ---- values of pipelines ------------------------------------------------------------------------

describe("initial values", function()
  on_gpu("are those of the CPU, bit for bit, on every placement", function()
    local here <close> = pipe_of({ "cpu:0" }, { 7 })
    for _, name in ipairs(placements.names()) do
      local there <close> = pipe_of(placements.devices(name, 3), { 2, 3, 2 })
      check_equal(here:state_dict(), there:state_dict())
    end
  end)
end)

describe("parameters of a pipeline on GPUs", function()
  on_gpu("lie where their stage is, and can be read and written", function()
    local pipe <close> = pipe_of({ "cuda:0", "cpu:0" }, { 3, 4 })
    pipe:step(x, y)
    for _, p in ipairs(pipe:parameters()) do
      local device = p.stage == 0 and "cuda:0" or "cpu"
      assert.equal(device, p.value.device)
      assert.equal(device, p.grad.device)
    end
    local first = pipe:parameters()[1]
    first.value:copy_(gp.ones(first.value.shape))
    assert.is_true(gp.equal(gp.ones(first.value.shape), pipe:state_dict()[first.name]:to "cpu"))
  end)

  on_gpu("go to a file and come back into another cut and other devices, and training goes on to "
    .. "the bit", function()
    local path = os.tmpname()
    local one <close> = pipe_of({ "cuda:0", "cuda:0" }, { 3, 4 })
    local opt = optim.AdamW(one:parameters(), { lr = 1e-2 })
    train(one, opt, 3)
    assert(gp.save(path, one:state_dict()))
    local two <close> = pipe_of({ "cuda:0", "cuda:0", "cuda:0" }, { 2, 2, 3 })
    local other = optim.AdamW(two:parameters(), { lr = 1e-2 })
    train(two, other, 3)
    two:load_state_dict(assert(gp.load(path)))
    other:load_state_dict(opt:state_dict())
    os.remove(path)
    check_equal(one:state_dict(), two:state_dict())
    assert.same(train(one, opt, 3), train(two, other, 3))
  end)

  on_gpu("move by a state to a pipeline on the CPU, and back", function()
    local here <close> = pipe_of({ "cpu:0" }, { 7 })
    local there <close> = pipe_of({ "cuda:0", "cuda:0" }, { 3, 4 })
    train(there, optim.AdamW(there:parameters(), { lr = 1e-2 }), 2)
    here:load_state_dict(there:state_dict())
    check_equal(there:state_dict(), here:state_dict())
    train(here, optim.AdamW(here:parameters(), { lr = 1e-2 }), 2)
    there:load_state_dict(here:state_dict())
    check_equal(here:state_dict(), there:state_dict())
  end)
end)

-- ---- optimizers ---------------------------------------------------------------------------------

describe("an optimizer", function()
  local inputs, targets = gp.randn({ 6, 8 }, { seed = 1 }), gp.randn({ 6, 4 }, { seed = 2 })

  local function small()
    gp.seed(3)
    return nn.Sequential { nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4) }
  end

  local function pipe_on(model, device)
    return gp.pipeline(model, { devices = { device }, chunks = 2, loss = nn.MSELoss() })
  end

  local function steps(pipe, opt, count)
    for _ = 1, count do
      pipe:step(inputs, targets)
      opt:step()
    end
  end

  -- Trains a model on one device and closes its pipeline; returns the model, its optimizer, and the
  -- values of both.
  local function trained(device)
    local model = small()
    local pipe <close> = pipe_on(model, device)
    local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
    steps(pipe, opt, 2)
    local held = {}
    for name, value in pairs(opt:state_dict()) do held[name] = value:to("cpu"):clone() end
    return model, opt, pipe:state_dict(), held
  end

  -- An optimizer follows its model to another device as if its state had been loaded there. Each
  -- allocation of the step that moves it fails in turn: the next attempt goes on where it was.
  for _, way in ipairs { { "cuda:0", "cpu:0" }, { "cpu:0", "cuda:0" }, { "cuda:0", "cuda:1" } } do
    on_gpu(("follows its model from %s to %s, to the bit"):format(way[1], way[2]), function()
      local model, opt, values, held = trained(way[1])
      local control <close> = pipe_on(small(), way[2])
      local other = optim.AdamW(control:parameters(), { lr = 1e-2 })
      control:load_state_dict(values)
      other:load_state_dict(held)
      local pipe <close> = pipe_on(model, way[2])
      steps(control, other, 1)
      pipe:step(inputs, targets)
      local failures = -1
      repeat
        failures = failures + 1
        core.memory_fail_at(failures + 1)
        local good, fault = pcall(opt.step, opt)
        core.memory_fail_at(0)
        assert(good or errors.code_of(fault) == "memory", fault)
      until good or failures == 100
      assert(failures > 0 and failures < 100, failures)
      check_equal(control:state_dict(), pipe:state_dict())
      check_equal(other:state_dict(), opt:state_dict())
    end, way[2] == "cuda:1" and 2 or 1)
  end

  local kinds = {
    { "SGD", { lr = 0.1 } }, { "SGD", { lr = 0.1, weight_decay = 0.1 } },
    { "SGD", { lr = 0.1, momentum = 0.9 } },
    { "SGD", { lr = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.1 } },
    { "Adam", { lr = 0.01, weight_decay = 0.1 } }, { "AdamW", { lr = 0.01, weight_decay = 0.1 } },
  }
  for i, kind in ipairs(kinds) do
    on_gpu(("%s (%d) makes of parameters what it makes of them on the CPU"):format(kind[1], i),
      function()
      local states = {}
      for k, device in ipairs { "cpu:0", "cuda:0" } do
        local pipe <close> = pipe_on(small(), device)
        steps(pipe, optim[kind[1]](pipe:parameters(), kind[2]), 3)
        states[k] = pipe:state_dict()
      end
      for name, value in pairs(states[1]) do
        local apart = ((value - states[2][name]:to "cpu") ^ 2):sum():item() ^ 0.5
        assert(apart < 1e-5, ("%s: %g apart"):format(name, apart))
      end
    end)
  end
end)

describe("clip_grad_norm", function()
  on_gpu("gives the norm that the CPU gives, and clips gradients on several devices as one",
    function()
    local function norms(devices, balance)
      local pipe <close> = pipe_of(devices, balance)
      pipe:step(x, y)
      local params = pipe:parameters()
      return optim.clip_grad_norm(params, 0.01), optim.clip_grad_norm(params, 0.01)
    end
    local before = norms({ "cpu:0" }, { 7 })
    for _, devices in ipairs { { "cuda:0", "cuda:0" }, { "cpu:0", "cuda:0" } } do
      local first, second = norms(devices, { 3, 4 })
      assert.is_true(math.abs(first - before) < 1e-5 * before)
      assert.is_true(math.abs(second - 0.01) < 1e-7)
    end
  end)
end)

describe("forward and backward", function()
  on_gpu("serve loops that compute the loss themselves", function()
    local function gradients(devices, balance)
      local pipe <close> = pipe_of(devices, balance)
      local out = pipe:forward(x)
      pipe:backward(gp.ones(out.shape) * 0.5)
      return out:to "cpu", pipe:parameters()[1].grad:to "cpu"
    end
    local out, grad = gradients({ "cuda:0" }, { 7 })
    local same, equal = gradients({ "cuda:0", "cuda:0" }, { 3, 4 })
    assert.is_true(gp.equal(out, same))
    assert.is_true(gp.equal(grad, equal))
  end)

  on_gpu("take batches that lie on a GPU already", function()
    local pipe <close> = pipe_of({ "cuda:0", "cuda:0" }, { 3, 4 })
    local wanted = pipe:evaluate(x, y)
    assert.equal(wanted, pipe:evaluate(x:to "cuda:0", y:to "cuda:0"))
  end)
end)

-- ---- tensors of the script ----------------------------------------------------------------------

describe("a tensor on a GPU", function()
  on_gpu("sums integers without rounding, in lines and in columns", function()
    local most = { i64 = 2 ^ 53 // 1 + 1, i32 = 2 ^ 31 // 1 - 1, u8 = 255, bool = 1 }
    for dtype, value in pairs(most) do
      local t = gp.full({ 5, 40 }, value, { dtype = dtype }):to "cuda:0"
      assert.equal(200 * value, t:sum():item(), dtype)
      assert.same({ 5 * value, 40 }, { t:sum(1)[40], #t:sum(1) }, dtype)
      assert.same({ 40 * value, 5 }, { t:sum(2)[5], #t:sum(2) }, dtype)
    end
  end)

  on_gpu("can be read element by element, written, printed, copied back", function()
    local t = gp.tensor({ { 1, 2 }, { 3, 4 } }, { device = "cuda:0" })
    assert.equal("cuda:0", t.device)
    assert.equal(3, t[2][1])
    t[2][1] = 7
    assert.same({ { 1, 2 }, { 7, 4 } }, t:totable())
    assert.equal(tostring(t:to "cpu"), tostring(t))
    assert.equal(14, t:sum():item())
    assert.same({ { 1, 7 }, { 2, 4 } }, t:transpose(1, 2):contiguous():totable())
  end)

  on_gpu("moves through every dtype", function()
    for _, dtype in ipairs { "f32", "f64", "bf16", "f16", "i64", "i32", "u8", "bool" } do
      local here = gp.tensor { 0, 1, 1, 0, 1 }:to(dtype)
      local there = here:to "cuda:0"
      assert.equal(dtype, there.dtype)
      assert.is_true(gp.equal(here, there:to "cpu"), dtype)
      assert.same({ 0, 1, 1, 0, 1 }, there:to("f32"):totable())
    end
  end)

  on_gpu("cannot be mixed with one elsewhere: the error says how to move it", function()
    local t = gp.ones({ 2 }, { device = "cuda:0" })
    fails_with("; move one with :to(\"cuda:0\")", function() return t + gp.ones { 2 } end)
  end)

  on_gpu("moves to the other GPU and back", function()
    local t = gp.randn({ 33, 7 }, { seed = 1 })
    assert.is_true(gp.equal(t, t:to("cuda:0"):to("cuda:1"):to("cuda:0"):to "cpu"))
  end, 2)
end)
