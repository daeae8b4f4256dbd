-- tests/spec/schedule/published_spec.lua - the published schedules have their published lists,
-- times and memory.
--
-- Lists and numbers are those of shared/reference/schedules.md: the authors' own code made them, or
-- they were simulated from it. tests/support/in_order.lua computes times and memory, not the
-- product.
local gp = require "gpipe"
local in_order = require "tests.support.in_order"

local UNIT = { F = 1, I = 1, W = 1 }

local function build(name, devices, chunks, options)
  local opts = { devices = devices, chunks = chunks }
  for key, value in pairs(options or {}) do opts[key] = value end
  return gp.schedule.build(name, opts)
end

local function title(name, options)
  local words = { name }
  for key, value in pairs(options or {}) do words[#words + 1] = key .. " = " .. tostring(value) end
  return table.concat(words, ", ")
end

-- ---- lists -------------------------------------------------------------------------------------

-- Reads name, devices and micro-batches from a line of their own, then the rows.
local function read_golden(path)
  local cases = {}
  for line in io.lines(path) do
    local name, p, m = line:match "^([%w_]+) (%d+) (%d+)$"
    if name then
      cases[#cases + 1] = { name = name, p = math.tointeger(p), m = math.tointeger(m), rows = {} }
    elseif line:match "^%d" or line:match "^%(" then
      table.insert(cases[#cases].rows, line)
    end
  end
  return cases
end

describe("the list of actions", function()
  local cases = read_golden "tests/support/golden_schedules.txt"
  it("is known for thirteen schedules", function() assert.equal(13, #cases) end)
  for _, case in ipairs(cases) do
    it(("is the published one: %s, %d devices, %d micro-batches"):format(case.name, case.p, case.m),
      function()
      assert.equal(case.p, #case.rows)
      assert.same(case.rows, assert(build(case.name, case.p, case.m):verify()):rows())
    end)
  end

  it("of DualPipeV is torch's artifact, byte for byte", function()
    local text = table.concat(build("dualpipev", 4, 10):rows(), "\n") .. "\n"
    assert.equal(1261, #text)
    if not os.execute "command -v sha256sum >/dev/null 2>&1" then return end
    local pipe = assert(io.popen("printf '%s' '" .. text .. "' | sha256sum"))
    assert.equal("16ce4a29936e4c5ad774098add32489b4937942e3f5ab0108f17d2826b184529",
      pipe:read("a"):match "^%x+")
    pipe:close()
  end)

  it("of interleaved 1F1B for two devices with two stages each is torch's", function()
    assert.equal("0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3",
      build("interleaved_1f1b", 2, 4):rows()[1])
  end)

  it("of GPipe may run its backward passes in either order", function()
    assert.equal("0F0,0F1,0F2,0B2,0B1,0B0", build("gpipe", 1, 3, { backward = "lifo" }):rows()[1])
  end)

  it("of interleaved zero bubble with one stage each is ZB-H1's", function()
    for _, m in ipairs { 1, 3, 8, 11 } do
      assert.same(build("zb_h1", 4, m):rows(),
        build("interleaved_zero_bubble", 4, m, { stages_per_device = 1 }):rows())
    end
  end)

  it("of the automatic scheduler with p activations is ZB-H1's except for 2 <= m <= p", function()
    for _, p in ipairs { 1, 2, 3, 4, 8 } do
      for m = 1, 20 do
        local same = table.concat(build("zb_auto", p, m):rows(), " ")
          == table.concat(build("zb_h1", p, m):rows(), " ")
        assert.equal(not (p >= 3 and m >= 2 and m <= p), same, p .. " devices, m = " .. m)
      end
    end
  end)

  it("of interleaved 1F1B takes groups of the size wanted, the rest by itself if it is no less "
    .. "than p", function()
    local function last_row(m, group)
      return build("interleaved_1f1b", 2, m, { group = group }):rows()[2]
    end
    local first, rest = "^1F0,1F1,1F2,1F3,1F4,3F0,3B0,", ",3B5,3B6,1B5,1B6$"
    assert.truthy(last_row(7, 5):match(first .. ".*" .. rest))
    assert.equal(last_row(6), last_row(6, 2))
    assert.truthy(last_row(6, 5):match "^1F0,1F1,1F2,1F3,1F4,1F5,3F0,3B0,")
    assert.truthy(last_row(5):match "^1F0,1F1,1F2,3F0,3B0,.*,3B3,3B4,1B3,1B4$")
  end)
end)

-- ---- times -------------------------------------------------------------------------------------

-- {name, options, {devices, micro-batches, makespan, span where it is another}, ...}: F = I = W =
-- 1, B = 2
local times = {
  { "naive", nil, { 4, 8, 96 } },
  { "gpipe", nil, { 4, 8, 33 }, { 8, 16, 69 }, { 4, 4, 21 } },
  { "gpipe", { backward = "lifo" }, { 4, 8, 33 }, { 8, 16, 69 } },
  { "1f1b", nil, { 4, 8, 33 }, { 8, 16, 69 } },
  { "1f1b", { warmup = 2 }, { 4, 8, 33 }, { 8, 16, 69 } },
  { "interleaved_1f1b", nil, { 4, 8, 28.5 }, { 8, 16, 58.5 }, { 4, 3, 15 } },
  { "interleaved_1f1b", { stages_per_device = 4 }, { 4, 8, 26.25 }, { 8, 16, 53.25 } },
  { "interleaved_1f1b", { group = 10 }, { 4, 10, 34.5 } },
  { "interleaved_1f1b", { group = 4 }, { 4, 10, 34.5 } },
  { "looped_bfs", nil, { 4, 8, 28.5 }, { 8, 16, 58.5 }, { 4, 4, 16.5 } },
  { "interleaved_zero_bubble", nil, { 4, 8, 25.5 }, { 8, 16, 51.5 } },
  { "zb_h1", nil, { 4, 8, 27 }, { 8, 16, 55 } },
  { "zb_h2", nil, { 4, 8, 27, 24 }, { 8, 16, 55, 48 } },
  { "zb_auto", nil, { 4, 8, 27 }, { 8, 16, 55 } },
  { "zb_auto", { memory = 12 }, { 8, 16, 55, 51 } },
  { "zb_auto", { memory = 15 }, { 8, 16, 55, 48 } },
  { "zb_auto", { memory = 16 }, { 8, 16, 55, 48 } },
  { "zbv", nil, { 4, 8, 25.5, 24 }, { 8, 16, 51.5, 48 }, { 8, 4, 19.5 }, { 8, 8, 27.5 } },
  { "v_half", nil, { 4, 8, 26.5 }, { 8, 16, 56.5 } },
  { "v_min", nil, { 4, 8, 29.5 }, { 8, 16, 61.5 } },
  { "dualpipev", nil, { 4, 8, 27 }, { 8, 16, 55 }, { 4, 10, 33 } },
  { "dualpipe", nil, { 4, 8, 26 }, { 8, 16, 54 } },
  { "chimera", nil, { 4, 8, 30 }, { 8, 16, 66 }, { 4, 4, 16 }, { 8, 8, 36 } },
}

-- The same for F = 10, I = 12, W = 8 and a delay of 1 between devices; eight devices, 16 and 32
-- micro-batches
local profiled = { F = 10, I = 12, W = 8, comm = 1 }
local unequal = {
  { "gpipe", nil, { 8, 16, 704 }, { 8, 32, 1184 } },
  { "1f1b", nil, { 8, 16, 730 }, { 8, 32, 1238 } },
  { "1f1b", { warmup = 2 }, { 8, 16, 704 }, { 8, 32, 1184 } },
  { "interleaved_1f1b", nil, { 8, 16, 615 }, { 8, 32, 1095 } },
  { "interleaved_1f1b", { stages_per_device = 4 }, { 8, 16, 594.5 }, { 8, 32, 1074.5 } },
  { "looped_bfs", nil, { 8, 16, 599 }, { 8, 32, 1079 } },
  { "interleaved_zero_bubble", nil, { 8, 16, 565 }, { 8, 32, 1045 } },
  { "zb_h1", nil, { 8, 16, 606 }, { 8, 32, 1086 } },
  { "zb_h2", nil, { 8, 16, 557, 536 }, { 8, 32, 1037 } },
  { "zb_auto", profiled, { 8, 16, 606 } },
  { "zb_auto", { F = 10, I = 12, W = 8, comm = 1, memory = 16 }, { 8, 16, 557, 528 } },
  { "zbv", nil, { 8, 16, 555, 548 }, { 8, 32, 1035 } },
  { "v_half", nil, { 8, 16, 639 }, { 8, 32, 1119 } },
  { "v_min", nil, { 8, 16, 819 }, { 8, 32, 1475 } },
  { "dualpipev", nil, { 8, 16, 620 }, { 8, 32, 1128 } },
  { "dualpipe", nil, { 8, 16, 575 }, { 8, 32, 1069 } },
  { "chimera", nil, { 8, 16, 691 }, { 8, 32, 1315 } },
}

local function check_times(cases, cost)
  for _, case in ipairs(cases) do
    it("is the published one: " .. title(case[1], case[2]), function()
      for i = 3, #case do
        local p, m, makespan, span = table.unpack(case[i])
        local measured, longest = in_order.time(build(case[1], p, m, case[2]), cost)
        assert.near(makespan, measured, 1e-9)
        if span then assert.near(span, longest, 1e-9) end
      end
    end)
  end
end

describe("the time of a step with equal costs", function() check_times(times, UNIT) end)
describe("the time of a step with unequal costs and delays",
  function() check_times(unequal, profiled) end)

describe("Chimera", function()
  it("takes ten slots for four micro-batches on four devices where B takes as long as F", function()
    assert.equal(10, (in_order.time(build("chimera", 4, 4), { F = 1, I = 1, W = 0 })))
  end)
end)

-- ---- memory ------------------------------------------------------------------------------------

-- Activations of one stage that are alive on device r of p with m micro-batches (m >= 2p, p divides
-- m).
local memory = {
  { "naive", nil, function() return 1 end },
  { "gpipe", nil, function(_, _, m) return m end },
  { "1f1b", nil, function(r, p) return p - r end },
  { "1f1b", { warmup = 2 }, function(r, p) return 2 * (p - 1 - r) + 1 end },
  { "pipedream", nil, function(r, p) return p - r end },
  { "pipedream_2bw", nil, function(r, p) return p - r end },
  { "interleaved_1f1b", nil, function(r, p) return p + 2 * (p - 1 - r) + 1 end },
  { "interleaved_1f1b", { stages_per_device = 4 },
    function(r, p) return 3 * p + 2 * (p - 1 - r) + 1 end },
  { "looped_bfs", nil, function(_, _, m) return 2 * m end },
  { "interleaved_zero_bubble", nil, function(_, p) return 2 * p end },
  { "zb_h1", nil, function(_, p) return p end },
  { "zb_h2", nil, function(_, p) return 2 * p - 1 end },
  { "zb_auto", nil, function(_, p) return p end },
  { "zbv", nil, function(_, p) return 2 * p end },
  { "v_half", nil, function(_, p) return p + 2 end },
  { "dualpipev", nil, function(_, p) return 2 * p + 1 end },
  { "dualpipe", nil, function(_, p) return p + 1 end },
  { "chimera", nil, function(r, p) return math.min(p // 2 + 1 + r, 3 * p // 2 - r) end },
}

describe("memory", function()
  for _, case in ipairs(memory) do
    it("is the published one on every device: " .. title(case[1], case[2]), function()
      for _, size in ipairs { { 4, 8 }, { 4, 12 }, { 8, 16 } } do
        local p, m = table.unpack(size)
        local wanted = {}
        for r = 0, p - 1 do wanted[r + 1] = case[3](r, p, m) end
        assert.same(wanted, in_order.peaks(build(case[1], p, m, case[2]):rows()))
      end
    end)
  end

  it("of the fullest device is the published one: V-Min, V-Half", function()
    for p = 2, 16 do
      local peak = math.max(table.unpack(in_order.peaks(build("v_min", p, 3 * p):rows())))
      assert.equal(2 * ((p + 4) // 3), peak, "V-Min on " .. p)
    end
    for _, p in ipairs { 3, 5 } do
      assert.equal(p + 1, math.max(table.unpack(in_order.peaks(build("v_half", p, 3 * p):rows()))))
    end
  end)

  it("never exceeds the limit of the automatic scheduler", function()
    for _, p in ipairs { 1, 2, 3, 8 } do
      for _, limit in ipairs { 1, 2, 3, 7, 40 } do
        local s = build("zb_auto", p, 13, { memory = limit, F = 2, I = 3, W = 1, comm = 1 })
        for _, peak in ipairs(in_order.peaks(s:rows())) do assert.is_true(peak <= limit) end
      end
    end
  end)
end)
