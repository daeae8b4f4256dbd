-- tests/spec/plan/planner_counts_spec.lua - how many of the devices a plan uses, and which.

local gp = require "gpipe"
local candidates = require "gpipe.plan.candidates"
local nn = gp.nn

local MEGA = 1e6

local function profile_of(layers, parameter_bytes)
  local list = {}
  for i = 1, layers do
    list[i] = { forward = 1e-3, input = 1e-3, weight = 1e-3, output_bytes = 1e3,
      saved_bytes = 1e4, parameter_bytes = parameter_bytes }
  end
  return gp.profile { layers = list, rows = 4 }
end

local function plan_for(count, profile, opts)
  opts.devices = gp.cluster { hosts = 1, devices = count, memory = opts.memory or "1GiB",
    flops = 1e12, bandwidth = 1e12 }
  opts.memory, opts.batch = nil, opts.batch or 32
  return gp.plan(profile, nil, opts)
end

describe("devices of different speed", function()
  local function device(name, times)
    return { name, memory = "1GiB", flops = 1e10 * times, bandwidth = 1e12 }
  end

  local function plan_on(devices, opts)
    local model = nn.Sequential {}
    for i = 1, 12 do model[i] = nn.Linear(64, 64) end
    opts = opts or {}
    opts.devices, opts.loss = devices, nn.MSELoss()
    opts.schedules = { "1f1b", "gpipe" }
    return assert(gp.plan(model, { gp.zeros { 64, 64 }, gp.zeros { 64, 64 } }, opts))
  end

  it("are left out where the fast ones alone take less time, wherever they stand", function()
    local alone = plan_on { device("sim:1", 100) }
    for _, devices in ipairs { { device("sim:0", 1), device("sim:1", 100) },
      { device("sim:1", 100), device("sim:0", 1) },
      { device("sim:0", 1), device("sim:2", 1), device("sim:1", 100) } } do
      local plan = plan_on(devices)
      assert.equal(alone.best.seconds, plan.best.seconds)
      assert.equal("sim:1", plan.devices[1].name)
      assert.equal("sim:1", plan:options().devices[1][1])
      assert.is_true(plan.lower_bound < plan.best.seconds)
    end
    local plan = plan_on { device("sim:0", 1), device("sim:1", 100) }
    assert.same({ "sim:0" }, plan.without)
    assert.truthy(tostring(plan):find("without sim:0: the others alone are faster", 1, true))
  end)

  it("all work where each of them makes a step shorter", function()
    local plan = plan_on { device("sim:0", 1), device("sim:1", 2) }
    assert.is_nil(plan.without)
    assert.equal(2, plan.best.devices)
  end)

  it("keep their order where the slowest of several are left out", function()
    local plan = plan_on { device("sim:0", 1), device("sim:1", 100), device("sim:2", 1),
      device("sim:3", 99) }
    local names = {}
    for d, one in ipairs(plan.devices) do names[d] = one.name end
    assert.same({ "sim:1", "sim:3" }, names)
    assert.same({ "sim:0", "sim:2" }, plan.without)
  end)

  it("take the times of a profile alike, which the plan says", function()
    local profile = profile_of(4, 1e5)
    local two = { device("sim:0", 1), device("sim:1", 4) }
    local plan = assert(gp.plan(profile, nil, { devices = two, batch = 8, schedules = { "1f1b" } }))
    assert.is_true(plan.alike)
    assert.truthy(tostring(plan):find("the profile's times are taken for every device", 1, true))
    two[2] = device("sim:1", 1)
    plan = assert(gp.plan(profile, nil, { devices = two, batch = 8, schedules = { "1f1b" } }))
    assert.is_false(plan.alike)
  end)
end)

describe("the numbers of devices of a plan", function()
  it("are halves of as many as there are layers for, and then all between up to 16", function()
    local first, between = candidates.devices(7, 6, false)
    assert.same({ 6, 3, 1 }, first)
    assert.same({ 5, 4, 2 }, between)
    first, between = candidates.devices(8, 100, false)
    assert.same({ 8, 4, 2, 1 }, first)
    assert.same({ 7, 6, 5, 3 }, between)
  end)

  it("are sparse above 16", function()
    local first, between = candidates.devices(100, 1000, false)
    assert.same({ 100, 50 }, first)
    assert.same({ 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 24, 32, 48, 64, 96 },
      between)
  end)

  it("include more than there are layers where some schedule may use them", function()
    assert.same({ 7, 3, 1, 6 }, (candidates.devices(7, 6, true)))
  end)

  it("never make a plan worse by being more", function()
    for _, layers in ipairs { 4, 5, 6, 9 } do
      local profile, last = profile_of(layers, 1e5), math.huge
      for count = 1, 9 do
        local best = assert(plan_for(count, profile, { schedules = { "1f1b", "zb_h2", "zbv" } })).best
        assert.is_true(best.seconds <= last * (1 + 1e-9), ("%d layers, %d devices"):format(layers,
          count))
        last = best.seconds
      end
    end
  end)

  it("are those that fit, where more devices than layers are given", function()
    local profile = profile_of(6, 10 * MEGA)
    assert.is_nil((plan_for(5, profile, { memory = "45MiB", batch = 16 })))
    local six = assert(plan_for(6, profile, { memory = "45MiB", batch = 16 }))
    for _, count in ipairs { 7, 8, 11 } do
      local plan = assert(plan_for(count, profile, { memory = "45MiB", batch = 16 }))
      assert.equal(6, plan.best.devices)
      assert.equal(six.best.seconds, plan.best.seconds)
    end
  end)

  it("leave out between the first ones what cannot be faster", function()
    local plan = assert(plan_for(8, profile_of(8, 1e5), { schedules = { "1f1b" } }))
    local seen = {}
    for _, row in ipairs(plan.rows) do seen[row.devices] = true end
    assert.same({ [1] = true, [2] = true, [4] = true, [7] = true, [8] = true }, seen)
  end)
end)
