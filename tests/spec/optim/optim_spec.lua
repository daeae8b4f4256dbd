-- tests/spec/optim/optim_spec.lua - optimizers agree with their formulas; groups, state, schedules,
-- clipping.
local gp = require "gpipe"
local core = require "gpipe.core"
local errors = require "gpipe.errors"
local nn, optim = gp.nn, gp.optim

local function raised(f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  return text
end

local function model_of(seed)
  gp.seed(seed or 1)
  return nn.Sequential { nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2) }
end

local has_pipeline = pcall(require, "gpipe.pipeline")

-- ---- formulas, element by element --------------------------------------------------------------

-- Each returns the value after step t from value p, gradient g and the element's own state s.
local formulas = {
  SGD = function(o, _, p, g, s)
    local d = g + (o.weight_decay or 0) * p
    if (o.momentum or 0) > 0 then
      s.m = s.m and o.momentum * s.m + d or d
      d = o.nesterov and d + o.momentum * s.m or s.m
    end
    return p - o.lr * d
  end,
  Adam = function(o, t, p, g, s)
    local b1, b2 = o.betas[1], o.betas[2]
    g = g + (o.weight_decay or 0) * p
    s.m, s.v = b1 * (s.m or 0) + (1 - b1) * g, b2 * (s.v or 0) + (1 - b2) * g * g
    return p - o.lr * (s.m / (1 - b1 ^ t)) / (math.sqrt(s.v / (1 - b2 ^ t)) + o.eps)
  end,
}
function formulas.AdamW(o, t, p, g, s)
  local plain = { lr = o.lr, betas = o.betas, eps = o.eps }
  return formulas.Adam(plain, t, p * (1 - o.lr * o.weight_decay), g, s)
end

local function flat(tensor) return tensor:reshape { -1 }:totable() end

-- Trains three steps and compares every element after each of them.
local function follow(kind, opts)
  local model = model_of()
  local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
  local params = pipe:parameters()
  local opt = optim[kind](params, opts)
  local x, y = gp.randn({ 8, 3 }, { seed = 1 }), gp.randn({ 8, 2 }, { seed = 2 })
  local states = {}
  for t = 1, 3 do
    pipe:step(x, y)
    local before, grads = {}, {}
    for k, p in ipairs(params) do before[k], grads[k] = flat(p.value), flat(p.grad) end
    opt:step()
    for k, p in ipairs(params) do
      local after = flat(p.value)
      for i, value in ipairs(after) do
        local s = states[p.name .. i] or {}
        states[p.name .. i] = s
        assert.near(formulas[kind](opts, t, before[k][i], grads[k][i], s), value, 2e-6)
      end
    end
  end
end

describe("an optimizer", function()
  -- The stage with few parameters waits long for the other one, without a run to watch over it.
  it("may step before its pipeline has run", function()
    local pipe <close> = gp.pipeline(gp.nn.Sequential { gp.nn.Linear(1, 1), gp.nn.Linear(2000, 2000) },
      { balance = { 1, 1 }, devices = { "cpu:0", "cpu:1" }, loss = gp.nn.MSELoss() })
    local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
    local before = pipe:state_dict()["1.weight"]
    opt:step()
    assert.is_true(gp.equal(before, pipe:state_dict()["1.weight"]))
  end)

  local cases = {
    { "SGD", { lr = 0.1 } },
    { "SGD", { lr = 0.1, momentum = 0.9, weight_decay = 0.01 } },
    { "SGD", { lr = 0.1, momentum = 0.9, nesterov = true } },
    { "Adam", { lr = 0.01, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = 0.1 } },
    { "AdamW", { lr = 0.01, betas = { 0.8, 0.95 }, eps = 1e-6, weight_decay = 0.1 } },
  }
  for i, case in ipairs(cases) do
    it(("follows the formula of %s (%d)"):format(case[1], i), function()
      if not has_pipeline then return pending("no pipeline yet") end
      follow(case[1], case[2])
    end)
  end

  it("updates groups by their own settings and leaves frozen parameters alone", function()
    if not has_pipeline then return pending("no pipeline yet") end
    local model = model_of():freeze("^3%.bias$")
    local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
    local opt = optim.SGD({
      { params = pipe:parameters("weight$"), lr = 0 }, { params = pipe:parameters("bias$") },
    }, { lr = 0.1 })
    local before = pipe:state_dict()
    pipe:step(gp.ones { 4, 3 }, gp.ones { 4, 2 })
    opt:step()
    local after, moved = pipe:state_dict(), {}
    for name, value in pairs(after) do
      if not gp.equal(value, before[name]) then moved[#moved + 1] = name end
    end
    assert.same({ "1.bias" }, moved)
  end)

  -- When a frozen parameter between two values is gone, the values are adjacent; their moments are
  -- not.
  it("keeps each parameter's moments when the pipeline is made anew with another one frozen",
    function()
    local x, y = gp.randn({ 8, 3 }, { seed = 1 }), gp.randn({ 8, 2 }, { seed = 2 })
    local function state_after(fresh)
      local model = model_of()
      local opt
      do
        local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
        opt = optim.Adam(pipe:parameters(), { lr = 0.1 })
        pipe:step(x, y)
        opt:step()
      end
      local state = opt:state_dict()
      model:freeze("^1%.bias$")
      local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
      if fresh then
        opt = optim.Adam(model:parameters(), { lr = 0.1 })
        state["1.bias.moment1"], state["1.bias.moment2"] = nil, nil
        opt:load_state_dict(state)
      end
      for _ = 1, 2 do pipe:step(x, y) opt:step() end
      local result = opt:state_dict()
      for name, value in pairs(pipe:state_dict()) do result[name] = value end
      return result
    end
    local straight, fresh = state_after(false), state_after(true)
    for name, value in pairs(fresh) do assert.is_true(gp.equal(value, straight[name]), name) end
  end)

  it("goes on with the same bits after its state was saved and loaded", function()
    if not has_pipeline then return pending("no pipeline yet") end
    local x, y = gp.randn({ 8, 3 }, { seed = 1 }), gp.randn({ 8, 2 }, { seed = 2 })
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local function run(steps, resume_at)
      local model = model_of()
      local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss() })
      local opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
      for step = 1, steps do
        pipe:step(x, y)
        opt:step()
        if step == resume_at then
          assert(gp.save(path, opt:state_dict()))
          opt = optim.AdamW(pipe:parameters(), { lr = 0.01 })
          opt:load_state_dict((assert(gp.load(path))))
        end
      end
      return pipe:state_dict()
    end
    local straight, resumed = run(5), run(5, 2)
    for name, value in pairs(straight) do assert.is_true(gp.equal(value, resumed[name]), name) end
  end)
end)

-- ---- settings ----------------------------------------------------------------------------------

describe("settings", function()
  it("are read from the group, then from the optimizer, and can be set on both", function()
    local model = model_of()
    local opt = optim.AdamW({
      { params = model:parameters("weight$"), weight_decay = 0.5 },
      { params = model:parameters("bias$"), lr = 0.25 },
    }, { lr = 0.125 })
    assert.equal(0.125, opt.lr)
    assert.equal(0.125, opt.groups[1].lr)
    assert.equal(0.25, opt.groups[2].lr)
    assert.same({ 0.5, 0.01 }, { opt.groups[1].weight_decay, opt.groups[2].weight_decay })
    opt.lr = 1
    opt.groups[2].lr = 2
    assert.same({ 1, 2 }, { opt.groups[1].lr, opt.groups[2].lr })
    assert.equal(2, #opt.groups[1].params)
    assert.equal("AdamW(4 parameters in 2 groups, lr 1, step 0)", tostring(opt))
  end)

  local p = function(pattern) return model_of():parameters(pattern) end
  local model = model_of()
  local frozen = model_of():freeze(".")
  local wrong = {
    { function() optim.SGD(p(), { lr = -1 }) end, "option 'lr' is -1, expected a number >= 0" },
    { function() optim.SGD(p(), { lr = 0 / 0 }) end, "option 'lr' is nan (float)" },
    { function() optim.SGD(p(), { lr = math.huge }) end, "expected a finite number" },
    { function() optim.SGD(p(), { lr = 1, momentun = 1 }) end, "(did you mean 'momentum'?)" },
    { function() optim.SGD(p(), { lr = 1, nesterov = true }) end,
      "optim.SGD: nesterov is true and momentum is 0, expected momentum > 0" },
    { function() optim.Adam(p(), { lr = 1, betas = { 0.9, 1 } }) end, "number 2 is 1" },
    { function() optim.Adam(p(), { lr = 1, betas = { 0.9 } }) end, "number 2 is nil" },
    { function() optim.Adam(p(), { lr = 1, betas = { 0.9, 0.9, 0.9 } }) end,
      "expected two numbers" },
    { function() optim.AdamW(p(), { lr = 1, weight_decay = -0.1 }) end,
      "option 'weight_decay' is -0.1" },
    { function() optim.AdamW(p(), { lr = 1, eps = "x" }) end, "option 'eps' is \"x\" (string)" },
    { function() optim.AdamW(nil, { lr = 1 }) end,
      "params is nil, expected a list such as pipe:parameters()" },
    { function() optim.AdamW(model, { lr = 1 }) end, "expected a list such as pipe:parameters()" },
    { function() optim.AdamW({}, { lr = 1 }) end,
      "there is nothing to train: the list of parameters is empty" },
    { function() optim.AdamW(frozen:parameters(), { lr = 1 }) end, "all parameters are frozen" },
    { function() optim.AdamW({ gp.ones { 2 } }, { lr = 1 }) end,
      "element 1 of params is a tensor" },
    { function() optim.SGD({ { params = model:parameters() },
      { params = model:parameters("bias$") } },
      { lr = 1 }) end, "parameter '1.bias' is in two groups, 1 and 2" },
    { function() optim.SGD({ { params = p(), momentun = 1 } }, { lr = 1 }) end,
      "optim.SGD: group 1: unknown option 'momentun' (did you mean 'momentum'?)" },
    { function() optim.SGD(p(), { lr = 1 }).lr = -1 end,
      "optim.SGD: lr is -1, expected a number >= 0" },
    { function() optim.SGD(p(), { lr = 1 }).lr = nil end, "optim.SGD: lr is missing" },
    { function() optim.SGD(p(), { lr = 1 }).momentum = 0.9 end, "momentum cannot change after" },
    { function() optim.SGD(p(), { lr = 1 }).rl = 0.9 end, "there is no setting 'rl'" },
  }
  for _, case in ipairs(wrong) do
    it("are refused where they are wrong: " .. case[2], function()
      assert.truthy(raised(case[1]):find(case[2], 1, true))
    end)
  end
end)

-- ---- state -------------------------------------------------------------------------------------

describe("parameters of two pipelines", function()
  it("are refused in one optimizer, which then changes none of them", function()
    local x, y = gp.ones { 8, 3 }, gp.ones { 8, 2 }
    local one <close> = gp.pipeline(model_of(1), { loss = nn.MSELoss() })
    local other = nn.Sequential { { "only", nn.Linear(3, 2) } }
    local two <close> = gp.pipeline(other, { loss = nn.MSELoss() })
    local both = {}
    for _, pipe in ipairs { one, two } do
      pipe:step(x, y)
      for _, p in ipairs(pipe:parameters()) do both[#both + 1] = p end
    end
    local opt, before = optim.SGD(both, { lr = 0.1 }), { one:state_dict(), two:state_dict() }
    assert.equal("state", errors.code_of(raised(opt.step, opt)))
    for k, pipe in ipairs { one, two } do
      for name, value in pairs(pipe:state_dict()) do
        assert.is_true(gp.equal(before[k][name], value), name)
      end
    end
  end)
end)

describe("the state of an optimizer", function()
  it("has all moments, or is an error where one cannot be allocated", function()
    local pipe <close> = gp.pipeline(model_of(), { loss = nn.MSELoss() })
    local opt = optim.Adam(pipe:parameters(), { lr = 0.1 })
    pipe:step(gp.ones { 8, 3 }, gp.ones { 8, 2 })
    opt:step()
    local wanted, failures = opt:state_dict(), 0
    for n = 1, 60 do
      core.memory_fail_at(n)
      local good, state = pcall(opt.state_dict, opt)
      core.memory_fail_at(0)
      failures = failures + (good and 0 or 1)
      if not good then assert.equal("memory", errors.code_of(state)) end
      for name, value in pairs(good and wanted or {}) do
        assert(state[name] and gp.equal(value, state[name]), ("%d: %s"):format(n, name))
      end
    end
    assert(failures > 0)
  end)

  local function names_of(opt)
    local names = {}
    for name in pairs(opt:state_dict()) do names[#names + 1] = name end
    table.sort(names)
    return table.concat(names, " ")
  end

  it("has the moments under the parameters' names, and the step", function()
    local one = nn.Linear(3, 2)
    local opts = { lr = 1 }
    assert.equal("step", names_of(optim.SGD(one:parameters(), opts)))
    assert.equal("bias.moment1 step weight.moment1",
      names_of(optim.SGD(one:parameters(), { lr = 1, momentum = 0.9 })))
    assert.equal("bias.moment1 bias.moment2 step weight.moment1 weight.moment2",
      names_of(optim.Adam(one:parameters(), opts)))
    assert.equal("step weight.moment1 weight.moment2",
      names_of(optim.Adam(nn.Linear(3, 2):freeze("bias"):parameters(), opts)))
  end)

  it("is loaded as it was saved, in copies", function()
    local opt = optim.Adam(nn.Linear(3, 2):parameters(), { lr = 1 })
    local given = opt:state_dict()
    given["weight.moment1"] = gp.ones { 2, 3 }
    given.step = gp.tensor(41, { dtype = "i64" })
    opt:load_state_dict(given)
    given["weight.moment1"]:copy_(0)
    local state = opt:state_dict()
    assert.equal(41, state.step:item())
    assert.is_true(gp.equal(gp.ones { 2, 3 }, state["weight.moment1"]))
    assert.is_true(gp.equal(gp.zeros { 2, 3 }, state["weight.moment2"]))
  end)

  it("is refused with all faults at once, and nothing is changed", function()
    local opt = optim.Adam(nn.Linear(3, 2):parameters(), { lr = 1 })
    local given = opt:state_dict()
    given.step = gp.tensor(41, { dtype = "i64" })
    given["weight.moment1"] = gp.ones { 3, 2 }
    given["bias.moment1"] = nil
    given.extra = gp.ones { 1 }
    local text = raised(opt.load_state_dict, opt, given)
    for _, part in ipairs { "weight.moment1", "missing: bias.moment1", "unexpected: extra" } do
      assert.truthy(text:find(part, 1, true))
    end
    assert.equal(0, opt:state_dict().step:item())
    local negative = opt:state_dict()
    negative.step = gp.tensor(-1, { dtype = "i64" })
    assert.truthy(raised(opt.load_state_dict, opt, negative):find("step is -1", 1, true))
    negative.step = gp.tensor(math.maxinteger, { dtype = "i64" }) -- the next step would overflow
    assert.truthy(raised(opt.load_state_dict, opt, negative):find(tostring(math.maxinteger), 1,
      true))
  end)
end)

-- ---- schedules ---------------------------------------------------------------------------------

describe("schedules", function()
  local s = optim.schedule
  local cases = {
    { "constant", s.constant { max = 2, warmup = 4 }, { [0] = 0, 0.5, 1, 1.5, 2, 2 } },
    { "constant from a number", s.constant(0.5), { [0] = 0.5, 0.5 } },
    { "linear", s.linear { steps = 4, max = 1 }, { [0] = 1, 0.75, 0.5, 0.25, 0, 0 } },
    { "linear with warm-up", s.linear { steps = 6, warmup = 2, max = 1, min = 0.2 },
      { 0.5, 1, 0.8, 0.6, 0.4, 0.2, 0.2 } },
    { "cosine", s.cosine { steps = 4, max = 1, min = 0.5 },
      { [0] = 1, 0.75 + 0.25 * math.sqrt(0.5), 0.75, 0.75 - 0.25 * math.sqrt(0.5), 0.5, 0.5 } },
    { "cosine with warm-up", s.cosine { steps = 4, warmup = 2, max = 1 }, { 0.5, 1, 0.5, 0 } },
    { "step", s.step { max = 1, every = 2, factor = 0.5 }, { 1, 1, 0.5, 0.5, 0.25 } },
    { "warmup", s.warmup { steps = 2, max = 1 }, { 0.5, 1, 1 } },
    { "warmup of another", s.warmup { steps = 4, schedule = s.constant(2) },
      { 0.5, 1, 1.5, 2, 2 } },
  }
  for _, case in ipairs(cases) do
    it("follow their formula: " .. case[1], function()
      for step, lr in pairs(case[3]) do assert.near(lr, case[2](step), 1e-12) end
    end)
  end

  local wrong = {
    { function() s.cosine { steps = 10 } end, "schedule.cosine: missing option 'max'" },
    { function() s.cosine { step = 10, max = 1 } end, "(did you mean 'steps'?)" },
    { function() s.linear { steps = 10, warmup = 11, max = 1 } end,
      "warmup is 11 steps of 10 in all" },
    { function() s.step { max = 1, every = 0 } end, "option 'every' is 0" },
    { function() s.warmup { steps = 1 } end, "expected one of max and schedule" },
    { function() s.constant(1)() end, "schedule: step is nil, expected a number" },
  }
  for _, case in ipairs(wrong) do
    it("are refused where they are wrong: " .. case[2], function()
      assert.truthy(raised(case[1]):find(case[2], 1, true))
    end)
  end
end)

describe("optim.clip_grad_norm", function()
  it("returns the norm before and scales down to max", function()
    if not has_pipeline then return pending("no pipeline yet") end
    local pipe <close> = gp.pipeline(model_of(), { loss = nn.MSELoss() })
    pipe:step(gp.ones { 4, 3 }, gp.full({ 4, 2 }, 100))
    local function norm()
      local sum = 0
      for _, p in ipairs(pipe:parameters()) do
        for _, g in ipairs(flat(p.grad)) do sum = sum + g * g end
      end
      return math.sqrt(sum)
    end
    local before = norm()
    assert.near(before, optim.clip_grad_norm(pipe:parameters(), math.huge), before * 1e-6)
    assert.near(before, optim.clip_grad_norm(pipe:parameters(), 1), before * 1e-6)
    assert.near(1, norm(), 1e-5)
    assert.near(1, optim.clip_grad_norm(pipe:parameters(), 10), 1e-5)
    assert.near(1, norm(), 1e-5)
  end)

  local function stepped(stages)
    gp.seed(5)
    local layers, balance = {}, {}
    for i = 1, 3 do layers[i] = nn.Linear(4, 4) end
    for i = 1, stages do balance[i] = 3 // stages end
    local pipe = gp.pipeline(nn.Sequential(layers), { balance = balance, loss = nn.MSELoss() })
    pipe:step(gp.randn({ 6, 4 }, { seed = 1 }), gp.randn({ 6, 4 }, { seed = 2 }))
    return pipe
  end
  local function grads(pipe)
    local list = {}
    for i, p in ipairs(pipe:parameters()) do list[i] = p.grad:clone() end
    return list
  end

  it("gives the same bits whatever the cut", function()
    local one <close> = stepped(1)
    local three <close> = stepped(3)
    assert.equal(optim.clip_grad_norm(one:parameters(), 0.01),
      optim.clip_grad_norm(three:parameters(), 0.01))
    local a, b = grads(one), grads(three)
    for i = 1, #a do assert.is_true(gp.equal(a[i], b[i])) end
  end)

  it("takes some of the parameters, of several models too, and one that is named twice", function()
    local one <close> = stepped(1)
    local three <close> = stepped(3)
    local a, before = one:parameters(), grads(three)
    local b = three:parameters()
    local sum = 0
    for _, g in ipairs { a[2].grad, a[5].grad, before[1], before[3] } do
      sum = sum + (g * g):sum():item()
    end
    local kept, scaled = a[1].grad:clone(), a[5].grad:clone()
    local norm = optim.clip_grad_norm({ a[5], a[2], b[3], b[1] }, 1e-3)
    assert.near(math.sqrt(sum), norm, 1e-6)
    assert.is_true(gp.equal(kept, a[1].grad))
    assert.near(scaled:sum():item() * 1e-3 / norm, a[5].grad:sum():item(), 1e-7)
    assert.is_true(gp.equal(before[2], b[2].grad))
    local left = b[3].grad:clone()
    norm = optim.clip_grad_norm({ b[3], b[3] }, 1e-5)
    assert.near(left:sum():item() * 1e-5 / norm, b[3].grad:sum():item(), 2e-8)
  end)

  it("refuses wrong arguments", function()
    assert.truthy(raised(optim.clip_grad_norm, {}, 0):find("max is 0, expected a number > 0", 1,
      true))
    assert.truthy(raised(optim.clip_grad_norm, nil, 1):find("params is nil", 1, true))
  end)
end)
