-- tests/spec/schedule/published_any_spec.lua - for every size, every generator makes a schedule or
-- says why it cannot.
--
-- The normal run takes a sample of p <= 16, m <= 64 and up to four stages per device; `scripts/test
-- --full` takes all.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local in_order = require "tests.support.in_order"

local function build(name, devices, chunks, options)
  local opts = { devices = devices, chunks = chunks }
  for key, value in pairs(options or {}) do opts[key] = value end
  return gp.schedule.build(name, opts)
end

-- ---- every size --------------------------------------------------------------------------------

local PAIRED = { chimera = true, dualpipe = true } -- these need an even number of devices
local LOOPED = { interleaved_1f1b = true, interleaved_zero_bubble = true, looped_bfs = true }

-- Options that make other lists than the defaults.
local variants = {
  ["1f1b"] = { {}, { warmup = 2 }, { warmup = 100 } },
  gpipe = { {}, { backward = "lifo" } },
  pipedream = { {}, { vertical_sync = true } },
  pipedream_2bw = { {}, { batches = 1 }, { batches = 7 } },
  zb_auto = { {}, { memory = 1 }, { memory = 2 }, { memory = 1000 },
    { F = 10, I = 12, W = 8, comm = 1, memory = 5 } },
}
for name in pairs(LOOPED) do
  variants[name] = {}
  for v = 1, 4 do variants[name][v] = { stages_per_device = v } end
end
for _, name in ipairs { "interleaved_1f1b", "interleaved_zero_bubble" } do
  for _, group in ipairs { 16, 17, 64 } do
    table.insert(variants[name], { stages_per_device = 3, group = group })
  end
end

local function check(name, sizes, chunks)
  for _, p in ipairs(sizes) do
    for _, m in ipairs(chunks) do
      for _, options in ipairs(variants[name] or { {} }) do
        if not (PAIRED[name] and p % 2 == 1) then
          local good, report = build(name, p, m, options):verify()
          assert(good, ("%s, %d devices, m = %d: %s"):format(name, p, m, report))
        end
      end
    end
  end
end

local function up_to(n)
  local list = {}
  for i = 1, n do list[i] = i end
  return list
end

local names = {
  "1f1b", "chimera", "dualpipe", "dualpipev", "gpipe", "interleaved_1f1b",
  "interleaved_zero_bubble", "looped_bfs",
  "naive", "pipedream", "pipedream_2bw", "v_half", "v_min", "zb_auto", "zb_h1", "zb_h2", "zbv",
}

describe("every generator", function()
  it("has a name", function()
    local known = {}
    for _, name in ipairs(gp.schedule.names()) do known[name] = true end
    for _, name in ipairs(names) do assert.is_true(known[name]) end
  end)

  for _, name in ipairs(names) do
    it("makes schedules: " .. name, function()
      check(name, { 1, 2, 3, 4, 5, 6, 8, 12, 16 }, { 1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33, 64 })
    end)
    it("makes schedules of every size #slow: " .. name,
      function() check(name, up_to(16), up_to(64)) end)
  end

  it("makes schedules with groups of every size #slow", function()
    for _, name in ipairs { "interleaved_1f1b", "interleaved_zero_bubble" } do
      for p = 1, 12 do
        for m = 1, 40 do
          for group = math.min(p, m), m + 1 do
            assert(build(name, p, m, { stages_per_device = 3, group = group }):verify())
          end
        end
      end
    end
  end)

  it("makes schedules of a thousand devices fast, where they are formulas", function()
    local sanitized = (os.getenv "GPIPE_SANITIZE" or "") ~= ""
    for _, name in ipairs { "gpipe", "1f1b", "interleaved_1f1b", "looped_bfs", "zb_h1" } do
      local began = os.clock()
      assert.equal(1024, build(name, 1024, 256).devices)
      assert.is_true(os.clock() - began < (sanitized and 60 or 2))
    end
  end)
end)

-- ---- costs of every stage ----------------------------------------------------------------------

describe("the automatic scheduler", function()
  it("takes the costs of each stage", function()
    local state = 1
    local function random() -- draws 0 .. 3, always the same
      state = (state * 48271) % 2147483647
      return state % 31 / 10
    end
    for p = 1, 9 do
      for m = 1, 20, 3 do
        local cost = { F = {}, I = {}, W = {} }
        for _, list in pairs(cost) do
          for d = 1, p do list[d] = random() end
        end
        cost.comm, cost.memory = random(), 1 + m % (2 * p)
        local s = assert(build("zb_auto", p, m, cost):verify())
        for _, peak in ipairs(in_order.peaks(s:rows())) do assert.is_true(peak <= cost.memory) end
      end
    end
  end)

  it("makes schedules that are shorter with them", function()
    local slow_w = { F = 1, I = 1, W = { 1, 1, 1, 9 }, comm = 0.5 }
    local made = in_order.time(build("zb_auto", 4, 8, slow_w), { F = 1, I = 1, W = 1, comm = 0.5 })
    assert.is_true(made < 60)
  end)
end)

-- ---- what a size or an option forbids ----------------------------------------------------------

describe("bad input", function()
  local wrong = {
    { "option 'devices' is 0, expected an integer >= 1", "zbv", 0, 4 },
    { "option 'devices' is 1.5 (float), expected an integer >= 1", "zbv", 1.5, 4 },
    { "option 'chunks' is 0, expected an integer >= 1", "dualpipe", 4, 0 },
    { "option 'chunks' is -1, expected an integer >= 1", "pipedream", 4, -1 },
    { "schedule chimera: 3 devices, expected an even number", "chimera", 3, 4 },
    { "schedule dualpipe: 5 devices, expected an even number", "dualpipe", 5, 4 },
    { "option 'stages_per_device' is 3, expected 2 (a V has two stages on each device)", "zbv", 2,
      4,
      { stages_per_device = 3 } },
    { "option 'stages_per_device' is 1, expected 2", "v_half", 2, 4, { stages_per_device = 1 } },
    { "option 'stages_per_device' is 4, expected 2", "v_min", 2, 4, { stages_per_device = 4 } },
    { "option 'stages_per_device' is 1, expected 2", "dualpipev", 2, 4, { stages_per_device = 1 } },
    { "option 'stages_per_device' is 0, expected an integer >= 1", "looped_bfs", 2, 4,
      { stages_per_device = 0 } },
    { "unknown option 'stages_per_device'", "1f1b", 2, 4, { stages_per_device = 2 } },
    { "schedule: option 'group' is 2, expected >= 4: a shorter group stalls 4 devices",
      "interleaved_1f1b", 4, 8,
      { group = 2 } },
    { "schedule: option 'group' is 2, expected >= 3: a shorter group stalls 4 devices",
      "interleaved_zero_bubble", 4, 3,
      { group = 2 } },
    { 'option \'backward\' is "filo" (string), expected one of "fifo", "lifo"', "gpipe", 2, 4,
      { backward = "filo" } },
    { "option 'memory' is 0, expected an integer >= 1", "zb_auto", 2, 4, { memory = 0 } },
    { "schedule zb_auto: option 'I' has 3 costs, expected one for each of 2 stages", "zb_auto", 2,
      4,
      { I = { 1, 1, 1 } } },
    { "schedule zb_auto: the cost F of stage 1 is -1, expected a number >= 0", "zb_auto", 2, 4,
      { F = { 1, -1 } } },
    { "schedule zb_auto: the cost W of stage 0 is nan (float), expected a number >= 0", "zb_auto",
      2, 4,
      { W = 0 / 0 } },
    { "option 'comm' is inf (float), expected a number >= 0", "zb_auto", 2, 4,
      { comm = math.huge } },
    { "option 'vertical_sync' is 1, expected true or false", "pipedream", 2, 4,
      { vertical_sync = 1 } },
    { "option 'batches' is 0, expected an integer >= 1", "pipedream_2bw", 2, 4, { batches = 0 } },
  }
  for _, case in ipairs(wrong) do
    local text, name, p, m, options = table.unpack(case)
    it("is refused: " .. text, function() fails_with(text, build, name, p, m, options) end)
  end
end)

-- ---- versions of the weights -------------------------------------------------------------------

-- Visits a row's actions: visit(part, updates so far).
local function walk(row, visit)
  local updates = 0
  for _, parts in ipairs(in_order.parse { row }[1]) do
    visit(parts[1], updates)
    if parts[1].op == "U" then updates = updates + 1 end
  end
end

-- Checks versions against a rule, and that they exist when they are used. Returns the most that a
-- stage keeps: from the oldest that any micro-batch still uses to the newest.
local function versions_of(row, rule)
  local most = 0
  local last_use, seen = {}, {}
  walk(row, function(part) if part.version then
    last_use[part.version] = (last_use[part.version] or 0) + 1 end end)
  walk(row, function(part, updates)
    if not part.version then return end
    assert.equal(rule(part.micro), part.version)
    assert.is_true(part.version <= updates)
    local oldest = updates
    for version, uses in pairs(last_use) do
      if (seen[version] or 0) < uses then oldest = math.min(oldest, version) end
    end
    most = math.max(most, updates - oldest + 1)
    seen[part.version] = (seen[part.version] or 0) + 1
  end)
  return most
end

describe("an asynchronous schedule", function()
  it("follows PipeDream's rule for versions and keeps p - s of them", function()
    for _, p in ipairs { 1, 2, 4, 8 } do
      local s = build("pipedream", p, 24)
      assert.equal(1, s.batch)
      for stage, row in ipairs(s:rows()) do
        local delay = p - stage
        assert.equal(delay + 1, versions_of(row, function(k) return math.max(0, k - delay) end))
      end
    end
  end)

  it("follows the rule of vertical sync and keeps p on every stage", function()
    for _, p in ipairs { 1, 2, 4, 8 } do
      for _, row in ipairs(build("pipedream", p, 24, { vertical_sync = true }):rows()) do
        assert.equal(p, versions_of(row, function(k) return math.max(0, k - (p - 1)) end))
      end
    end
  end)

  it("follows PipeDream-2BW's rule and never keeps more than two", function()
    for _, case in ipairs { { 1, 3 }, { 2, 1 }, { 4, 3 }, { 4, 8 }, { 8, 7 }, { 8, 2 },
      { 8, 1 } } do
      local p, m = table.unpack(case)
      local s = build("pipedream_2bw", p, m, { batches = 6 })
      assert.equal(m, s.batch)
      for _, row in ipairs(s:rows()) do
        assert.equal(2, versions_of(row, function(k) return math.max(0, k // m - 1) end))
      end
    end
  end)

  it("updates after every backward pass, or after the last of a batch", function()
    assert.same({ "0F0@0,0F1@0,0B0@0,0U0,0F2@1,0B1@0,0U1,0B2@1,0U2",
      "1F0@0,1B0@0,1U0,1F1@1,1B1@1,1U1,1F2@2,1B2@2,1U2" },
      build("pipedream", 2, 3):rows())
    assert.same({ "0F0@0,0F1@0,0B0@0,0F2@0,0B1@0,0U0,0F3@0,0B2@0,0B3@0,0U1",
      "1F0@0,1B0@0,1F1@0,1B1@0,1U0,1F2@0,1B2@0,1F3@0,1B3@0,1U1" },
      build("pipedream_2bw", 2, 2, { batches = 2 }):rows())
  end)

  it("of more micro-batches goes on where one of fewer begins to drain", function()
    local function check_prefix(name, p, short, long, first)
      local less, more = build(name, p, table.unpack(short)):rows(),
        build(name, p, table.unpack(long)):rows()
      for d = 1, p do
        local cut = more[d]:find(("%dF%d@"):format(d - 1, first), 1, true)
        assert.equal(more[d]:sub(1, cut - 2), less[d]:sub(1, cut - 2))
      end
    end
    for _, p in ipairs { 1, 2, 4, 8 } do
      for _, m in ipairs { 1, 3, 9 } do
        check_prefix("pipedream", p, { m }, { m + 4 }, m)
        check_prefix("pipedream", p, { m, { vertical_sync = true } },
          { m + 4, { vertical_sync = true } }, m)
        check_prefix("pipedream_2bw", p, { m, { batches = 2 } }, { m, { batches = 4 } }, 2 * m)
      end
    end
  end)
end)
