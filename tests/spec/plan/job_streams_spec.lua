-- tests/spec/plan/job_streams_spec.lua - plan:simulate with replicas of asynchronous schedules, which
-- meet at every update.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with

local NETWORK = { latency = 1e-3, bandwidth = 1e9 }
local FORWARD = 8e-3 -- of a micro-batch through all layers of plan_of

-- A plan for four devices, or for so many, with 8 layers of 1 MB.
local function plan_of(schedules, opts)
  local layers = {}
  for i = 1, 8 do
    layers[i] = { forward = 1e-3, input = 1e-3, weight = 1e-3, output_bytes = 1000,
      saved_bytes = 1000, parameter_bytes = 1e6 }
  end
  local given = { batch = 32, chunks = 8, checkpoint = "never", schedules = schedules,
    devices = gp.cluster { hosts = 4, devices = 1, memory = "8GiB", flops = 1e13,
      bandwidth = 3e11, network = NETWORK } }
  for key, value in pairs(opts or {}) do given[key] = value end
  return assert(gp.plan(gp.profile { layers = layers, rows = 4 }, nil, given))
end

local function row_with(plan, devices, label)
  for _, row in ipairs(plan.rows) do
    if row.devices == devices and (not label or row.label == label) then return row end
  end
end

describe("plan:simulate of an asynchronous schedule", function()
  it("lets a device wait for the gradients before each update, and not for the values", function()
    local plan = plan_of { "pipedream_2bw" }
    local row = row_with(plan, 1) -- one stage: nothing but the other replicas is waited for
    local network = { latency = 11e-3, bandwidth = 1e9 }
    local job = plan:simulate { row = row, replicas = 4, network = network }
    local way = 11e-3 + 3 / 4 * 8e6 / 1e9
    assert.near(row.seconds, job.pipeline, 1e-12)
    -- The stream has three mini-batches. A forward pass hides a part of the first two exchanges,
    -- and nothing is left that could hide the last one.
    assert.near((2 * (way - FORWARD) + way) / 3, job.exchange, 1e-12)
    assert.equal(job.step, job.quiet)
    assert.equal(4 * 32, job.rows)
  end)

  it("hides an exchange that is shorter than a forward pass but for the stream's end", function()
    for batches = 3, 7, 4 do
      local plan = plan_of { { "pipedream_2bw", batches = batches } }
      local job = plan:simulate { row = row_with(plan, 1), replicas = 4 }
      assert.near((1e-3 + 3 / 4 * 8e6 / 1e9) / batches, job.exchange, 1e-12)
    end
  end)

  it("waits for the values, too, where a stage is ahead of the backward passes", function()
    local plan = plan_of { "pipedream_2bw" }
    local long = 0.5 -- a step takes 0.192 s on one device, 0.0673 s on four
    local network = { latency = long, bandwidth = math.huge }
    -- one stage reads values that were made a whole step ago; a forward pass hides a part of the
    -- exchange of gradients, but not behind the last of three mini-batches
    local one = plan:simulate { row = row_with(plan, 1), replicas = 2, network = network }
    assert.near(long - 2 / 3 * FORWARD, one.exchange, 1e-9)
    -- the first of four reads them when backward passes of the mini-batch before are to come
    local four = plan:simulate { row = row_with(plan, 4), replicas = 2, network = network }
    assert.is_true(four.exchange > 1.01 * long)
  end)

  it("is what the plan says of replicas that share the devices", function()
    local link = { latency = 1e-3, bandwidth = 1e9 }
    local device = { "sim:0", memory = "8GiB", flops = 1e13, bandwidth = 3e11 }
    local function plan_on(count, schedule, batch)
      return plan_of({ schedule }, { devices = table.move({ device, device, device, device }, 1,
        count, 1, {}), link = link, batch = batch })
    end
    local shared = plan_on(4, { "pipedream_2bw", replicas = 2 }, 64)
    local row = row_with(shared, 4)
    assert.near(row.seconds, shared:simulate({ row = row }).step, 1e-12)
    local single = plan_on(2, "pipedream_2bw", 32)
    local job = single:simulate { row = row_with(single, 2), replicas = 2, network = link }
    assert.near(row.seconds, job.step, 1e-12)
    -- two such pipelines are four replicas
    local both = shared:simulate { row = row, replicas = 2, network = link }
    assert.near(single:simulate({ row = row_with(single, 2), replicas = 4, network = link }).step,
      both.step, 1e-12)
    assert.equal(8, both.ranks)
  end)

  it("takes longer with more replicas where times vary, all of them simulated together", function()
    local plan, last = plan_of { "pipedream_2bw" }, 0
    for _, replicas in ipairs { 1, 4, 32 } do
      local job = plan:simulate { replicas = replicas, jitter = 0.3, network = {} }
      assert.is_true(job.step > last and job.step > job.quiet)
      assert.is_true(job.error < 0.02 * job.step)
      assert.is_true(job.late >= job.step)
      if replicas > 1 then
        assert.equal(replicas, job.together)
        assert.is_false(job.short)
        assert.truthy(tostring(job):find(replicas .. " replicas together", 1, true))
      end
      last = job.step
    end
  end)

  it("says where fewer replicas are simulated than there are", function()
    local job = plan_of({ "pipedream_2bw" }):simulate { replicas = 1000, jitter = 0.1,
      samples = 1000 }
    assert.is_true(job.short and job.together < 1000)
    assert.truthy(tostring(job):find("fewer than there are: the step is a lower estimate", 1, true))
  end)

  it("has a slow device in every replica", function()
    local plan = plan_of { "pipedream_2bw" }
    local row = row_with(plan, 4)
    local alone = plan:simulate { row = row, slow = { [1] = 2 } }
    local job = plan:simulate { row = row, slow = { [1] = 2 }, replicas = 4 }
    assert.near(alone.step, job.pipeline, 1e-12)
    fails_with("expected devices from 0 to 3", plan.simulate, plan,
      { row = row, slow = { [4] = 2 }, replicas = 4 })
  end)

  it("knows streams of scripts, and PipeDream of one micro-batch", function()
    gp.schedule.define("own_stream", function(p, m)
      local rows, placement = {}, {}
      for d = 0, p - 1 do
        local row = {}
        for b = 0, 3 do
          for i = b * m, b * m + m - 1 do
            row[#row + 1] = ("%dF%d@%d,%dB%d@%d"):format(d, i, math.max(0, b - 1), d, i,
              math.max(0, b - 1))
          end
          row[#row + 1] = ("%dU%d"):format(d, b)
        end
        rows[d + 1], placement[d] = table.concat(row, ","), d
      end
      return { rows = rows, placement = placement, batch = m }
    end, { replace = true })
    local plan = plan_of { "own_stream" }
    local row = row_with(plan, 1)
    -- the forward pass of the next mini-batch reads an older version and hides the exchange; the
    -- last of four mini-batches has none behind it
    assert.near(7e-3 / 4, plan:simulate({ row = row, replicas = 4 }).exchange, 1e-12)
    local dream = plan_of({ "pipedream" }, { chunks = 1, batch = 4 })
    row = row_with(dream, 1)
    assert.near(7e-3, dream:simulate({ row = row, replicas = 4 }).exchange, 1e-12)
  end)

  it("refuses what a pipeline refuses, and local steps", function()
    local plan = plan_of { "pipedream" }
    fails_with("schedule 'pipedream' updates after every micro-batch", plan.simulate, plan,
      { replicas = 2 })
    local stream = plan_of { "pipedream_2bw" }
    fails_with("local_steps is 2", stream.simulate, stream, { replicas = 2, local_steps = 2 })
  end)
end)

describe("plan:compare", function()
  it("has streams beside others, and names those that have no replicas", function()
    local plan = plan_of { "1f1b", "pipedream_2bw", "pipedream" }
    local before, said = print, {}
    _G.print = function(text) said[#said + 1] = tostring(text) end
    local jobs = plan:compare { replicas = 4, jitter = 0.1, samples = 50 }
    _G.print = before
    assert.equal(2, #jobs)
    assert.equal("pipedream_2bw", jobs[1].label) -- it has no bubble
    assert.truthy(said[1]:find("(left out: pipedream, which", 1, true))
  end)
end)
