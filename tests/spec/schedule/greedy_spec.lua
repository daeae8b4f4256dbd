-- tests/spec/schedule/greedy_spec.lua - schedules that the event loop of gp.schedule.greedy writes.

local fails = require("tests.support.expect").failure
local gp = require "gpipe"
local schedule = gp.schedule

local function line(p)
  local placement = {}
  for s = 0, p - 1 do placement[s] = s end
  return placement
end

-- Places `waves` Vs over p devices.
local function wave(p, waves)
  local placement = {}
  for s = 0, 2 * p * waves - 1 do
    local k = s % (2 * p)
    placement[s] = k < p and k or 2 * p - 1 - k
  end
  return placement
end

local function made(opts)
  return assert(schedule.wrap("greedy", schedule.greedy(opts), opts.chunks):verify())
end

describe("gp.schedule.greedy", function()
  it("gives 1F1B with its limits, and GPipe with forwards first and no limits", function()
    for p = 1, 6 do
      for _, m in ipairs { 1, 3, p, 2 * p + 1 } do
        local opts = { placement = line(p), chunks = m, limit = function(d) return p - d end }
        assert.equal(schedule.build("1f1b", { devices = p, chunks = m }):csv(), made(opts):csv())
        opts = { placement = line(p), chunks = m,
          priority = function(a) return a.op == "F" and 0 or 1, a.micro end }
        if p > 1 then
          assert.equal(schedule.build("gpipe", { devices = p, chunks = m }):csv(), made(opts):csv())
        end
      end
    end
  end)

  it("reaches the figures of waves (Hanayo)", function()
    for _, case in ipairs { { 1, 18 }, { 2, 16 }, { 4, 15 } } do
      local waves, published = table.unpack(case)
      local unit = 1 / (2 * waves)
      local costs = { F = unit, B = 2 * unit }
      local s = made { placement = wave(4, waves), chunks = 4, costs = costs }
      assert.is_true(s:simulate(costs).makespan <= published)
    end
  end)

  it("keeps to the limit, or says that it cannot", function()
    for limit = 4, 8 do
      local s = made { placement = line(4), chunks = 12, limit = limit,
        costs = { F = 1, I = 1, W = 1 } }
      s:simulate { F = 1, I = 1, W = 1 }
      assert.is_true(assert(s:verify { peak_live = limit }) ~= nil)
    end
    local text = fails(schedule.greedy, { placement = wave(2, 1), chunks = 4, limit = 1 })
    assert.matches("device 0 keeps 1 activations, its limit, and 0F1 waits", text)
  end)

  it("keeps each device to a limit of its own", function()
    math.randomseed(11)
    for _ = 1, 30 do
      local p, waves, limits = math.random(2, 4), math.random(1, 2), {}
      for d = 0, p - 1 do limits[d] = 2 * p * waves + math.random(0, 4) end
      local opts = { placement = wave(p, waves), chunks = math.random(1, 9),
        limit = function(d) return limits[d] end, costs = { F = 1, I = 1, W = 1 } }
      local run = made(opts):simulate(opts.costs)
      for d = 0, p - 1 do assert.is_true(run.peak_live[d + 1] <= limits[d]) end
    end
  end)

  it("is verified for every placement, cost and order", function()
    math.randomseed(7)
    for _ = 1, 60 do
      local stages, placement = math.random(1, 9), {}
      local devices = math.random(1, stages)
      for s = 0, stages - 1 do placement[s] = s < devices and s or math.random(0, devices - 1) end
      local costs = { F = math.random(0, 3), comm = math.random() }
      if math.random() < 0.5 then costs.I, costs.W = math.random(), math.random(0, 2) end
      local salt = math.random(1, 1000)
      made { placement = placement, chunks = math.random(1, 7), costs = costs,
        priority = math.random() < 0.5 and function(a)
          return (a.micro * 7919 + a.stage * 104729 + salt) % 13
        end or nil }
    end
  end)

  it("gives the same rows each time", function()
    local opts = { placement = wave(3, 2), chunks = 5, costs = { F = { 1, 2, 1, 2, 1, 2, 1, 2, 1, 2,
      1, 2 }, I = 1, W = 1, comm = 0.25 } }
    assert.equal(made(opts):csv(), made(opts):csv())
  end)

  it("trains like any other schedule, with the same bits", function()
    local nn = gp.nn
    local function loss_under(which)
      gp.seed(3)
      local model = nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Linear(8, 2) }
      local pipe <close> = gp.pipeline(model, { balance = { 1, 1, 1, 1 }, chunks = 4, schedule = which,
        loss = nn.MSELoss() })
      return pipe:step(gp.ones { 8, 4 }, gp.zeros { 8, 2 })
    end
    schedule.define("greedy wave", function(p, m)
      return schedule.greedy { placement = wave(p, 1), chunks = m, costs = { F = 1, I = 1, W = 1 } }
    end)
    assert.equal(loss_under "gpipe", loss_under(schedule.build("greedy wave", { devices = 2,
      chunks = 4 })))
  end)

  local function with(more)
    local opts = { placement = line(2), chunks = 2 }
    for key, value in pairs(more) do opts[key] = value end
    return opts
  end
  local wrong = {
    { "no placement", { chunks = 2 }, "'placement'" },
    { "an empty placement", with { placement = {} }, "placement[0] is nil" },
    { "a placement from 1", with { placement = { 0, 1 } }, "placement[0] is nil" },
    { "a stage that is left out", with { placement = { [0] = 0, [2] = 1 } },
      "placement has 2 and no stage 1" },
    { "a device that is no number", with { placement = { [0] = "cpu" } }, 'placement[0] is "cpu"' },
    { "a device far away", with { placement = { [0] = 1 << 40 } }, "has 1 stages" },
    { "no micro-batches", with { chunks = 0 }, "chunks" },
    { "an unknown cost", with { costs = { G = 1 } }, "unknown cost 'G'" },
    { "a negative cost", with { costs = { F = -1 } }, "costs.F is -1" },
    { "costs of other stages", with { costs = { F = { 1 } } }, "costs.F has 1 numbers, expected 2" },
    { "B beside W", with { costs = { B = 1, W = 1 } }, "B beside I and W" },
    { "a priority of words", with { priority = function() return "x" end }, "returned \"x\" (string) for 0F0" },
    { "a priority of nothing", with { priority = function() end }, "returned nothing for 0F0" },
    { "a limit of nothing", with { limit = function() end }, "limit(0) is nil" },
    { "an unknown option", with { limt = 2 }, "unknown option 'limt'" },
  }
  for _, case in ipairs(wrong) do
    it("refuses " .. case[1], function()
      local text = fails(schedule.greedy, case[2])
      assert.is_truthy(text:find(case[3], 1, true), text)
    end)
  end
end)
