-- tests/spec/schedule/simulate_spec.lua - the simulator gives exactly the reference's figures.
--
-- Tables are those of schedules.md (1.2 formulas, 1.3 unequal costs, 1.4 channels, Appendix A unit
-- costs). Costs there are of a device's whole share of the model, so with v stages per device each
-- costs 1/v.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local schedule = gp.schedule

local function build(name, p, m, extra)
  local opts = { devices = p, chunks = m }
  for key, value in pairs(extra or {}) do opts[key] = value end
  return schedule.build(name, opts)
end

-- Simulates with costs of a whole device's share.
local function run(s, F, I, W, rest)
  local v, costs = s.stages / s.devices, {}
  for key, value in pairs(rest or {}) do costs[key] = value end
  costs.F, costs.I, costs.W = F / v, I / v, W / v
  return s:simulate(costs)
end

local function most(list) return math.max(table.unpack(list)) end

-- Compares up to the rounding of sums of thirds and tenths.
local function near(wanted, is, what)
  assert(math.abs(wanted - is) < 1e-9 * math.max(1, math.abs(wanted)),
    ("%s: %s, expected %s"):format(what, is, wanted))
end

local function title(case)
  return case[1] .. (next(case[2]) and " with options " .. tostring(next(case[2])) or "")
end

-- ---- the reference's tables --------------------------------------------------------------------

-- name, options, makespans and spans of p = 4 m = 8 and p = 8 m = 16
local unit_costs = {
  { "gpipe", {}, 33, 33, 69, 69 },
  { "gpipe", { backward = "lifo" }, 33, 33, 69, 69 },
  { "1f1b", {}, 33, 33, 69, 69 },
  { "1f1b", { warmup = 2 }, 33, 33, 69, 69 },
  { "interleaved_1f1b", { stages_per_device = 2 }, 28.5, 28.5, 58.5, 58.5 },
  { "interleaved_1f1b", { stages_per_device = 4 }, 26.25, 26.25, 53.25, 53.25 },
  { "looped_bfs", { stages_per_device = 2 }, 28.5, 28.5, 58.5, 58.5 },
  { "interleaved_zero_bubble", { stages_per_device = 2 }, 25.5, 25.5, 51.5, 51.5 },
  { "zb_h1", {}, 27, 27, 55, 55 },
  { "zb_h2", {}, 27, 24, 55, 48 },
  { "zbv", {}, 25.5, 24, 51.5, 48 },
  { "v_half", {}, 26.5, 26.5, 56.5, 56.5 },
  { "v_min", {}, 29.5, 29.5, 61.5, 61.5 },
  { "dualpipev", {}, 27, 27, 55, 55 },
  { "dualpipe", {}, 26, 26, 54, 54 },
  { "chimera", {}, 30, 30, 66, 66 },
}

-- The same for F = 10, I = 12, W = 8, comm = 1, p = 8: makespan, span and peak of m = 16, makespan
-- of m = 32
local unequal_costs = {
  { "gpipe", {}, 704, 704, 16, 1184 },
  { "1f1b", {}, 730, 730, 8, 1238 },
  { "1f1b", { warmup = 2 }, 704, 704, 15, 1184 },
  { "interleaved_1f1b", { stages_per_device = 2 }, 615, 615, 23, 1095 },
  { "interleaved_1f1b", { stages_per_device = 4 }, 594.5, 594.5, 39, 1074.5 },
  { "looped_bfs", { stages_per_device = 2 }, 599, 599, 32, 1079 },
  { "interleaved_zero_bubble", { stages_per_device = 2 }, 565, 565, 16, 1045 },
  { "zb_h1", {}, 606, 606, 8, 1086 },
  { "zb_auto", { memory = 8, F = 10, I = 12, W = 8, comm = 1 }, 606, 606, 8, 1086 },
  { "zb_h2", {}, 557, 536, 15, 1037 },
  { "zb_auto", { memory = 16, F = 10, I = 12, W = 8, comm = 1 }, 557, 528, 16, 1037 },
  { "zbv", {}, 555, 548, 16, 1035 },
  { "v_half", {}, 639, 639, 10, 1119 },
  { "v_min", {}, 819, 819, 8, 1475 },
  { "dualpipev", {}, 620, 620, 17, 1128 },
  { "dualpipe", {}, 575, 575, 9, 1069 },
  { "chimera", {}, 691, 691, 8, 1315 },
}

-- Whether rendezvous works, and the least capacity that does not deadlock and that costs no time: p
-- = 4 m = 8, p = 8 m = 16.
local capacities = {
  { "gpipe", {}, 0, 0, 0, 0 },
  { "1f1b", {}, 1, 1, 1, 1 },
  { "interleaved_1f1b", {}, 1, 1, 1, 1 },
  { "zb_h1", {}, 1, 1, 1, 1 },
  { "zb_h2", {}, 1, 1, 1, 1 },
  { "zbv", {}, 1, 1, 1, 1 },
  { "dualpipev", {}, 1, 1, 1, 1 },
  { "dualpipe", {}, 1, 1, 1, 1 },
  { "chimera", {}, 1, 1, 1, 1 },
  { "interleaved_zero_bubble", {}, 2, 3, 4, 6 },
  { "looped_bfs", {}, 2, 4, 2, 8 },
}

local sizes = { { 4, 8 }, { 8, 16 } }

describe("simulate {memory = false}", function()
  it("has the same times, and nothing of what devices hold", function()
    local s = gp.schedule.build("zb_h1", { devices = 3, chunks = 5 })
    local all, times = s:simulate { F = 2, comm = 1 }, s:simulate { F = 2, comm = 1, memory = false }
    assert.equal(all.makespan, times.makespan)
    assert.same(all.finish, times.finish)
    assert.same(all.critical, times.critical)
    assert.is_true(all.peak_live[1] > 0)
    assert.same({ 0, 0, 0 }, times.peak_live)
  end)

  it("is the only boolean that the option takes", function()
    local s = gp.schedule.build("gpipe", { devices = 2, chunks = 2 })
    local good, message = pcall(s.simulate, s, { memory = true })
    assert.is_false(good)
    assert.matches("memory is true, expected bytes, or false", message)
  end)
end)

describe("unit-cost makespans", function()
  for _, case in ipairs(unit_costs) do
    it("of " .. title(case), function()
      for i, size in ipairs(sizes) do
        local r = run(build(case[1], size[1], size[2], case[2]), 1, 1, 1)
        near(case[1 + 2 * i], r.makespan, "makespan")
        near(case[2 + 2 * i], r.span, "span")
        for d = 1, size[1] do near(3 * size[2], r.work[d], "work") end
      end
    end)
  end

  it("of the smaller cases", function()
    near(21, build("gpipe", 4, 4):simulate().makespan, "gpipe")
    near(16.5, run(build("looped_bfs", 4, 4, { stages_per_device = 2 }), 1, 1, 1).makespan,
      "looped_bfs")
    near(33, run(build("dualpipev", 4, 10), 1, 1, 1).makespan, "dualpipev")
    near(16, build("chimera", 4, 4):simulate { B = 2 }.makespan, "chimera")
    near(10, build("chimera", 4, 4):simulate { B = 1 }.makespan, "chimera, B = F")
    near(36, build("chimera", 8, 8):simulate { B = 2 }.makespan, "chimera of 8")
  end)
end)

describe("makespans, spans and peaks with unequal costs and latency", function()
  for _, case in ipairs(unequal_costs) do
    it("of " .. title(case), function()
      local r = run(build(case[1], 8, 16, case[2]), 10, 12, 8, { comm = 1 })
      near(case[3], r.makespan, "makespan")
      near(case[4], r.span, "span")
      assert.equal(case[5], most(r.peak_live))
      near(1 - 480 / case[3], r.bubble[1], "bubble")
      local longer = run(build(case[1], 8, 32, case[2]), 10, 12, 8, { comm = 1 })
      near(case[6], longer.makespan, "makespan of 32")
    end)
  end
end)

describe("channels", function()
  local function least(s)
    local full, works = s:simulate().makespan, nil
    for capacity = 0, 16 do
      local good, r = pcall(s.simulate, s, { capacity = capacity })
      works = works or good and capacity or nil
      if good and r.makespan == full then return works, capacity end
    end
  end

  for _, case in ipairs(capacities) do
    it(("of %s need the capacity of the reference"):format(case[1]), function()
      for i, size in ipairs(sizes) do
        local works, fast = least(build(case[1], size[1], size[2], case[2]))
        assert.same({ case[1 + 2 * i], case[2 + 2 * i] }, { works, fast })
      end
    end)
  end

  it("too small for a schedule are refused by name", function()
    fails_with("simulate: device 0 cannot send what 0F3 made: its channel holds 0 values",
      build("1f1b", 4, 8).simulate, build("1f1b", 4, 8), { capacity = 0 })
  end)
end)

-- ---- formulas ----------------------------------------------------------------------------------

describe("formulas hold for any number of devices and micro-batches:", function()
  local function each(f)
    for p = 1, 9, 2 do
      for _, m in ipairs { 1, 2, 3, 5, 8, 16, 27 } do f(p, m) end
    end
  end

  it("GPipe, 1F1B and eager 1F1B idle (p-1)(F+B)", function()
    each(function(p, m)
      for _, s in ipairs { build("gpipe", p, m), build("1f1b", p, m),
        build("1f1b", p, m, { warmup = 2 }) } do
        local r = s:simulate { F = 3, B = 5 }
        near((p - 1 + m) * 8, r.makespan, s.name)
        for d = 1, p do near((p - 1) / (m + p - 1), r.bubble[d], "bubble") end
      end
    end)
  end)

  it("naive model parallelism idles m(p-1)(F+B)", function()
    each(function(p, m) near(m * p * 8, build("naive", p, m):simulate { F = 3, B = 5 }.makespan,
      "naive") end)
  end)

  it("peaks are m, min(p-r, m), min(2(p-1-r)+1, m)", function()
    each(function(p, m)
      local fifo, one = build("gpipe", p, m):simulate(), build("1f1b", p, m):simulate()
      local eager = build("1f1b", p, m, { warmup = 2 }):simulate()
      for r = 0, p - 1 do
        assert.equal(m, fifo.peak_live[r + 1])
        assert.equal(math.min(p - r, m), one.peak_live[r + 1])
        assert.equal(math.min(2 * (p - 1 - r) + 1, m), eager.peak_live[r + 1])
      end
    end)
  end)

  it("1F1B pays 2(p-1)cm/p + 2(p-2)c for latency, GPipe and eager 1F1B 2(p-1)c", function()
    for _, p in ipairs { 2, 4, 8 } do
      for _, m in ipairs { p, 2 * p, 5 * p } do
        local costs, ideal = { F = 10, B = 20, comm = 1 }, (m + p - 1) * 30
        near(ideal + 2 * (p - 1) * m / p + 2 * (p - 2),
          build("1f1b", p, m):simulate(costs).makespan, "1f1b")
        near(ideal + 2 * (p - 1), build("gpipe", p, m):simulate(costs).makespan, "gpipe")
        near(ideal + 2 * (p - 1), build("1f1b", p, m, { warmup = 2 }):simulate(costs).makespan,
          "eager")
      end
    end
  end)

  it("recomputation as a separate action saves (p-1)R", function()
    for _, case in ipairs { { 4, 8, 44, 41 }, { 8, 16, 92, 85 } } do
      local p, m, within, apart = table.unpack(case)
      schedule.define("again", function()
        local rows, placement = {}, {}
        for d, row in ipairs(build("1f1b", p, m):rows()) do
          rows[d], placement[d - 1] = row:gsub("(%d+)B(%d+)", "%1R%2,%1B%2"), d - 1
        end
        return { placement = placement, rows = rows }
      end)
      near(apart, build("again", p, m):simulate { B = 2, R = 1 }.makespan, "apart")
      near(within, build("1f1b", p, m):simulate { B = 3 }.makespan, "within")
    end
  end)
end)

describe("weights", function()
  it("of PipeDream are held in p - s versions, with vertical sync in p, of 2BW in 2", function()
    local stashed = build("pipedream", 4, 12):simulate()
    assert.same({ 4, 3, 2, 1 }, stashed.versions)
    assert.same({ 4, 4, 4, 4 },
      build("pipedream", 4, 12, { vertical_sync = true }):simulate().versions)
    assert.same({ 2, 2, 2, 2 }, build("pipedream_2bw", 4, 8):simulate().versions)
    assert.same({ 1, 1, 1, 1 }, build("1f1b", 4, 8):simulate().versions)
  end)

  it("of several versions count among the bytes", function()
    local memory = { resident = 100, version = 10, activation = 1 }
    assert.same({ 100 + 30 + 4, 100 + 20 + 3, 100 + 10 + 2, 100 + 1 },
      build("pipedream", 4, 12):simulate { memory = memory }.peak_bytes)
  end)
end)

describe("the critical path", function()
  -- Adds the durations and gaps (transfers) of a path that is contiguous from 0 on.
  local function length(r, comm)
    local sum, last = 0, nil
    for i, action in ipairs(r.critical) do
      local begin = last and last.finish or 0
      if action.after == "device" then assert.equal(last.device, action.device) end
      if action.after == "value" then
        begin = begin + (last.device ~= action.device and comm or 0)
      end
      assert.equal(i == 1, action.after == "start")
      near(begin, action.begin, "begin")
      sum, last = sum + (action.finish - action.begin) + (begin - (i > 1
        and r.critical[i - 1].finish or 0)), action
    end
    return sum
  end

  it("leads from the start to the end without a gap", function()
    for _, case in ipairs(unequal_costs) do
      for _, comm in ipairs { 0, 1, 2.5 } do
        local r = run(build(case[1], 8, 16, case[2]), 10, 12, 8, { comm = comm })
        near(r.makespan, length(r, comm), case[1])
        assert.equal(#r.critical, r.critical_length)
      end
    end
  end)
end)
