-- tests/spec/optim/whole_spec.lua - optimizers that read whole matrices, in pipelines: any cut
-- gives the same bits, states go on, and gradients that are not finite change nothing.

local gp = require "gpipe"
local failure = dofile("tests/support/expect.lua").failure

local nn, optim = gp.nn, gp.optim
local X, Y = gp.randn({ 8, 6 }, { seed = 1 }), gp.randn({ 8, 3 }, { seed = 2 })

local function model()
  gp.seed(3)
  return nn.Sequential { nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3) }
end

local function matrices(list)
  local kept = {}
  for _, p in ipairs(list) do
    if #p.value.shape == 2 then kept[#kept + 1] = p end
  end
  return kept
end

local MAKE = {
  Muon = function(params) return optim.Muon(matrices(params), { lr = 0.05 }) end,
  Adafactor = function(params) return optim.Adafactor(params, { lr = 0.05 }) end,
}

local function opened(name, stages, opts)
  local given = { loss = nn.MSELoss(), balance = stages, devices = {}, chunks = 2 }
  for d = 1, #stages do given.devices[d] = "cpu:0" end
  for key, value in pairs(opts or {}) do given[key] = value end
  local pipe = gp.pipeline(model(), given)
  return pipe, MAKE[name](pipe:parameters())
end

local function train(pipe, opt, steps)
  local loss
  for _ = 1, steps do
    loss = pipe:step(X, Y)
    opt:step()
  end
  return loss
end

for name in pairs(MAKE) do
  describe(name, function()
    it("learns, with the same bits whatever the cut", function()
      local first, want
      for _, stages in ipairs { { 3 }, { 1, 2 }, { 1, 1, 1 } } do
        local pipe, opt = opened(name, stages)
        first = first or train(pipe, opt, 1)
        if opt.lr then train(pipe, opt, want and 30 or 29) end
        local state = pipe:state_dict()
        for key, value in pairs(want or {}) do assert.is_true(gp.equal(value, state[key]), key) end
        want = want or state
        assert.is_true(pipe:evaluate(X, Y) < 0.8 * first)
        pipe:close()
      end
    end)

    it("goes on from its state, and from a checkpoint of another cut", function()
      local pipe <close>, opt = opened(name, { 3 })
      train(pipe, opt, 5)
      local dir = os.tmpname()
      os.remove(dir)
      assert(gp.checkpoint.save(dir, { pipe = pipe, opt = opt }))
      local state, weights = opt:state_dict(), pipe:state_dict()
      local want = train(pipe, opt, 3)

      local other <close>, also = opened(name, { 1, 2 })
      assert(gp.checkpoint.load(dir, { pipe = other, opt = also }))
      assert.equal(want, train(other, also, 3))

      local third <close>, last = opened(name, { 2, 1 })
      third:load_state_dict(weights)
      last:load_state_dict(state)
      assert.equal(want, train(third, last, 3))
      os.execute(("rm -r '%s'"):format(dir))
    end)

    it("updates nothing where gradients are not finite", function()
      local pipe <close>, opt = opened(name, { 1, 2 }, { finite = "ignore" })
      train(pipe, opt, 2)
      local before = pipe:state_dict()
      pipe:step(X * math.huge, Y)
      opt:step()
      for key, value in pairs(pipe:state_dict()) do
        assert.is_true(gp.equal(value, before[key]), key)
      end
      train(pipe, opt, 1)
    end)

    it("updates in bf16 and f16 pipelines", function()
      for _, precision in ipairs { "bf16", "f16" } do
        local pipe <close>, opt = opened(name, { 1, 2 }, { precision = precision })
        train(pipe, opt, 2)
        local before = pipe:evaluate(X, Y)
        train(pipe, opt, 20)
        assert.is_true(pipe:evaluate(X, Y) < before)
      end
    end)

    it("steps eagerly, with rates of a schedule, and is refused by pipe:use", function()
      local m = model()
      local opt = MAKE[name](m:parameters())
      opt.lr = 0
      opt.weight_decay = 0
      nn.MSELoss()(m(X), Y):backward()
      local before = m:state_dict()
      opt:step()
      for key, value in pairs(m:state_dict()) do
        assert.is_true(gp.equal(value, before[key]), key)
      end
      local pipe <close>, used = opened(name, { 3 })
      assert.matches("optim%." .. name .. " looks at whole matrices", failure(function()
        pipe:use(used)
      end))
    end)
  end)
end

describe("wrong settings", function()
  local m = model()
  for text, call in pairs {
    ["expected matrices alone"] = function() optim.Muon(m:parameters()) end,
    ["three numbers"] = function()
      optim.Muon(matrices(m:parameters()), { ns_coefficients = { 1, 2 } })
    end,
    ["ns_steps"] = function() optim.Muon(matrices(m:parameters()), { ns_steps = 100 }) end,
    ["adjust_lr_fn"] = function() optim.Muon(matrices(m:parameters()), { adjust_lr_fn = "x" }) end,
    ["two numbers"] = function() optim.Adafactor(m:parameters(), { eps = { 1 } }) end,
    ["beta2_decay"] = function() optim.Adafactor(m:parameters(), { beta2_decay = 1 }) end,
    ["no parameter has a gradient"] = function() optim.Adafactor(m:parameters()):step() end,
  } do
    it(text, function() assert.matches(text, failure(call), 1, true) end)
  end
end)
