-- tests/spec/schedule/noise_spec.lua - simulations whose times vary and whose links are narrow:
-- cases that can be computed by hand, and means with the tolerance of their standard error.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local slowest = require "gpipe.schedule.slowest"

local function build(name, devices, chunks)
  return gp.schedule.build(name, { devices = devices, chunks = chunks })
end

describe("a slow device", function()
  it("of two holds up the other one", function()
    -- device 1 takes 2 for each action: its F 1-3 3-5, B 5-7 7-9; device 0's last B is 9-10
    local s = build("gpipe", 2, 2)
    assert.equal(10, s:simulate { F = 1, B = 1, slow = { [1] = 2 } }.makespan)
    assert.equal(6, s:simulate { F = 1, B = 1 }.makespan)
  end)

  it("counts for both of its stages", function()
    local s = build("zbv", 2, 4)
    local all = s:simulate { F = 1, slow = { [0] = 2, [1] = 2 } }.makespan
    assert.equal(2 * s:simulate({ F = 1 }).makespan, all)
  end)

  it("has a number of a device that is there", function()
    local s = build("gpipe", 2, 2)
    fails_with("slow[2], expected devices from 0 to 1", s.simulate, s, { slow = { [2] = 2 } })
    fails_with("expected how many times longer", s.simulate, s, { slow = { [1] = -1 } })
  end)
end)

describe("a link", function()
  it("with latency alone delays, however many values travel", function()
    local s = build("gpipe", 2, 4)
    assert.equal(6, s:simulate { F = 0, B = 0, comm = 3 }.makespan)
    assert.equal(6, s:simulate { F = 0, B = 0, link = { latency = 3 }, contention = true }.makespan)
  end)

  it("that one value at a time passes is a resource", function()
    -- gpipe: activations pass 0-3 ... 9-12, then gradients 12-15 ... 21-24
    assert.equal(24, build("gpipe", 2, 4):simulate { F = 0, B = 0, comm = 3, contention = true }
      .makespan)
    -- 1f1b sends gradients while activations pass the other way: 0F3 leaves at 9, 1B3 at 12
    assert.equal(15, build("1f1b", 2, 4):simulate { F = 0, B = 0, comm = 3, contention = true }
      .makespan)
  end)

  it("is that of the device that sends, in both directions", function()
    -- three devices, one micro-batch of no work: the middle one sends an activation and a gradient,
    -- which never meet
    assert.equal(8, build("gpipe", 3, 1):simulate { F = 0, B = 0, comm = 2, contention = true }
      .makespan)
  end)

  it("lets the device go on, unlike overlap = false", function()
    local s = build("gpipe", 2, 4)
    local free = s:simulate { F = 2, B = 2, comm = 1, contention = true }
    assert.equal(s:simulate({ F = 2, B = 2, comm = 1 }).makespan, free.makespan)
    assert.is_true(s:simulate({ F = 2, B = 2, comm = 1, overlap = false }).makespan > free.makespan)
  end)

  it("separates latency from what takes it up", function()
    local given = { F = 0, B = 0, link = { latency = 10, bandwidth = 1 }, bytes = 1 }
    local s = build("gpipe", 2, 4)
    assert.equal(22, s:simulate(given).makespan)
    given.contention = true -- four values, one after the other, each way
    assert.equal(28, s:simulate(given).makespan)
  end)

  it("is refused where nothing travels", function()
    local s = build("gpipe", 2, 4)
    fails_with("contention without transfers", s.simulate, s, { contention = true })
  end)
end)

describe("jitter", function()
  local one = build("gpipe", 1, 1)

  it("has the costs as means and the deviation that was asked for", function()
    local list = one:makespans { F = 1, B = 0, jitter = 0.3, count = 20000 }
    local mean, deviation = slowest.average(list)
    assert.is_true(math.abs(mean - 1) < 4 * deviation)
    -- the deviation of a log-normal's sample deviation, from its fourth moment: about 3 % here
    assert.is_true(math.abs(deviation * math.sqrt(20000) - 0.3) < 0.03)
  end)

  it("is a function of seed and draw alone", function()
    local opts = { jitter = { action = 0.2, travel = 0.2 }, comm = 1, count = 8 }
    local s = build("1f1b", 4, 8)
    assert.same(s:makespans(opts), s:makespans(opts))
    opts.first = 4
    local later = s:makespans(opts)
    opts.first = 0
    assert.equal(s:makespans(opts)[5], later[1])
    opts.seed = 2
    assert.is_not.equal(s:makespans(opts)[5], later[1])
  end)

  it("is what simulate draws first", function()
    local s, opts = build("1f1b", 3, 6), { jitter = 0.5 }
    local ran = s:simulate(opts)
    opts.count = 1
    assert.equal(ran.makespan, s:makespans(opts)[1])
  end)

  it("of a large schedule costs no less than none", function()
    local s = build("1f1b", 8, 32)
    local quiet = s:simulate({ F = 1, B = 2 }).makespan
    local mean = slowest.average(s:makespans { F = 1, B = 2, jitter = 0.2, count = 50 })
    assert.is_true(mean > quiet)
  end)

  it("is refused below zero", function()
    fails_with("expected a number >= 0", one.simulate, one, { jitter = { action = -1 } })
    fails_with("did you mean 'action'", one.simulate, one, { jitter = { actions = 1 } })
  end)
end)

describe("the slowest of R replicas", function()
  it("is the mean over all subsets of the sample", function()
    assert.equal(2, slowest.mean({ 3, 1, 2 }, 1))
    assert.is_true(math.abs(slowest.mean({ 3, 1, 2 }, 2) - 8 / 3) < 1e-12) -- 2, 3, 3
    assert.equal(3, slowest.mean({ 3, 1, 2 }, 3))
  end)

  it("of more than there are samples is drawn with replacement", function()
    -- of 2 values: the smaller only if all R draws are
    assert.is_true(math.abs(slowest.mean({ 1, 2 }, 3) - (2 - 1 / 8)) < 1e-12)
  end)

  it("with stragglers comes to the formula", function()
    local q, factor, R = 0.01, 3, 50
    local list = build("gpipe", 1, 1):makespans { F = 1, B = 1, count = 20000,
      stragglers = { share = q, slowdown = factor } }
    local expected = 2 * (1 + (factor - 1) * (1 - (1 - q) ^ R))
    -- of 400 groups of 50, each with one or the other value
    local p = 1 - (1 - q) ^ R
    local deviation = 2 * (factor - 1) * math.sqrt(p * (1 - p) / (20000 / R))
    assert.is_true(math.abs(slowest.mean(list, R) - expected) < 4 * deviation)
  end)

  it("meets the same stragglers whatever the schedule, so that schedules compare", function()
    local opts = { stragglers = { share = 0.3, slowdown = 2 }, count = 40 }
    local a, b = build("gpipe", 4, 8):makespans(opts), build("1f1b", 4, 8):makespans(opts)
    for i = 1, 40 do assert.equal(a[i] > 33, b[i] > 33) end -- 33: (8 + 3) * 3, without any
  end)
end)

describe("gp.schedule.compare", function()
  it("says how much longer each schedule takes where times vary", function()
    local written, before = {}, io.write
    rawset(io, "write", function(...)
      for _, t in ipairs { ... } do written[#written + 1] = t end
    end)
    local rows = gp.schedule.compare { "gpipe", "1f1b", devices = 4, chunks = 8, B = 2,
      jitter = 0.2, samples = 60, replicas = 16 }
    rawset(io, "write", before)
    assert.truthy(table.concat(written):find("slowest  times", 1, true))
    for _, row in ipairs(rows) do assert.is_true(row.slowest > row.makespan) end
  end)
end)
