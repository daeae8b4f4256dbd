-- tests/spec/plan/planner_auto_spec.lua - gp.plan's best row with checkpoint "auto" says what the
-- pipeline that is made of it takes: bytes of devices and of the host, and the seconds of a step.
local gp = require "gpipe"
local nn = gp.nn

local LAYERS, FLOPS, FAST = 8, 1e11, 1e30

local function blocks()
  local list = {}
  for i = 1, LAYERS do
    list[i] = nn.Sequential { nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64) }
  end
  return nn.Sequential(list)
end

local sample = { gp.zeros { 512, 64 }, gp.zeros { 512, 64 } }

-- Devices whose memory moves any number of bytes at once, so that FLOP alone take time.
local function planned(schedule, memory, link)
  local devices = {}
  for d = 1, 2 do
    devices[d] = { "sim:" .. d - 1, memory = memory, flops = FLOPS, bandwidth = FAST,
      efficiency = 1, host_link = link or nil }
  end
  return gp.plan(blocks(), sample, {
    devices = devices, chunks = 8, schedules = { schedule }, checkpoint = "auto",
    optimizer = "SGD", loss = nn.MSELoss(),
  })
end

-- The pipeline that a row makes, and the seconds of its step.
local function made_of(row, memory, link)
  local devices = {}
  for d = 1, row.devices do devices[d] = { memory = memory, host_link = link or nil } end
  local dry = gp.dry_run(blocks(), {
    balance = row.balance, chunks = row.chunks, schedule = row.schedule, checkpoint = "auto",
    devices = devices, loss = nn.MSELoss(), sample = sample,
  })
  local costs = dry:costs { flops = FLOPS, bandwidth = FAST }
  costs.away = {}
  for s = 1, #row.balance do
    costs.R[s] = dry.core:cost(dry.core, s - 1, "R") / FLOPS
    local bytes = dry.core:stage(dry.core, s - 1, 0).away_bytes
    costs.away[s] = bytes > 0 and bytes / link.bandwidth or 0
  end
  local lowered = gp.schedule.build(row.schedule, { devices = row.devices, chunks = row.chunks })
    :lower { checkpoint = dry.follows or "always", comms = false, update = "none" }
  return dry, lowered:simulate(costs).makespan
end

describe("gp.plan with checkpoint \"auto\"", function()
  for _, link in ipairs { false, { bandwidth = 1e11 } } do
    for _, schedule in ipairs { "gpipe", "1f1b" } do
      it(("says what its pipeline takes: %s, %s"):format(schedule,
        link and "with a link to the host" or "without a link"), function()
        local all = assert(planned(schedule, "1GiB", link)).best.peak[1]
        local tried = 0
        for _, share in ipairs { 1.5, 0.8, 0.65 } do
          local memory = math.floor(share * all)
          local plan = planned(schedule, memory, link)
          if plan and plan.best.devices == 2 then
            tried = tried + 1
            local dry, seconds = made_of(plan.best, memory, link or nil)
            for d, one in ipairs(dry:memory()) do
              assert.equal(one.planned, plan.best.peak[d])
              assert.equal(one.host and one.host.planned or 0, plan.best.host[d])
            end
            assert.is_true(plan.best.exact)
            assert.is_true(math.abs(plan.best.seconds / seconds - 1) < 1e-6,
              ("%g: %g, and %g s"):format(share, plan.best.seconds, seconds))
          end
        end
        assert.is_true(tried > 0)
      end)
    end
  end
end)

describe("the rows that gp.plan prints", function()
  local devices = {}
  for d = 1, 2 do
    devices[d] = { "sim:" .. d - 1, memory = "2MiB", flops = FLOPS, bandwidth = 1e10 }
  end
  local plan = assert(gp.plan(blocks(), sample, { devices = devices, chunks = 8,
    checkpoint = { "never", "selective", "always", "except_last" }, optimizer = "SGD",
    loss = nn.MSELoss() }))

  it("have the bytes of the pipelines that they make", function()
    for i = 1, math.min(8, #plan.rows) do
      local row, list = plan.rows[i], {}
      for d = 1, row.devices do list[d] = {} end
      local dry = gp.dry_run(blocks(), { balance = row.balance, chunks = row.chunks,
        schedule = row.schedule, checkpoint = row.checkpoint, devices = list,
        loss = nn.MSELoss(), sample = sample })
      assert.is_true(row.exact)
      for d, one in ipairs(dry:memory()) do assert.equal(one.planned, row.peak[d]) end
    end
    assert.is_nil(tostring(plan):find("~", 1, true))
  end)

  it("are marked where their bytes are estimated", function()
    plan.rows[math.min(8, #plan.rows)].exact = false
    assert.matches("~: estimated", tostring(plan))
  end)
end)
