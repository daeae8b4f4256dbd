-- tests/spec/plan/planner_offload_spec.lua - gp.plan, dry runs and the simulation of time know what
-- checkpoint = "offload" takes of the host's memory and of its link.
local expect = require "tests.support.expect"
local gp = require "gpipe"
local nn = gp.nn

local function blocks(count)
  local list = {}
  for i = 1, count do
    list[i] = nn.Sequential { nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64) }
  end
  return nn.Sequential(list)
end

local LAYERS, ROWS = 8, 512
local sample = { gp.zeros { ROWS, 64 }, gp.zeros { ROWS, 64 } }

local function device(d, more)
  local one = { "sim:" .. d, memory = "1GiB", flops = 1e11, bandwidth = 1e10,
    host_link = { bandwidth = 1e10, latency = 1e-6 } }
  for key, value in pairs(more or {}) do one[key] = value end
  return one
end

local function plan(policies, more, schedules)
  return gp.plan(blocks(LAYERS), sample, {
    devices = { device(0, more), device(1, more) }, chunks = 8, checkpoint = policies,
    schedules = schedules or { "gpipe" }, optimizer = "SGD", loss = nn.MSELoss(),
  })
end

describe("schedule:simulate with copies to the host's memory", function()
  local function makespans(name, devices, list)
    local schedule, found = gp.schedule.build(name, { devices = devices, chunks = 8 }), {}
    for i, away in ipairs(list) do
      found[i] = schedule:simulate { F = 1, B = 2, away = away }.makespan
    end
    return found
  end

  it("has them run beside the work, each way in a lane of its own", function()
    assert.same({ 24, 24, 24 }, makespans("gpipe", 1, { 0, 0.5, 1 }))
    assert.same({ 33, 33, 33 }, makespans("1f1b", 4, { 0, 0.5, 1 }))
  end)

  it("takes longer with a link that is too slow", function()
    -- six of eight F are followed by one that waits for a copy of 3, and six of eight B too
    assert.same({ 31, 59, 115 }, makespans("gpipe", 1, { 2, 4, 8 }))
    local last = 33
    for _, makespan in ipairs(makespans("1f1b", 4, { 1.5, 2, 4, 8 })) do
      assert.is_true(makespan > last)
      last = makespan
    end
  end)

  it("leaves alone what a backward pass reads soon", function()
    assert.same({ 24, 24 }, makespans("1f1b", 1, { 0, 100 }))
  end)

  it("says on the critical path where a copy was waited for", function()
    local run = gp.schedule.build("gpipe", { devices = 1, chunks = 6 })
      :simulate { F = 1, B = 2, away = 3 }
    assert.equal(33, run.makespan)
    assert.equal("copy", run.critical[#run.critical].after)
    local times = run:timeline(0)
    assert.same({ 4, 5 }, { times[3].begin, times[3].finish })
  end)

  it("checks the times", function()
    local schedule = gp.schedule.build("gpipe", { devices = 2, chunks = 4 })
    expect.fails_with("away", schedule.simulate, schedule, { away = -1 })
    expect.fails_with("away", schedule.simulate, schedule, { away = { 1, 2, 3 } })
  end)
end)

describe("gp.plan with checkpoint = \"offload\"", function()
  it("counts bytes of the host and says so", function()
    local made = assert(plan "offload")
    assert.equal("offload", made.best.checkpoint)
    for d = 1, made.best.devices do assert.is_true(made.best.host[d] > 0) end
    assert.matches("on host", tostring(made))
    assert.matches("in the host's memory: sim:0 %d", tostring(made))
  end)

  it("plans the bytes that a pipeline takes, on the devices and on the host", function()
    local made = assert(plan "offload")
    local dry = gp.dry_run(blocks(LAYERS), {
      balance = made.best.balance, chunks = 8, schedule = "gpipe", checkpoint = "offload",
      devices = { {}, {} }, loss = nn.MSELoss(), sample = sample,
    })
    for d, one in ipairs(dry:memory()) do assert.equal(one.host.planned, made.best.host[d]) end
  end)

  it("takes less of the devices than never, and no time over a fast link", function()
    local never, offload = assert(plan "never"), assert(plan "offload")
    assert.is_true(offload.best.peak[1] < never.best.peak[1])
    local fast = assert(plan("offload", { host_link = { bandwidth = 1e13 } }))
    assert.is_true(math.abs(fast.best.seconds / never.best.seconds - 1) < 1e-9)
  end)

  it("takes longer the slower the link is", function()
    local last = 0
    for _, bandwidth in ipairs { 1e11, 1e9, 1e8, 1e7 } do
      local seconds = assert(plan("offload", { host_link = { bandwidth = bandwidth } })).best.seconds
      assert.is_true(seconds >= last)
      last = seconds
    end
    assert.is_true(last > 10 * assert(plan "never").best.seconds)
  end)

  it("is chosen where it is fastest of what fits, and only there", function()
    local never, offload = assert(plan "never"), assert(plan "offload")
    local between = (never.best.peak[1] + offload.best.peak[1]) // 2
    local all = { "never", "selective", "always", "offload" }
    local fast = assert(plan(all, { memory = between, host_link = { bandwidth = 1e12 } }))
    assert.equal("offload", fast.best.checkpoint)
    local slow = assert(plan(all, { memory = between, host_link = { bandwidth = 1e6 } }))
    assert.are_not.equal("offload", slow.best.checkpoint)
    assert.equal("never", assert(plan(all)).best.checkpoint)
  end)

  -- Layers that take the same time, of which the first two save most.
  local function uneven(host_link, policies)
    local layers = {}
    for i = 1, 4 do
      layers[i] = { forward = 1e-3, input = 1e-3, weight = 1e-3, recompute = 1e-3,
        output_bytes = 1e3, saved_bytes = i <= 2 and 1e6 or 1e3 }
    end
    local one = { "sim:0", memory = 12000000, flops = 1e12, bandwidth = 1e12,
      host_link = host_link }
    return assert(gp.plan(gp.profile { layers = layers, rows = 1, input_bytes = 1000 }, nil, {
      devices = { one, one }, batch = 8, chunks = 8, schedules = { "gpipe" },
      checkpoint = policies }))
  end

  it("wins where everything fits only with a cut that is slower", function()
    local without, with = uneven(nil, "never"), uneven({ bandwidth = 1e12 }, { "never", "always", "offload" })
    assert.same({ 1, 3 }, without.best.balance)
    assert.same({ "offload", 2, 2 }, { with.best.checkpoint, table.unpack(with.best.balance) })
    local fits = {}
    for _, row in ipairs(with.rows) do fits[row.checkpoint] = row end
    assert.same({ 1, 3 }, fits.never.balance) -- another row fits
    assert.is_true(with.best.seconds < 0.85 * fits.never.seconds)
    assert.are_not.equal("offload", uneven({ bandwidth = 1e7 }).best.checkpoint)
  end)

  it("keeps to the memory of the host, and says what would be needed", function()
    local made, why = plan("offload", { host_memory = "64KiB" })
    assert.is_nil(made)
    assert.matches("of the host's memory needed by sim:%d, which may have 64.0 KiB there", why)
    local free = assert(plan "offload")
    local enough = assert(plan("offload", { host_memory = 4 * free.best.host[1] }))
    assert.is_true(enough.best.host[1] <= 4 * free.best.host[1])
  end)

  it("is tried without being named where devices say how they reach the host", function()
    local made = assert(plan(nil, { memory = "3MiB", host_link = { bandwidth = 1e12 } }))
    local tried = {}
    for _, row in ipairs(made.rows) do tried[row.checkpoint] = true end
    assert.is_true(tried.offload)
    local other = gp.plan(blocks(LAYERS), sample, {
      devices = { { "sim:0", memory = "1GiB" } }, chunks = 8, schedules = { "gpipe" },
      loss = nn.MSELoss(),
    })
    for _, row in ipairs(other.rows) do assert.are_not.equal("offload", row.checkpoint) end
  end)

  it("does not lose \"auto\" where that fits with the link", function()
    for _, schedule in ipairs { "gpipe", "zb_h1" } do
      local link = { bandwidth = 1e12 }
      local function fits(memory)
        local one = { memory = memory, host_link = link }
        return gp.dry_run(blocks(LAYERS), { balance = { 4, 4 }, chunks = 8, schedule = schedule,
          checkpoint = "auto", devices = { one, one }, loss = nn.MSELoss(), sample = sample }).fits
      end
      local low, high = 1 << 16, 1 << 24
      while high - low > 4096 do
        local middle = (low + high) // 2
        if fits(middle) then high = middle else low = middle end
      end
      local made, why = plan("auto", { memory = high, host_link = link }, { schedule })
      assert.is_truthy(made, why)
      assert.is_true(made.best.exact and made.best.peak[1] <= high)
    end
  end)

  it("is refused where a device does not say it", function()
    expect.fails_with("expected host_link = {bandwidth = 25e9} of each", gp.plan, blocks(2), sample, {
      devices = { { "sim:0", memory = "1GiB" } }, checkpoint = "offload", loss = nn.MSELoss(),
    })
  end)

  it("is an option of gp.cluster's devices", function()
    local list = gp.cluster { hosts = 1, devices = 2, memory = "1GiB", flops = 1e12,
      bandwidth = 1e11, host_link = { bandwidth = 25e9 }, host_memory = "8GiB" }
    local made = assert(gp.plan(blocks(LAYERS), sample, { devices = list, chunks = 8,
      checkpoint = "offload", schedules = { "gpipe" }, loss = nn.MSELoss() }))
    assert.is_true(made.best.host[1] > 0)
  end)
end)
