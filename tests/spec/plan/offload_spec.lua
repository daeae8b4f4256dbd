-- tests/spec/plan/offload_spec.lua - checkpoint = "offload": what F saves waits in the host's
-- memory, which changes no bit.
local gp = require "gpipe"
local expect = require "tests.support.expect"
local nn, optim = gp.nn, gp.optim

local function blocks()
  gp.seed(3)
  local list = {}
  for i = 1, 5 do
    list[i] = nn.Sequential {
      nn.LayerNorm(32), nn.Linear(32, 96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, 32),
    }
  end
  list[6] = nn.Linear(32, 10)
  return nn.Sequential(list)
end

gp.seed(1)
local x, y = gp.randn { 25, 32 }, gp.randint(0, 10, { 25 })

local SCHEDULES = { gpipe = { 3, 3 }, ["1f1b"] = { 3, 3 }, zb_h1 = { 3, 3 },
  interleaved_1f1b = { 2, 1, 2, 1 } }

local function open(schedule, checkpoint, opts)
  local given = {
    balance = SCHEDULES[schedule], devices = 2, chunks = 8, schedule = schedule,
    checkpoint = checkpoint, loss = nn.CrossEntropyLoss(), seed = 5,
  }
  for key, value in pairs(opts or {}) do given[key] = value end
  return gp.pipeline(blocks(), given)
end

-- Returns what three steps leave behind, as text, and the bytes of each device.
local function train(schedule, checkpoint, opts)
  local pipe <close> = open(schedule, checkpoint, opts)
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local parts = {}
  for i = 1, 3 do
    parts[i] = ("%a"):format(pipe:step(x, y))
    opt:step()
  end
  for _, entry in ipairs(pipe:parameters()) do parts[#parts + 1] = entry.param:bytes() end
  return table.concat(parts, "\n"), pipe:memory()
end

-- What pipe:lowered() prints.
local function printed(pipe)
  local outer, lines = print, {}
  _G.print = function(line) lines[#lines + 1] = line end -- luacheck: ignore 122
  local ok, why = pcall(pipe.lowered, pipe)
  _G.print = outer -- luacheck: ignore 122
  assert.is_true(ok, why)
  return table.concat(lines, "\n")
end

local function saved(one) return (one.areas.saved or 0) + (one.areas.waste or 0) end

-- Some layers offloaded, others not.
local LAYERS = {
  { "offload", "keep", "offload", "keep", "offload", "keep" },
  { "offload", "recompute", "selective", "offload", "recompute", "keep" },
  { "recompute", "offload", "offload", "selective", "offload", "offload" },
}

describe("checkpoint with \"offload\" for some layers", function()
  for schedule in pairs(SCHEDULES) do
    it("gives the bits of never, and takes what was planned: " .. schedule, function()
      local wanted = train(schedule, "never")
      for i, layers in ipairs(LAYERS) do
        local got, memory = train(schedule, layers)
        assert.is_true(got == wanted, "layers " .. i)
        for _, one in ipairs(memory) do
          assert.equal(one.planned, one.measured)
          if one.host then assert.equal(one.host.planned, one.host.measured) end
        end
      end
    end)
  end

  it("puts on the host what those layers save, and nothing else", function()
    local opts = { devices = 1, balance = { 6 } }
    local pipe <close> = open("gpipe", { "keep", "offload", "keep", "offload", "keep", "keep" }, opts)
    pipe:step(x, y)
    local away, layers = 0, {}
    for _, one in ipairs(pipe:activations()) do
      if one.away then away, layers[one.layer] = away + (one.bytes + 63) // 64 * 64, true end
      assert.equal(one.layer == 2 or one.layer == 4, one.away)
      assert.equal(one.away, one.why:find("waits on the host", 1, true) ~= nil)
    end
    assert.same({ [2] = true, [4] = true }, layers)
    -- all micro-batches but the last one, whose backward pass follows at once
    local host = pipe:memory()[1].host.planned
    assert.is_true(host > 3 * away and host <= 8 * away)
  end)

  it("takes less the more layers it is said of", function()
    local last
    for count = 0, 6 do
      local list = {}
      for i = 1, 6 do list[i] = i <= count and "offload" or "keep" end
      local _, memory = train("gpipe", list, { devices = 1, balance = { 6 } })
      local bytes = saved(memory[1])
      assert.is_true(not last or bytes <= last, count)
      last = bytes
    end
    local _, all = train("gpipe", "offload", { devices = 1, balance = { 6 } })
    assert.is_true(last <= 1.3 * saved(all[1])) -- the loss keeps what it reads
  end)
end)

describe("checkpoint = \"offload\"", function()
  for schedule in pairs(SCHEDULES) do
    it("gives the bits of never, and takes what was planned: " .. schedule, function()
      local wanted = train(schedule, "never")
      local got, memory = train(schedule, "offload")
      assert.is_true(got == wanted)
      for _, one in ipairs(memory) do
        assert.equal(one.planned, one.measured)
        if one.host then assert.equal(one.host.planned, one.host.measured) end
      end
    end)
  end

  it("keeps a few micro-batches on the device, however many there are", function()
    local sums = {}
    for _, chunks in ipairs { 8, 16 } do
      local opts = { chunks = chunks, devices = 1, balance = { 6 } }
      local rows = { gp.randn { 8 * chunks, 32 }, gp.randint(0, 10, { 8 * chunks }) }
      local pipe <close> = open("gpipe", "offload", opts)
      pipe:step(rows[1], rows[2])
      local memory = pipe:memory()
      sums[#sums + 1] = { saved(memory[1]), memory[1].host.planned }
    end
    assert.equal(sums[1][1], sums[2][1])
    assert.is_true(sums[2][2] > 1.5 * sums[1][2])
  end)

  it("takes less of the device than never does", function()
    local _, never = train("gpipe", "never")
    local _, memory = train("gpipe", "offload")
    for d, one in ipairs(memory) do
      assert.is_true(one.planned < never[d].planned)
      assert.is_true(saved(one) < 0.6 * saved(never[d]))
      assert.is_nil(never[d].host)
    end
    assert.matches("in host memory +%d", tostring(memory))
  end)

  it("leaves alone what would not make a device take less", function()
    for _, schedule in ipairs { "1f1b", "zb_h1" } do
      local opts = { devices = 4, balance = { 2, 2, 1, 1 } }
      local wanted, never = train(schedule, "never", opts)
      local got, memory = train(schedule, "offload", opts)
      assert.is_true(got == wanted)
      for d, one in ipairs(memory) do
        assert.equal(one.host ~= nil, one.planned < never[d].planned, schedule)
      end
    end
  end)

  it("keeps what a backward pass reads soon", function()
    local _, memory = train("1f1b", "offload", { chunks = 2 })
    for _, one in ipairs(memory) do assert.is_nil(one.host) end
  end)

  it("gives the host's memory back with the plan", function()
    local pipe <close> = open("gpipe", "offload")
    for _, rows in ipairs { 25, 24, 16, 25 } do
      pipe:step(x:narrow(1, 1, rows), y:narrow(1, 1, rows))
    end
    for _, one in ipairs(pipe:memory()) do
      assert.equal(one.host.planned, one.host.measured)
    end
  end)

  it("works in two halves", function()
    local function both(checkpoint)
      local pipe <close> = open("gpipe", checkpoint)
      local out = pipe:forward(x)
      pipe:backward(gp.ones(out.shape))
      local parts = {}
      for _, entry in ipairs(pipe:parameters()) do parts[#parts + 1] = entry.param.grad:bytes() end
      return table.concat(parts)
    end
    assert.is_true(both "offload" == both "never")
  end)

  it("goes on with the right bits after a step that failed", function()
    local pipe <close> = open("gpipe", "offload")
    local other <close> = open("gpipe", "never")
    local wrong = y:clone()
    wrong:fill_(99)
    for _, one in ipairs { pipe, other } do
      one:step(x, y)
      assert.is_false((pcall(one.step, one, x, wrong)))
    end
    assert.equal(other:step(x, y), pipe:step(x, y))
  end)

  it("says in the plan's lines what goes and what comes back", function()
    local pipe <close> = open("gpipe", "offload", { devices = 1, balance = { 6 } })
    pipe:step(x, y)
    local text = printed(pipe)
    assert.is_truthy(text:find("begins to put on the host what 0F0 saved", 1, true))
    assert.is_truthy(text:find("waits until the host has what 0F0 saved", 1, true))
    assert.is_truthy(text:find("begins to fetch what 0F0 saved", 1, true))
    assert.is_truthy(text:find("stage 0: saved values go to the host's memory", 1, true))
  end)

  it("is refused where no list of tasks ends", function()
    for _, checkpoint in ipairs { "offload", { "keep", "offload", "keep", "keep", "keep", "keep" } } do
      local pipe <close> = gp.pipeline(blocks(), {
        balance = { 3, 3 }, devices = 2, chunks = 2, schedule = "pipedream",
        checkpoint = checkpoint, loss = nn.CrossEntropyLoss(),
      })
      pipe:use(optim.SGD(pipe:parameters(), { lr = 1e-2 }))
      expect.fails_with("expected a synchronous one where saved values go", pipe.step, pipe, x, y)
    end
  end)
end)
