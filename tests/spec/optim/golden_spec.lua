-- tests/spec/optim/golden_spec.lua - optimizers and schedules agree with what PyTorch computed
-- (tests/golden/optim.py).
local gp = require "gpipe"
local golden = require "tests.golden.optim"

local COUNT, STEPS, SHOWN = 11, 20, { 1, 2, 20 }

-- numbers() of tests/golden/layers.py: rounded to f32 there.
local function numbers(k, scale, dtype)
  local list = {}
  for i = 0, COUNT - 1 do
    local raw = ((31 * i * i + 7919 * i + 104729 * k) % 1009) / 1009
    list[i + 1] = (scale or 1) * (2 * raw - 1)
  end
  return gp.tensor(list, { dtype = "f64" }):to("f32"):to(dtype)
end

local Line = gp.nn.class "Line"
function Line:init(dtype) self.w = gp.nn.Parameter({ COUNT }, gp.nn.init.zeros(), { dtype = dtype }) end

local function follow(case, dtype, want, bound)
  local line = Line(dtype)
  local params = line:parameters()
  params[1].value:copy_(numbers(1, 1, dtype))
  local opt, shown = gp.optim[case[1]](params, case[2]), 1
  for step = 1, STEPS do
    opt:zero_grad()
    local product = line.w * numbers(1 + step, 0.3, dtype)
    product:sum():backward()
    opt:step()
    if step == SHOWN[shown] then
      local list = gp.tensor(want[shown], { dtype = "f64" })
      local off = (params[1].value:to "f64" - list):abs():max():item()
      assert(off <= bound, ("step %d in %s is off by %g"):format(step, dtype, off))
      shown = shown + 1
    end
  end
  return opt
end

for i, case in ipairs(golden.optimizers) do
  it(("%s (%d) makes the steps of PyTorch"):format(case[1], i), function()
    follow(case, "f32", case[3], 2e-7)
    follow(case, "f64", case[4], 5e-16)
  end)
end

-- numbers() of a shape.
local function shaped(k, scale, dtype, shape)
  local count, list = 1, {}
  for _, size in ipairs(shape) do count = count * size end
  for i = 0, count - 1 do
    local raw = ((31 * i * i + 7919 * i + 104729 * k) % 1009) / 1009
    list[i + 1] = scale * (2 * raw - 1)
  end
  return gp.tensor(list, { dtype = "f64" }):to("f32"):to(dtype):reshape(shape)
end

local Held = gp.nn.class "Held"
function Held:init(value)
  self.w = gp.nn.Parameter(value.shape, value, { dtype = value.dtype })
end

for i, case in ipairs(golden.whole) do
  it(("%s of whole matrices (%d) makes the steps of PyTorch"):format(case[1], i), function()
    for k, dtype in ipairs { "f32", "f64" } do
      local held = Held(shaped(1, 1, dtype, case[2]))
      local opt = gp.optim[case[1]](held:parameters(), case[3])
      for step = 1, 5 do
        opt:zero_grad();
        (held.w * shaped(1 + step, 0.3, dtype, case[2])):sum():backward()
        opt:step()
      end
      local want = gp.tensor(case[3 + k], { dtype = "f64" })
      local off = (held.w:value():reshape(-1):to "f64" - want):abs():max():item()
      assert(off <= ({ 2e-6, 1e-13 })[k], ("%s is off by %g"):format(dtype, off))
    end
  end)
end

for _, case in ipairs(golden.rates) do
  it(("%s gives the rates of PyTorch"):format(case[1]), function()
    local lr = load("return gp.optim.schedule." .. case[1], "=case", "t", { gp = gp })()
    local plateau = case[1]:find "^plateau"
    for step, want in ipairs(case[2]) do
      assert.near(want, lr(plateau and golden.metrics[step] or step), 1e-15)
    end
  end)
end

it("a plateau goes on from its state", function()
  local function make() return gp.optim.schedule.plateau { max = 1, patience = 1, factor = 0.5 } end
  local a, b = make(), make()
  for _ = 1, 2 do a(3) end
  b:load_state_dict(a:state_dict())
  for _ = 1, 5 do assert.equal(a(3), b(3)) end
  assert.is_false(pcall(b.load_state_dict, b, { lr = 1 }))
  assert.is_false(pcall(a, "3"))
end)

describe("RMSprop, Adagrad and Lion", function()
  local KINDS = {
    { "RMSprop", {}, 1 }, { "RMSprop", { momentum = 0.9, weight_decay = 0.1 }, 2 },
    { "RMSprop", { centered = true, momentum = 0.9, eps = 0.01 }, 3 },
    { "Adagrad", { initial_accumulator_value = 0.1 }, 1 },
    { "Lion", { lr = 0.01, weight_decay = 0.1 }, 1 },
  }
  local x, y = gp.randn({ 7, 5 }, { seed = 1 }), gp.randn({ 7, 3 }, { seed = 2 })

  local function model_of()
    gp.seed(3)
    local nn = gp.nn
    return nn.Sequential { nn.Linear(5, 33), nn.Tanh(), nn.Linear(33, 7), nn.ReLU(), nn.Linear(7, 3) }
  end

  -- Returns the state after four steps; it is saved and loaded after the second.
  local function state_after(kind, balance, used, resumed)
    local model = model_of()
    local pipe <close> = gp.pipeline(model, { loss = gp.nn.MSELoss(), chunks = 3, balance = balance })
    local opt = gp.optim[kind[1]](pipe:parameters(), kind[2])
    if used then pipe:use(opt) end
    for step = 1, 4 do
      pipe:step(x, y)
      if not used then opt:step() end
      if resumed and step == 2 then
        local state = opt:state_dict()
        opt = gp.optim[kind[1]](pipe:parameters(), kind[2])
        opt:load_state_dict(state)
      end
    end
    local state, moments = opt:state_dict(), 0
    for name in pairs(state) do moments = moments + (name:find "^1.bias.moment" and 1 or 0) end
    for name, value in pairs(pipe:state_dict()) do state[name] = value end
    return state, moments
  end

  for _, kind in ipairs(KINDS) do
    it(("have the same bits for every cut and update: %s, %d moments"):format(kind[1], kind[3]),
      function()
      local want, moments = state_after(kind, { 5 })
      assert.equal(kind[3], moments)
      for _, way in ipairs { { { 2, 3 } }, { { 1, 2, 2 }, true }, { { 2, 3 }, false, true } } do
        for name, value in pairs(state_after(kind, table.unpack(way))) do
          assert.is_true(gp.equal(want[name], value), name)
        end
      end
    end)
  end
end)

describe("clip_grad_value", function()
  it("clamps every element of the gradients", function()
    local model = gp.nn.Sequential { gp.nn.Linear(3, 2) }
    local pipe <close> = gp.pipeline(model, { loss = gp.nn.MSELoss() })
    pipe:step(gp.randn({ 5, 3 }, { seed = 1 }), gp.randn({ 5, 2 }, { seed = 2 }) * 10)
    local before = pipe:parameters()[1].grad:clone()
    assert.is_true(before:abs():max():item() > 0.5)
    gp.optim.clip_grad_value(pipe:parameters(), 0.5)
    assert.is_true(gp.equal(before:clamp(-0.5, 0.5), pipe:parameters()[1].grad))
    assert.is_false(pcall(gp.optim.clip_grad_value, pipe:parameters(), 0))
    assert.is_false(pcall(gp.optim.clip_grad_value, 1, 1))
  end)
end)
