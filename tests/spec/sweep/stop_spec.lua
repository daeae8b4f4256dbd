-- tests/spec/sweep/stop_spec.lua - rules that end trials early.
local gp = require "gpipe"
local draws = require "gpipe.sweep.draws"
local sweep = gp.sweep

local folder
before_each(function()
  folder = os.tmpname()
  os.remove(folder)
end)
after_each(function() os.execute("rm -rf " .. folder) end)

local function new(more)
  local o = { name = "s", dir = folder, quiet = true, method = "grid",
    space = { i = sweep.int(1, 64) }, points = 64 }
  for key, value in pairs(more) do o[key] = value end
  return sweep(o)
end

-- Makes curves of losses like those of training runs: each falls from 1 to an end of its own at a
-- rate of its own, with noise. The ends are a permutation of 0.01, 0.02, ... so that the best one
-- is known.
local function curves(seed, count)
  local order, stream = {}, draws.new(seed, 0, "curves")
  for i = 1, count do table.insert(order, stream:uniform() * #order // 1 + 1 | 0, i) end
  local list = {}
  for i, rank in ipairs(order) do
    local rate, noise = 0.35 + 0.05 * stream:uniform(), draws.new(seed, i, "noise")
    list[i] = { rank = rank, at = function(step)
      return rank / 100 + math.exp(-rate * step) * 0.5 + 0.002 * noise:normal()
    end }
  end
  return list
end

local STEPS = 64

-- Runs all curves; returns the rank of the best and the share of the steps that ran.
local function search(s, list)
  local spent = 0
  s:run(function(params, trial)
    local first = trial.budget and (trial.step or 0) + 1 or 1
    local value
    for step = first, STEPS do
      spent = spent + 1
      value = list[params.i].at(step)
      if trial:report(step, value) then return value end
    end
    return value
  end)
  return list[s.best.params.i].rank, spent / (STEPS * #list)
end

describe("a rule", function()
  local CASES = {
    asha = { "asha", least = 2 }, ["asha by three"] = { "asha", reduction = 3, least = 2 },
    halving = { "halving", most = STEPS, least = 2, reduction = 4 },
  }
  for name, stop in pairs(CASES) do
    it(("finds the best of 64 with a quarter of the steps: %s"):format(name), function()
      for seed = 1, 5 do
        local rank, share = search(new { name = "s" .. seed, stop = stop }, curves(seed, 64))
        assert.are.equal(1, rank)
        assert.is_true(share <= 0.25, share)
      end
    end)
  end

  it("median finds the best and saves a third of the steps", function()
    local rank, share = search(new { stop = "median" }, curves(1, 64))
    assert.are.equal(1, rank)
    assert.is_true(share < 2 / 3, share)
  end)

  it("works the other way round where more is better", function()
    local list = curves(3, 64)
    for _, curve in ipairs(list) do
      local at = curve.at
      curve.at = function(step) return -at(step) end
    end
    local rank, share = search(new { stop = { "asha", least = 2 }, maximize = "value" }, list)
    assert.are.equal(1, rank)
    assert.is_true(share <= 0.25, share)
  end)

  it("stops a trial with NaN, and never calls it the best", function()
    for _, stop in ipairs { "asha", "median", "halving" } do
      local s = new { name = stop, stop = { stop, most = stop == "halving" and 9 or nil } }
      s.most = 3
      s:run(function(params, trial)
        for step = 1, 9 do
          if trial:report(step, params.i == 2 and 0 / 0 or 1) then return end
        end
      end)
      assert.are.equal("failed", s.trials[2].state)
      assert.are_not.equal(2, s.best.number)
    end
  end)

  it("is refused where its name or options are wrong", function()
    for _, case in ipairs { { "ahsa", "did you mean 'asha'?" }, { { "asha", leats = 1 }, "least" },
      { { "asha", reduction = 1 }, "reduction" }, { { "halving" }, "most" }, { {}, "stop" },
      { { "halving", most = 1, least = 2 }, "most" } } do
      local good, message = pcall(new, { stop = case[1] })
      assert.is_false(good)
      assert.is_truthy(message:find(case[2], 1, true), message)
    end
  end)
end)

describe("successive halving", function()
  it("gives budgets in rounds, and counts the steps that ran", function()
    local seen = {}
    local s = new { stop = { "halving", most = 9 } }
    s.most = 9
    s:run(function(params, trial)
      seen[#seen + 1] = ("%d:%g<%g"):format(params.i, trial.step or 0, trial.budget)
      for step = (trial.step or 0) + 1, 9 do
        if trial:report(step, params.i) then return end
      end
    end)
    assert.are.equal("1:0<1 2:0<1 3:0<1 4:0<1 5:0<1 6:0<1 7:0<1 8:0<1 9:0<1 1:1<3 2:1<3 3:1<3 1:3<9",
      table.concat(seen, " "))
    assert.are.equal(1, s.best.number)
  end)
end)
