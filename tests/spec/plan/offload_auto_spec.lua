-- tests/spec/plan/offload_auto_spec.lua - checkpoint = "auto" where a device says how it reaches the
-- host's memory: it sends there what costs less time so than made again.
local gp = require "gpipe"
local expect = require "tests.support.expect"
local nn, optim = gp.nn, gp.optim

local LAYERS, ROWS = 6, 64

local function blocks()
  gp.seed(3)
  local list = {}
  for i = 1, LAYERS do
    list[i] = nn.Sequential { nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64) }
  end
  return nn.Sequential(list)
end

gp.seed(1)
local x, y = gp.randn { 8 * ROWS, 64 }, gp.randn { 8 * ROWS, 64 }

local function opts_of(checkpoint, devices, schedule)
  return {
    balance = ({ { LAYERS }, { 3, 3 }, [4] = { 2, 2, 1, 1 } })[#devices], devices = devices, chunks = 8,
    schedule = schedule or "gpipe", checkpoint = checkpoint, loss = nn.MSELoss(), seed = 5,
  }
end

local function devices_of(count, more)
  local list = {}
  for d = 1, count do
    list[d] = { "cpu:" .. d - 1 }
    for key, value in pairs(more or {}) do list[d][key] = value end
  end
  return list
end

-- Returns what three steps leave behind, as text, and the report of the memory.
local function train(opts)
  local pipe <close> = gp.pipeline(blocks(), opts)
  local opt, parts = optim.SGD(pipe:parameters(), { lr = 1e-2 }), {}
  for i = 1, 3 do
    parts[i] = ("%a"):format(pipe:step(x, y))
    opt:step()
  end
  for _, entry in ipairs(pipe:parameters()) do parts[#parts + 1] = entry.param:bytes() end
  return table.concat(parts, "\n"), pipe:memory(), pipe:activations()
end

-- What each device took with "never".
local function full(count, schedule)
  local wanted, memory = train(opts_of("never", devices_of(count), schedule))
  local bytes = {}
  for d, one in ipairs(memory) do bytes[d] = one.planned end
  return wanted, bytes
end

-- Devices with a share of what they took; of four the first one, which holds most micro-batches.
local function capped(bytes, share, link)
  local list = devices_of(#bytes, { host_link = link })
  for d, one in ipairs(list) do
    if #list < 4 or d == 1 then one.memory = math.floor(share * bytes[d]) end
  end
  return list
end

local FAST, SLOW = { bandwidth = 1e12 }, { bandwidth = 1e5 }

-- A dry run of one device with so much memory: what it would do, by the cost model.
local function dry(share, link, more)
  local device = { own = false, host_link = link }
  local whole = gp.dry_run(blocks(), {
    balance = { LAYERS }, devices = { device }, chunks = 8, schedule = "gpipe",
    checkpoint = "never", loss = nn.MSELoss(), sample = { x, y },
  }):memory()[1].planned
  device.memory = math.floor(share * whole)
  for key, value in pairs(more or {}) do device[key] = value end
  local made = gp.dry_run(blocks(), {
    balance = { LAYERS }, devices = { device }, chunks = 8, schedule = "gpipe",
    checkpoint = "auto", loss = nn.MSELoss(), sample = { x, y },
  })
  return made, made.core:step_time(made.core)
end

describe("checkpoint = \"auto\" with a link to the host's memory", function()
  for _, case in ipairs { { "gpipe", 1, { 0.8, 0.7 } }, { "gpipe", 2, { 0.8, 0.7 } },
    { "1f1b", 4, { 0.95 } }, { "zb_h1", 4, { 0.95 } } } do
    local schedule, count, shares = table.unpack(case)
    it(("gives the bits of never and keeps to the caps: %s, %d device%s"):format(schedule, count,
      count == 1 and "" or "s"), function()
      local wanted, bytes = full(count, schedule)
      for _, share in ipairs(shares) do
        local got, memory = train(opts_of("auto", capped(bytes, share, FAST), schedule))
        assert.is_true(got == wanted)
        for _, one in ipairs(memory) do
          assert.equal(one.planned, one.measured)
          assert.is_true(not one.cap or one.measured <= one.cap)
          if one.host then assert.equal(one.host.planned, one.host.measured) end
        end
        assert.is_truthy(memory[1].host)
      end
    end)
  end

  it("sends nothing over a link that nobody has described, or a slow one", function()
    local wanted, bytes = full(1)
    for _, link in ipairs { false, SLOW } do
      local got, memory, saved = train(opts_of("auto", capped(bytes, 0.7, link or nil)))
      assert.is_true(got == wanted)
      assert.is_nil(memory[1].host)
      for _, one in ipairs(saved) do assert.is_false(one.away) end
    end
  end)

  it("says which values wait there", function()
    local _, bytes = full(1)
    local _, _, saved = train(opts_of("auto", capped(bytes, 0.7, FAST)))
    local away = 0
    for _, one in ipairs(saved) do away = away + (one.away and 1 or 0) end
    assert.is_true(away > 0)
  end)

  it("is never slower by the cost model than without the link, and the slower the link the slower",
    function()
      for _, share in ipairs { 0.9, 0.75, 0.6, 0.5 } do
        local last
        for _, bandwidth in ipairs { 1e12, 4e9, 1e9, 2.5e8, 1e5 } do
          local made, time = dry(share, { bandwidth = bandwidth })
          if made.fits then
            assert.is_true(time > 0)
            assert.is_true(not last or last <= time * 1.02, share .. " " .. bandwidth)
            last = time
          end
        end
        local plain = dry(share, SLOW)
        assert.is_nil(plain:memory()[1].host)
      end
    end)

  it("takes no more of the host's memory than it may", function()
    local free = dry(0.6, FAST):memory()[1].host.planned
    for _, host in ipairs { free // 2, free // 4 } do
      local made = dry(0.6, FAST, { host_memory = host })
      local one = made:memory()[1].host
      assert.is_true(not one or one.planned <= host)
    end
  end)
end)

describe("option host_memory of a device", function()
  it("refuses what would wait there beyond it, with the numbers", function()
    local pipe <close> = gp.pipeline(blocks(),
      opts_of("offload", { { "cpu:0", host_memory = "64KiB" } }))
    expect.fails_with("device cpu:0 may have 64.0 KiB in the host's memory", pipe.step, pipe, x, y)
  end)

  it("is kept to where there is enough", function()
    local pipe <close> = gp.pipeline(blocks(),
      opts_of("offload", { { "cpu:0", host_memory = "64MiB" } }))
    pipe:step(x, y)
    local host = pipe:memory()[1].host
    assert.equal(64 << 20, host.cap)
    assert.is_true(host.measured <= host.cap)
  end)

  it("is said in a dry run", function()
    local made = gp.dry_run(blocks(), {
      balance = { LAYERS }, devices = { { own = false, host_memory = "64KiB" } }, chunks = 8,
      schedule = "gpipe", checkpoint = "offload", loss = nn.MSELoss(), sample = { x, y },
    })
    assert.is_false(made.fits)
    assert.matches("may take 64.0 KiB there", made:short())
  end)

  it("and host_link are checked", function()
    local function open(device)
      return gp.pipeline(blocks(), opts_of("auto", { device }))
    end
    expect.fails_with("host_memory", open, { "cpu:0", host_memory = "64 GB" })
    expect.fails_with("bandwidth", open, { "cpu:0", host_link = { latency = 1e-5 } })
    expect.fails_with("bandwidth", open, { "cpu:0", host_link = { bandwidth = 0 } })
  end)
end)
