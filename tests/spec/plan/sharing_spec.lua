-- tests/spec/plan/sharing_spec.lua - the step of devices whose threads share the cores of a machine.
local cores = require "gpipe.plan.cores"
local gp = require "gpipe"
local sharing = require "gpipe.plan.sharing"

local COSTS = { F = 3, I = 4, W = 2, B = 5.5, R = 3, checkpoint = "always" }

local function devices(count, threads, there)
  local list = {}
  for d = 1, count do list[d] = { kind = "cpu", threads = threads, host = 0, cores = there } end
  return list
end

local function simulated(name, count, chunks, more)
  local schedule = gp.schedule.build(name, { devices = count, chunks = chunks })
  local costs = setmetatable(more or {}, { __index = COSTS })
  local list = {}
  for _, op in ipairs { "F", "I", "W", "B", "R" } do list[op] = costs[op] end
  list.comm = costs.comm
  return schedule:lower({ checkpoint = costs.checkpoint, comms = false, update = "none" }):simulate(list),
    schedule
end

-- Seconds of a step on so many cores.
local function seconds(run, count, there, comm)
  return sharing.seconds(run, devices(count, 1, there), { [0] = there }, comm)
end

local function near(a, b) return math.abs(a - b) <= 1e-9 * math.max(a, b) end

describe("a step on shared cores", function()
  for _, name in ipairs(gp.schedule.names()) do
    local built, run = pcall(simulated, name, 4, 8)
    if built then
      it("takes what is simulated where each thread has a core: " .. name, function()
        assert.is_true(near(run.makespan, seconds(run, 4, 4)))
      end)

      it("takes all work together on one core: " .. name, function()
        local work = 0
        for _, one in ipairs(run.work) do work = work + one end
        assert.is_true(near(work, seconds(run, 4, 1)))
      end)

      it("takes no less on two cores than half of the work, nor than on four: " .. name, function()
        local work, half = 0, seconds(run, 4, 2)
        for _, one in ipairs(run.work) do work = work + one end
        assert.is_true(half >= math.max(work / 2, run.makespan) * (1 - 1e-9))
        assert.is_true(half <= seconds(run, 4, 1))
      end)
    end
  end

  it("waits for values on their way, while others have the cores", function()
    local comm = { F = { 1, 1, 1 }, B = { 2, 2, 2 } }
    local run = simulated("gpipe", 4, 8, { comm = comm })
    assert.is_true(near(run.makespan, seconds(run, 4, 4, comm)))
    assert.is_true(seconds(run, 4, 2, comm) >= seconds(run, 4, 2))
  end)

  it("is spread over the cores without gaps where there are too many actions", function()
    local run = simulated("gpipe", 4, 8)
    local exact, most, work = seconds(run, 4, 2), sharing.most, 0
    sharing.most = 1
    local spread = seconds(run, 4, 2)
    sharing.most = most
    for _, one in ipairs(run.work) do work = work + one end
    assert.equal(math.max(run.makespan, work / 2), spread)
    assert.is_true(spread <= exact)
  end)

  it("takes one core's time for one micro-batch, which is at one device at a time", function()
    local run = simulated("gpipe", 4, 1, { checkpoint = "never" })
    assert.is_true(near(run.makespan, seconds(run, 4, 1)))
  end)
end)

describe("the cores of devices", function()
  it("are counted only where there are too few for all threads", function()
    assert.is_nil(cores.hosts(devices(2, 1, 2), 2))
    assert.same({ [0] = 2 }, cores.hosts(devices(2, 2, 2), 2))
    assert.is_nil(cores.hosts(devices(4, 1, 2), 2))
    assert.equal(1, cores.share(devices(2, 1, 2)))
    assert.equal(1 / 2, cores.share(devices(4, 1, 2)))
    assert.equal(2 / 3, cores.share(devices(4, 1, 2), 3))
    assert.equal(1, cores.share(devices(4, 1, 2), 2))
  end)

  it("are all taken where each has a thread: then messages are received at a device's cost", function()
    local list = devices(3, 1, 4)
    assert.is_false(cores.are_taken(list, list[1]))
    list[2].threads = 2
    assert.is_true(cores.are_taken(list, list[1]))
    list[2].host = 1
    assert.is_false(cores.are_taken(list, list[1]))
  end)

  it("are shared by replicas", function()
    assert.same({ [0] = 1 }, cores.hosts(devices(4, 1, 2), 2, 2))
  end)

  it("are those of devices that are there: rates that are given have their own", function()
    local list = devices(4, 1, 2)
    for d = 1, 3 do list[d].flops = 1e9 end
    assert.is_nil(cores.hosts(list, 4))
  end)
end)
