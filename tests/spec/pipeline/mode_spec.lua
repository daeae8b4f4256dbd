-- tests/spec/pipeline/mode_spec.lua - a part that was switched to evaluation stays so in steps.

local gp = require "gpipe"

local nn = gp.nn

local function make()
  return nn.Sequential { nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2) }
end

local x, y = gp.randn({ 6, 3 }, { seed = 1 }), gp.randn({ 6, 2 }, { seed = 2 })

local function batches(model) return model[2].num_batches_tracked:value():item() end

-- Returns the gradients of a step, by the names of their parameters.
local function gradients_after(model, balance)
  local devices = {}
  for i = 1, #balance do devices[i] = "cpu:0" end
  local pipe <close> = gp.pipeline(model, {
    loss = nn.MSELoss(), balance = balance, devices = devices,
  })
  local loss, found = pipe:step(x, y), {}
  for _, p in ipairs(pipe:parameters()) do found[p.name] = p.grad:clone() end
  return loss, found
end

describe("a part that was switched to evaluation", function()
  it("stays so in steps, whatever was planned before, until it is switched back", function()
    local model = make()
    local pipe <close> = gp.pipeline(model, { loss = nn.MSELoss(), balance = { 2, 2 },
      devices = { "cpu:0", "cpu:0" } })
    local counts = {}
    local function step()
      pipe:step(x, y)
      counts[#counts + 1] = batches(model)
    end
    step()
    model[2]:eval()
    step()
    step()
    model[2]:train()
    step()
    model[2].training = false
    step()
    assert.are.same({ 1, 1, 1, 2, 2 }, counts)
  end)

  it("computes what the same part computes eagerly, cut or not", function()
    local model = make()
    for i = 2, 3 do model[i]:eval() end
    local state = model:state_dict()
    local loss = nn.MSELoss()(model(x), y)
    loss:backward()
    local eager = {}
    for _, p in ipairs(model:parameters()) do eager[p.name] = p.grad:clone() end
    for _, balance in ipairs { { 4 }, { 1, 1, 2 } } do
      local other = make()
      for i = 2, 3 do other[i]:eval() end
      other:load_state_dict(state)
      local value, found = gradients_after(other, balance)
      assert.is_true(math.abs(loss:item() - value) < 1e-6) -- a quotient in f32, and one in f64
      for name, grad in pairs(eager) do assert.is_true(gp.equal(grad, found[name]), name) end
    end
  end)

  it("follows the pipeline where the whole model was switched", function()
    local model = make():eval()
    gradients_after(model, { 4 })
    assert.are.equal(1, batches(model))
  end)
end)
