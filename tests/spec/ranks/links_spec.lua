-- tests/spec/ranks/links_spec.lua - `gpipe-lua links`: measured ways between ranks, as a table, as
-- a file, and as the links of a cluster that is planned for.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local jobs = require "tests.support.jobs"
local json = require "gpipe.io.json"

local RATES = { memory = "8GiB", flops = 1e13, bandwidth = 3e11 }

local function cluster(fields)
  local all = {}
  for key, value in pairs(RATES) do all[key] = value end
  for key, value in pairs(fields) do all[key] = value end
  return gp.cluster(all)
end

local function written(value)
  return child.file(type(value) == "string" and value or json.encode(value))
end

local function example()
  return {
    format = "gpipe-lua links 1", ranks = 3, hosts = { "a", "a", "b" },
    links = {
      { from = 0, to = 1, latency = 1e-6, bandwidth = 1e10 },
      { from = 0, to = 2, latency = 1e-4, bandwidth = 1e8 },
      { from = 1, to = 0, latency = 1e-6, bandwidth = 1e10 },
      { from = 1, to = 2, latency = 1e-4, bandwidth = 2e8 },
      { from = 2, to = 0, latency = 1e-4, bandwidth = 1e8 },
      { from = 2, to = 1, latency = 1e-4, bandwidth = 2e8 },
    },
  }
end

describe("gpipe-lua links", function()
  it("measures every pair of ranks in both directions, and saves it", function()
    local path = os.tmpname()
    os.remove(path)
    local out, err, code = child.run { "--ranks", "3", "links", "--save", path }
    assert.equal("", err)
    assert.equal(0, code)
    local _, lines = out:gsub("\n", "")
    assert.equal(7, lines)
    assert.truthy(out:find "rank 2 +rank 1 +%d+%.%d us")
    local read = assert(json.read(path))
    assert.equal(3, read.ranks)
    assert.equal(6, #read.links)
    for _, one in ipairs(read.links) do
      assert.is_true(one.latency > 0 and one.latency < 1)
      assert.is_true(one.bandwidth > 1e6 and one.bandwidth < 1e12)
      assert.equal(6, #one.times)
      for i, time in ipairs(one.times) do
        assert.is_true(time[2] >= (i > 1 and one.times[i - 1][2] or one.latency))
        assert.same({ 0, 0 }, { time[3], time[4] }) -- through memory: most of it is waiting
      end
    end
    local list = cluster { links = path, devices = 2 }
    assert.equal(6, #list)
    assert.equal("sim:2/1", list[6][1])
    os.remove(path)
  end)

  for _, way in ipairs { "tcp", "hosts", "mpi" } do
    it("measures ranks that are connected by " .. way, function()
      local missing = jobs.missing(way)
      if missing then return pending(missing) end
      local path = os.tmpname()
      local _, err, code = jobs.run(way, 2, { "links", "--force", "--save", path })
      assert.equal("", err)
      assert.equal(0, code)
      local links = assert(json.read(path)).links
      assert.equal(2, #links)
      for _, one in ipairs(links) do
        for _, time in ipairs(one.times) do
          assert.is_true(time[3] >= 0 and time[3] < 1 and time[4] >= 0 and time[4] < 1)
        end
      end
      os.remove(path)
    end)
  end

  it("sends where GPIPE_RANKS_SHARED is 0: then both ends work", function()
    local path = os.tmpname()
    local _, err, code = jobs.run("unix", 2, { "links", "--force", "--save", path },
      { GPIPE_RANKS_SHARED = "0" })
    assert.same({ "", 0 }, { err, code })
    local last = assert(json.read(path)).links[1].times[6]
    os.remove(path)
    assert.is_true(last[3] > 0 and last[4] > 0)
  end)

  it("keeps a file that is there, and measures nothing then", function()
    local path = written "kept"
    local out, err, code = child.run { "--ranks", "2", "links", "--save", path }
    assert.equal("", out)
    assert.truthy(err:find("is there, expected another FILE, or --force", 1, true), err)
    assert.equal(1, code)
    os.remove(path)
  end)

  it("wants two ranks", function()
    local _, err, code = child.run { "links" }
    assert.truthy(err:find("there is one rank, expected two or more", 1, true))
    assert.equal(2, code)
  end)
end)

describe("a probe between two ranks", function()
  -- over MPI the last answer may still be in a queue when the end that answers is done
  for _, way in ipairs { "unix", "mpi" } do
    it("gets every answer over " .. way, function()
      local missing = jobs.missing(way)
      if missing then return pending(missing) end
      local out, err, code = jobs.script(way, 2, [[
        local core, rank, sum = require "gpipe.core", require("gpipe").rank(), 0
        for i = 1, 40 do
          for _, probe in ipairs { core.rank_probe, core.link_probe } do
            local from, bytes = i % 2, i % 3 == 0 and 40000 or 8
            local seconds, _, mean = probe(from, 1 - from, bytes, 1 + i % 6, 3)
            assert((seconds > 0) == (from == rank) and mean >= seconds)
            sum = sum + (seconds > 0 and 1 or 0)
          end
        end
        assert(sum == 40)
        print "all"]])
      assert.equal("", err)
      assert.equal("all\n", out)
      assert.equal(0, code)
    end)

    it("tells what messages take from threads that compute, over " .. way, function()
      local missing = jobs.missing(way)
      if missing then return pending(missing) end
      local out, err, code = jobs.script(way, 2, [[
        local core, rank = require "gpipe.core", require("gpipe").rank()
        for i = 1, 6 do
          local from, bytes, burst = i % 2, i % 3 == 0 and 1 << 20 or 8, 1 + i % 2
          local seconds, _, _, work = core.rank_probe(from, 1 - from, bytes, burst, 5, 0, 0, 0.1)
          assert((seconds > 0) == (from == rank))
          assert(work >= 0 and work < 1, work)
          local _, _, _, none = core.link_probe(from, 1 - from, bytes, burst, 5, 0, 0, 0.1)
          assert(none == 0)
        end
        print "all"]])
      assert.same({ "", "all\n", 0 }, { err, out, code })
    end)
  end

  it("ends with the rank that leaves in the middle of it", function()
    local _, err, code = jobs.script("unix", 2, [[
      local core, rank = require "gpipe.core", require("gpipe").rank()
      if rank == 1 then
        core.rank_probe(0, 1, 8, 1, 3)
        error "enough"
      end
      core.rank_probe(0, 1, 8, 1, 3)
      core.rank_probe(0, 1, 8, 1, 3, 0, 0, 10)]])
    assert.truthy(err:find("enough", 1, true), err)
    assert.equal(1, code)
  end)
end)

describe("gp.cluster {links = FILE}", function()
  it("plans with the way between each two ranks", function()
    local path = written(example())
    local devices = require "gpipe.plan.devices"
    local list = devices.read("test", cluster { links = path, devices = 2,
      link = { latency = 1e-7, bandwidth = 1e11 } })
    os.remove(path)
    assert.same({ 1e-7, 1e11 }, { devices.between(list[1], list[2]) })
    assert.same({ 1e-6, 1e10 }, { devices.between(list[2], list[3]) })
    assert.same({ 1e-4, 2e8 }, { devices.between(list[4], list[5]) })
    assert.same({ 0, 0, 1 }, { list[1].host, list[3].host, list[5].host })
    assert.same({ latency = 1e-4, bandwidth = 1e8 },
      { latency = list[1].network.latency, bandwidth = list[1].network.bandwidth })
  end)

  it("makes a step longer where the measured way is slow", function()
    local function seconds(bandwidth)
      local measured = example()
      for _, one in ipairs(measured.links) do one.bandwidth = bandwidth end
      local path, layers = written(measured), {}
      for i = 1, 6 do
        layers[i] = { forward = 1e-3, weight = 1e-3, output_bytes = 1e6, saved_bytes = 1 }
      end
      local plan = assert(gp.plan(gp.profile { layers = layers }, nil, {
        devices = cluster { links = path }, batch = 6, chunks = 6, schedules = { "1f1b" },
        checkpoint = "never",
      }))
      os.remove(path)
      for _, row in ipairs(plan.rows) do
        if row.devices == 3 then return row.seconds end
      end
    end
    assert.is_true(seconds(1e8) > seconds(1e12) + 0.02)
  end)

  it("adds the end of a step, of which ranks tell each other: two latencies", function()
    local function best(latency, times)
      local measured = example()
      for _, one in ipairs(measured.links) do
        one.latency, one.bandwidth, one.times = latency, 1e12, times
      end
      local path, layers = written(measured), {}
      for i = 1, 3 do
        layers[i] = { forward = 1e-3, weight = 1e-3, output_bytes = 0, saved_bytes = 1 }
      end
      local plan = assert(gp.plan(gp.profile { layers = layers }, nil, {
        devices = cluster { links = path }, batch = 1, chunks = 1, schedules = { "1f1b" },
        checkpoint = "never",
      }))
      os.remove(path)
      for _, row in ipairs(plan.rows) do
        if row.devices == 3 then return row.seconds end
      end
    end
    -- twice from rank 0 to 2 and back, and the end
    assert.near(6e-3 + 4 * 1e-3 + 2 * 1e-3, best(1e-3), 1e-9)
    assert.near(6e-3, best(0), 1e-9)
    -- where the mean was measured, it counts
    assert.near(6e-3 + 6 * 2e-3, best(1e-3, { { 8, 2e-3 }, { 16, 3e-3 } }), 1e-9)
  end)

  it("is missed in a plan for ranks of two hosts, and in no other", function()
    local function text(opts)
      local layers, list = {}, {}
      for i = 1, 4 do layers[i] = { forward = 1e-3, weight = 1e-3, saved_bytes = 1 } end
      for r = 0, 1 do
        list[r + 1] = { "sim:" .. r, rank = r, host = opts.hosts == 2 and r or 0, network = opts.network }
        for key, value in pairs(RATES) do list[r + 1][key] = value end
      end
      return tostring(assert(gp.plan(gp.profile { layers = layers }, nil, { devices = list,
        link = opts.link, batch = 4, schedules = "gpipe" })))
    end
    local hint = 'the way between hosts takes no time here: links = "measure" lets it'
    local way = { latency = 1e-9, bandwidth = 1e12 }
    assert.truthy(text { hosts = 2 }:find(hint, 1, true))
    for _, opts in ipairs { { hosts = 1 }, { hosts = 2, link = way }, { hosts = 2, network = way } } do
      assert.falsy(text(opts):find(hint, 1, true))
    end
  end)

  it("refuses other files, and hosts beside it", function()
    local path = written(example())
    fails_with("expected links alone", cluster, { links = path, hosts = 2 })
    os.remove(path)
    local short = json.encode { format = "gpipe-lua links 1", ranks = 2, hosts = { "a" }, links = {} }
    local unsorted = example()
    unsorted.links[1].times = { { 16, 1e-3 }, { 8, 2e-3 } }
    local idle = example()
    idle.links[1].times = { { 8, 1e-3, -1e-6, 0 }, { 16, 2e-3, 0, 0 } }
    for _, broken in ipairs { "no JSON", "{}", short, json.encode(unsorted), json.encode(idle) } do
      path = written(broken)
      fails_with("gp.cluster: ", cluster, { links = path })
      os.remove(path)
    end
    fails_with("gp.cluster: ", cluster, { links = "/nowhere/links.json" })
    for text, why in pairs { ["no JSON"] = "JSON byte 0: found", null = "it holds null" } do
      path = written(text)
      fails_with(("gp.cluster: links: %s: %s"):format(path, why), cluster, { links = path })
      os.remove(path)
    end
  end)
end)
