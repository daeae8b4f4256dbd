-- tests/spec/plan/job_spec.lua - jobs that no machine here has: gp.goodput, plan:simulate,
-- plan:compare. Formulas are checked by hand and by Monte-Carlo.
local gp = require "gpipe"
local child = require "tests.child"
local core = require "gpipe.core"
local fails_with = require("tests.support.expect").fails_with
local slowest = require "gpipe.schedule.slowest"

local function plan_of(fields, opts)
  local layers = {}
  for i = 1, 8 do
    layers[i] = { forward = 1e-3, input = 1e-3, weight = 1e-3, output_bytes = 1000,
      saved_bytes = 1000, parameter_bytes = 1e6 }
  end
  local all = { hosts = 4, devices = 1, memory = "8GiB", flops = 1e13, bandwidth = 3e11,
    network = { latency = 1e-3, bandwidth = 1e9 } }
  for key, value in pairs(fields or {}) do all[key] = value end
  local given = { devices = gp.cluster(all), batch = 32, chunks = 8, checkpoint = "never",
    schedules = { "1f1b" } }
  for key, value in pairs(opts or {}) do given[key] = value end
  return assert(gp.plan(gp.profile { layers = layers, rows = 4 }, nil, given))
end

-- ---- failures -----------------------------------------------------------------------------------

describe("gp.goodput", function()
  it("is what a simulated run of 20,000 intervals comes to, within four standard errors", function()
    local M, C, R, work = 1000, 10, 30, 140
    math.randomseed(7)
    local function wait() return -M * math.log(1 - math.random()) end
    local list = {}
    for i = 1, 20000 do
      local seconds, failure = 0.0, wait()
      while failure < work + C do
        seconds, failure = seconds + failure, wait()
        while failure < R do seconds, failure = seconds + failure, wait() end
        seconds, failure = seconds + R, wait()
      end
      list[i] = seconds + work + C
    end
    local mean, deviation = slowest.average(list)
    local g = gp.goodput { mtbf = M, checkpoint = C, restart = R, interval = work }
    assert.is_true(math.abs(work / g.goodput - mean) < 4 * deviation)
    assert.is_true(deviation < 0.01 * mean) -- so the check means something
    assert.is_true(math.abs(g.goodput + g.writing + g.lost - 1) < 1e-12)
  end)

  it("finds the best interval, near Young's and nearer Daly's", function()
    local opts = { mtbf = 5 * 365 * 86400, hosts = 16384, checkpoint = 60, restart = 300 }
    local g = gp.goodput(opts)
    assert.is_true(math.abs(g.mtbf / 3600 - 2.67) < 0.01)
    for _, times in ipairs { 0.9, 1.1 } do
      opts.interval = times * g.interval
      assert.is_true(gp.goodput(opts).goodput < g.goodput)
    end
    assert.is_true(math.abs(g.young / g.interval - 1) < 0.06)
    assert.is_true(math.abs(g.daly / g.interval - 1) < 0.001)
    -- the loss is about sqrt(2 C / M), and what restarts cost
    assert.is_true(math.abs((1 - g.goodput) - math.sqrt(2 * 60 / g.mtbf) - 300 / g.mtbf) < 0.02)
  end)

  it("rounds the interval to steps, at least one", function()
    local g = gp.goodput { mtbf = 1e6, checkpoint = 10, step = 7 }
    assert.equal(g.steps * 7, g.interval)
    assert.equal(1, gp.goodput({ mtbf = 1e4, checkpoint = 1, step = 1e6 }).steps)
  end)

  it("is a number where failures are rare and checkpoints short beyond all measure", function()
    for _, opts in ipairs { { mtbf = 1e300, checkpoint = 60 }, { mtbf = 1e6, checkpoint = 1e-300 },
      { mtbf = 1e20, checkpoint = 1 }, { mtbf = 1e-300, checkpoint = 60 },
      { mtbf = 1e308, checkpoint = 1e307 } } do
      local g = gp.goodput(opts)
      assert.is_true(g.goodput >= 0 and g.goodput <= 1)
      assert.is_true(g.interval > 0 and g.interval < math.huge)
      assert.is_true(g.lost >= 0 and g.lost <= 1 and g.writing >= 0 and g.writing <= 1)
      assert.falsy(tostring(g):find "nan" or tostring(g):find "inf")
    end
    -- the loss is sqrt(2 C / M) to first order
    local g = gp.goodput { mtbf = 1e20, checkpoint = 1 }
    assert.is_true(math.abs(g.writing / math.sqrt(1 / (2 * 1e20)) - 1) < 1e-6)
  end)

  it("refuses what is no time", function()
    fails_with("option 'mtbf' is inf", gp.goodput, { mtbf = math.huge, checkpoint = 1 })
    fails_with("missing option 'mtbf'", gp.goodput, { checkpoint = 1 })
    fails_with("expected a number > 0", gp.goodput, { mtbf = 1, checkpoint = 0 })
  end)
end)

-- ---- jobs ---------------------------------------------------------------------------------------

describe("plan:simulate", function()
  it("without anything that varies is the plan's own step", function()
    local plan = plan_of()
    local job = plan:simulate()
    assert.is_true(math.abs(job.step - plan.best.seconds) < 1e-12)
    assert.equal(plan.best.devices, job.ranks)
    assert.equal(1, job.goodput)
  end)

  it("adds what replicas exchange: two latencies and 2 (R - 1) / R of the bytes", function()
    local plan = plan_of()
    local job = plan:simulate { replicas = 4 }
    local bytes = 0
    for _, count in ipairs(plan.best.balance) do bytes = math.max(bytes, count * 1e6) end
    local exchange = 2e-3 + 2 * 3 / 4 * bytes / 1e9
    -- the stages of device 0 end last in 1F1B, and all have as many layers
    assert.is_true(math.abs(job.step - plan.best.seconds - exchange) < 1e-9)
    assert.equal(4 * plan.best.devices, job.ranks)
    assert.equal(4 * 32, job.rows)
  end)

  it("shares the exchange among the steps between two of them", function()
    local plan = plan_of()
    local one = plan:simulate { replicas = 4 }
    local ten = plan:simulate { replicas = 4, local_steps = 10 }
    assert.is_true(math.abs(ten.step - one.pipeline - one.exchange / 10) < 1e-12)
  end)

  it("takes longer with more replicas where times vary, and says how sure it is", function()
    local plan, last = plan_of(), 0
    for _, replicas in ipairs { 1, 8, 64 } do
      local job = plan:simulate { replicas = replicas, jitter = 0.2, network = {} }
      assert.is_true(job.step > last and job.step > job.quiet)
      assert.is_true(job.error < 0.02 * job.step)
      assert.is_true(job.late >= job.step)
      last = job.step
    end
  end)

  it("says no error where nothing varies, nor where no run has met a straggler", function()
    local plan = plan_of()
    for _, jitter in ipairs { 0, { action = 0, travel = 0 } } do
      local job = plan:simulate { jitter = jitter }
      assert.is_nil(job.error)
      assert.equal(1, job.samples)
      assert.equal(job.quiet, job.step)
    end
    local job = plan:simulate { stragglers = { share = 1e-9, slowdown = 10 }, replicas = 4 }
    assert.is_nil(job.error)
    assert.is_nil(job.late)
    assert.is_true(job.unmet)
    assert.truthy(tostring(job):find("none of which has met a straggler", 1, true))
    job = plan:simulate { stragglers = { share = 1, slowdown = 10 } }
    assert.is_nil(job.unmet)
    assert.is_true(job.step > 5 * job.quiet)
    job = plan:simulate { stragglers = { share = 0.1, slowdown = 10 } }
    assert.is_true(job.error > 0)
  end)

  it("varies less over steps that replicas make apart", function()
    local plan = plan_of()
    local opts = { replicas = 16, jitter = 0.3, network = {}, samples = 320 }
    local together = plan:simulate(opts)
    opts.local_steps = 10
    assert.is_true(plan:simulate(opts).step < together.step)
  end)

  it("simulates 16,384 ranks in seconds", function()
    local plan, began = plan_of(), core.seconds()
    local job = plan:simulate { replicas = 4096, jitter = 0.1, failures = 5 * 365 * 86400,
      stragglers = { share = 1e-4, slowdown = 1.5 }, checkpoint = { seconds = 30, restart = 120 } }
    assert.equal(16384, job.ranks)
    assert.equal(16384, job.hosts)
    assert.is_false(job.short)
    assert.is_true(job.samples >= job.replicas)
    assert.is_true(core.seconds() - began < 20)
    assert.truthy(tostring(job):find("16384 ranks, 4096 replicas of 4 devices", 1, true))
    assert.truthy(tostring(job):find("goodput", 1, true))
  end)

  it("says where the sample is smaller than the replicas", function()
    local job = plan_of():simulate { replicas = 100, jitter = 0.1, samples = 50 }
    assert.is_true(job.short)
    assert.truthy(tostring(job):find("a lower estimate", 1, true))
  end)

  it("counts hosts, of which one that fails stops all", function()
    local plan = plan_of { hosts = 2, devices = 2 }
    local opts = { replicas = 3, failures = 1e6, checkpoint = { seconds = 1 } }
    local job = plan:simulate(opts)
    assert.equal(6, job.hosts)
    assert.equal(1e6 / 6, job.failures.mtbf)
    opts.hosts = 2
    assert.equal(5e5, plan:simulate(opts).failures.mtbf)
  end)

  it("takes a checkpoint's time from bytes and bandwidth", function()
    local plan = plan_of()
    local job = plan:simulate { failures = 1e6, checkpoint = { bandwidth = 1e6 } }
    local most = 0
    for _, count in ipairs(plan.best.balance) do most = math.max(most, count) end
    assert.equal(3 * most, job.failures.checkpoint) -- values and two moments of AdamW
  end)

  it("refuses what makes no job", function()
    local plan = plan_of()
    fails_with("checkpoint without failures", plan.simulate, plan, { checkpoint = { seconds = 1 } })
    fails_with("failures without checkpoint", plan.simulate, plan, { failures = 1e6 })
    fails_with("expected one of plan.rows", plan.simulate, plan, { row = {} })
    fails_with("did you mean 'replicas'", plan.simulate, plan, { replica = 2 })
  end)
end)

describe("a plan over narrow links", function()
  it("counts values that wait for each other", function()
    -- four stages of two layers, 6 ms each of a micro-batch; a value takes 10 ms, and a middle
    -- device sends two of them for each micro-batch
    local plan = plan_of { network = { latency = 0, bandwidth = 1e5 } }
    local row
    for _, one in ipairs(plan.rows) do row = one.devices == 4 and row == nil and one or row end
    assert.is_true(row.seconds > 8 * 2 * 0.01)
  end)
end)

describe("plan:compare", function()
  it("sorts the schedules of a plan by the rows that last", function()
    local plan = plan_of(nil, { schedules = { "gpipe", "1f1b" } })
    local before, said = print, {}
    _G.print = function(text) said[#said + 1] = tostring(text) end
    local jobs = plan:compare { jitter = 0.2, samples = 50 }
    _G.print = before
    assert.equal(2, #jobs)
    assert.is_true(jobs[1].rate >= jobs[2].rate)
    assert.truthy(said[1]:find("schedule", 1, true))
  end)
end)

describe("examples/planning/internet.lua", function()
  it("says in seconds what is worth it over consumer links and what is not", function()
    local began = core.seconds()
    local out, err, code = child.run { "examples/planning/internet.lua" }
    assert.equal("", err)
    assert.equal(0, code)
    assert.is_true(core.seconds() - began < 60)
    assert.truthy(out:find "100 Mbit/s, 16 homes: [^\n]+: not worth it\n")
    assert.truthy(out:find "1000 Mbit/s, [^\n]+: worth it\n")
    assert.truthy(out:find "every    1 steps: [^\n]+: not worth it\n")
    assert.truthy(out:find "every  100 steps: [^\n]+: worth it\n")
    assert.truthy(out:find("a home needs about", 1, true))
  end)
end)
