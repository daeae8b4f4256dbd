-- tests/spec/plan/knots_spec.lua - figures of layers between the numbers of rows that were measured,
-- and which of these a plan measures again.
local figures = require "gpipe.plan.figures"
local gp = require "gpipe"
local knots = require "gpipe.plan.knots"
local nn = gp.nn

-- One layer whose figures are all the same number.
local function layers(value)
  local layer = { name = "1", parameter_bytes = 5, selective = { saved_bytes = value,
    recompute = value } }
  for _, key in ipairs(knots.GROWING) do layer[key] = value end
  return { layer }
end

local function at(list, rows)
  local layer = knots.at(list, rows)[1]
  assert.equal(layer.forward, layer.selective.recompute)
  assert.equal(5, layer.parameter_bytes)
  return layer.forward
end

describe("figures of layers", function()
  it("are straight lines between two measurements, and beyond them", function()
    local list = {}
    knots.add(list, 2, layers(10))
    assert.same({ 10, 10 }, { at(list, 1), at(list, 64) })
    knots.add(list, 6, layers(30))
    assert.same({ 5, 10, 20, 30, 40 }, { at(list, 1), at(list, 2), at(list, 4), at(list, 6),
      at(list, 8) })
    assert.equal(0, (knots.at({ list[2], { rows = 7, layers = layers(90) } }, 1)[1].forward))
  end)

  it("bend where there is a third one, and are the middle where one was repeated", function()
    local list = {}
    for _, one in ipairs { { 8, 40 }, { 2, 10 }, { 4, 30 } } do
      knots.add(list, one[1], layers(one[2]))
    end
    assert.same({ 20, 30, 35, 40, 45 }, { at(list, 3), at(list, 4), at(list, 6), at(list, 8),
      at(list, 10) })
    knots.add(list, 4, layers(20))
    assert.equal(25, at(list, 4))
    knots.add(list, 4, layers(100))
    assert.same({ 20, 30, 35 }, { at(list, 3), at(list, 4), at(list, 6) })
  end)
end)

-- The rows that a plan measured again, in turn.
local function confirmed(devices, opts)
  local model = nn.Sequential { nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU() }
  local confirm, asked = figures.confirm, {}
  figures.confirm = function(self, rows, balance)
    asked[#asked + 1] = { rows = rows, told = confirm(self, rows, balance) }
    return asked[#asked].told
  end
  local good, plan = pcall(gp.plan, model, { gp.ones { 32, 64 } },
    { devices = devices, profile = opts and opts.profile, repeats = 1, verify = false })
  figures.confirm = confirm
  assert(good, plan)
  return plan, asked
end

describe("gp.plan", function()
  it("measures layers again with the rows of the best plan, until it has been measured", function()
    local one = { "cpu:0", threads = 1 }
    local plan, asked = confirmed { one, { "cpu:1", threads = 1 } }
    assert.is_true(asked[1].told and #asked <= 7)
    local times = {}
    for _, one_asked in ipairs(asked) do
      times[one_asked.rows] = (times[one_asked.rows] or 0) + (one_asked.told and 1 or 0)
    end
    assert.is_true((times[plan.best.rows] or 0) >= 2 or #asked == 7)
  end)

  it("measures nothing again where rates say the times", function()
    local device = { "sim:0", memory = "1GiB", flops = 1e12, bandwidth = 1e11 }
    local _, asked = confirmed { device, device }
    assert.same({ false }, { asked[1].told })
    assert.equal(1, #asked)
  end)
end)
