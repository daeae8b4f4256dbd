-- tests/spec/schedule/simulation_spec.lua - what schedule:simulate takes and returns, and the table
-- of compare.

local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local schedule = gp.schedule

local function build(name, p, m) return schedule.build(name, { devices = p, chunks = m }) end

describe("a simulation", function()
  it("is remembered by the schedule, and has a timeline", function()
    local s = build("dualpipe", 4, 8)
    local r = s:simulate { unit = "s" }
    assert.equal(r, s.last_simulation)
    local timeline = r:timeline()
    assert.same({ "dualpipe", 4, r.makespan, "s" },
      { timeline.name, timeline.devices, timeline.makespan, timeline.unit })
    for d, row in ipairs(timeline) do
      assert.equal(#row, select(2, s:rows()[d]:gsub("%d+%a%d+", "")))
      assert.same(row, r:timeline(d - 1))
      for i, a in ipairs(row) do
        if a.joined then
          assert.same({ a.begin, a.finish }, { row[i + 1].begin, row[i + 1].finish })
        end
        assert(a.begin >= 0 and a.finish <= r.makespan)
      end
    end
  end)

  it("agrees with the verifier about activations, versions and channels", function()
    for _, name in ipairs(schedule.names()) do
      for _, size in ipairs { { 2, 4 }, { 4, 8 }, { 6, 12 } } do
        local good, s = pcall(build, name, size[1], size[2])
        if good and s:verify() then
          local versions = s:versions()
          assert.same(s:peak_live().devices, s:simulate().peak_live, name)
          assert.equal(math.max(versions[0], table.unpack(versions)),
            math.max(table.unpack(s:simulate().versions)))
          local needed = s:capacity()
          assert.equal(s:simulate().makespan, s:simulate { capacity = needed.full_speed }.makespan,
            name)
          if needed.works > 0 then
            assert.error_matches(function() s:simulate { capacity = needed.works - 1 } end,
              "cannot send")
          end
        end
      end
    end
  end)

  it("counts recomputed activations from their recomputation on", function()
    schedule.define("again", function()
      return { placement = { [0] = 0 }, rows = { "0F0,0F1,0R0,0B0,0R1,0B1" } }
    end)
    assert.equal(1, build("again", 1, 2):simulate().peak_live[1])
  end)

  it("prints as a summary", function()
    local text = tostring(build("1f1b", 4, 8):simulate())
    assert(text:find("makespan 33, span 33, bubble 27.3 %", 1, true), text)
    assert(text:find("critical path, 22 actions: 0F0 1F0 2F0 3F0 3B0", 1, true), text)
    assert(tostring(build("1f1b", 100, 3):simulate { unit = "s" }):find "%.%.%.")
  end)

  it("takes lists, links and blocking transfers", function()
    local s = build("1f1b", 2, 1)
    assert.equal(1 + 2 + 5 + 6, s:simulate { F = { 1, 2 }, B = { 6, 5 } }.makespan)
    assert.equal(6 + 3 + 4, s:simulate { comm = { F = 3, B = { 4 } } }.makespan)
    local link = { latency = 0.5, bandwidth = 8 }
    assert.equal(6 + 2 * 0.5 + 3,
      s:simulate { link = link, bytes = { F = { 16 }, B = 8 } }.makespan)
    assert.equal(6 + 2 * 0.5, s:simulate { link = { latency = 0.5 } }.makespan)
    local two = build("gpipe", 2, 2)
    assert.equal(15, two:simulate { comm = 3 }.makespan)
    assert.equal(21, two:simulate { comm = 3, overlap = false }.makespan) -- 0F1 and 1B1 wait 3 each
  end)

  it("takes explicit sends and receives at costs of their own", function()
    schedule.define("sent", function()
      return { placement = { [0] = 0, 1 }, rows = {
        "0F0,0SEND_F0,0RECV_B0,0B0", "1RECV_F0,1F0,1B0,1SEND_B0" } }
    end)
    assert.equal(6 + 2 * (0.25 + 3 + 0.5),
      build("sent", 2, 1):simulate { SEND = 0.25, RECV = 0.5, comm = 3 }.makespan)
  end)

  it("lets updates wait for their device, or behind a barrier for all gradients", function()
    schedule.define("updated", function(p, m)
      local rows, placement = build("1f1b", p, m):rows(), {}
      for r = 0, p - 1 do rows[r + 1], placement[r] = ("%s,%dU0"):format(rows[r + 1], r), r end
      return { placement = placement, rows = rows }
    end)
    local s = build("updated", 4, 8)
    local free, held = s:simulate { U = 5 }, s:simulate { U = 5, barrier = true }
    assert.same({ 38, 38 }, { free.makespan, held.makespan })
    local update = free:timeline(3)[17]
    assert.same({ "U", 3 + 24, 3 + 29 }, { update.op, update.begin, update.finish })
    for d = 0, 3 do assert.equal(33, held:timeline(d)[17].begin) end
    assert.equal("B", held.critical[#held.critical - 1].op)
    local stream = build("pipedream", 2, 4)
    fails_with("a barrier in an asynchronous schedule", stream.simulate, stream, { barrier = true })
  end)

  it("lets reductions and updates wait for the stage's other device", function()
    schedule.define("both", function()
      return { placement = { [0] = { 0, 1 }, { 1, 0 } }, rows = {
        "0F0,1F1,1B1,0B0,0REDUCE_GRAD,1REDUCE_GRAD,0U0,1U0",
        "1F0,0F1,1B0,0B1,0REDUCE_GRAD,1REDUCE_GRAD,1U0,0U0" } }
    end)
    local s = build("both", 2, 2)
    for _, capacity in ipairs { 1, 2 } do -- channels that block, and that do not
      local r = s:simulate { B = { 2, 5 }, U = 1, REDUCE = 0.5, capacity = capacity }
      local row = r:timeline(1)
      assert.same({ 11, 11.5, 12, 13 }, { row[5].begin, row[6].begin, row[7].begin, row[8].begin })
      assert.equal(14, r.makespan)
    end
    local later = s:simulate { B = { 2, 5 }, comm = { F = 0, B = 3 } }
    assert.equal(13, later:timeline(0)[4].finish) -- 0B0; its copy's 0B1 ends at 14
    assert.equal(14, later:timeline(0)[5].begin)
  end)

  it("lets senders hear later that a place is free, as over a network", function()
    local s = build("gpipe", 2, 4)
    local function begins(options)
      local list = {}
      for i, action in ipairs(s:simulate(options):timeline(1)) do
        if i <= 4 then list[i] = action.begin end
      end
      return list
    end
    assert.same({ 1, 2, 3, 4 }, begins { capacity = 1 })
    assert.same({ 1, 3, 5, 7 }, begins { capacity = 1, credit = 2 })
    assert.same({ 1, 3, 5, 7 }, begins { capacity = 1, credit = { F = 2 } })
    assert.same({ 1, 2, 3, 4 }, begins { capacity = 1, credit = { B = 2 } })
    assert.same({ 1, 2, 4, 5 }, begins { capacity = 2, credit = 3 })
    -- a value takes 3 to get there, and the news that it was taken as long
    assert.same({ 4, 10, 16, 22 }, begins { capacity = 1, link = { latency = 3 } })
    local r = s:simulate { capacity = 1, link = { latency = 3 } }
    assert.equal("channel", r.critical[2].after)
  end)

  it("divides B where it is split, and adds I and W where it is not", function()
    assert.equal(3 * 4, build("1f1b", 1, 3):simulate { B = 3 }.makespan)
    assert.equal(3 * 4, build("zb_h1", 1, 3):simulate { B = 3 }.makespan)
    assert.equal(3 * 5, build("zb_h1", 1, 3):simulate { B = 4, I = 3 }.makespan)
    assert.equal(3 * 6, build("1f1b", 1, 3):simulate { I = 2, W = 3 }.makespan)
  end)

  it("says what is wrong with costs", function()
    local s = build("1f1b", 3, 2)
    for text, opts in pairs {
      ["schedule:simulate: unknown option 'com' (did you mean 'comm'?)"] = { com = 1 },
      ["schedule:simulate: F has 2 numbers, expected 3 (one per stage)"] = { F = { 1, 2 } },
      ["schedule:simulate: comm has 3 numbers, expected 2 (one per edge between stages)"] = {
        comm = { 1, 2, 3 } },
      ["schedule:simulate: F is -1, expected a number >= 0"] = { F = -1 },
      ["schedule:simulate: W is nan (float), expected a number >= 0"] = { W = { 1, 0 / 0, 1 } },
      ["schedule:simulate: I of stage 0 is 3, expected at most B = 2"] = { B = 2, I = 3 },
      ["link.bandwidth is given without bytes"] = { link = { latency = 1, bandwidth = 10 } },
      ["the costs add up to more than a number can say"] = { F = 1e308 },
      ["both comm and link are given"] = { comm = 1, link = {} },
      ["bytes are given without a link"] = { bytes = 1 },
      ["schedule:simulate: link: unknown option 'latncy' (did you mean 'latency'?)"] = {
        link = { latncy = 1 } },
      ["option 'capacity' is -1, expected an integer >= 0"] = { capacity = -1 },
    } do
      fails_with(text, s.simulate, s, opts)
    end
    schedule.define("bad", function() return { placement = { [0] = 0 }, rows = { "0B0,0F0" } } end)
    fails_with("schedule:simulate: this is no schedule", s.simulate, build("bad", 1, 1))
  end)
end)

-- ---- compare -----------------------------------------------------------------------------------

describe("compare", function()
  -- Returns what it prints with COLUMNS as given, and its rows.
  local function compare(opts, width)
    local output, file, getenv = io.output(), assert(io.tmpfile()), os.getenv
    os.getenv = function(name) -- luacheck: ignore
      if name == "COLUMNS" then return width end
      return getenv(name)
    end
    io.output(file)
    local good, rows = pcall(schedule.compare, opts)
    io.output(output)
    os.getenv = getenv -- luacheck: ignore
    file:seek("set")
    local text = file:read "a"
    file:close()
    if not good then error(rows, 0) end
    return text, rows
  end

  it("prints one aligned table", function()
    local text = compare({ "gpipe", { "interleaved_1f1b", stages_per_device = 4 }, "dualpipe",
      "pipedream",
      devices = 8, chunks = 16, F = 10, I = 12, W = 8, comm = 1 }, "100")
    assert.equal([[
schedule                              stages  makespan   span  bubble  live  weights
gpipe                                      8       704    704  31.8 %    16        1
interleaved_1f1b stages_per_device=4      32     594.5  594.5  19.3 %  9.75        1
dualpipe                                   8       575    575  16.5 %     9        2
pipedream                                  8       730    730  34.2 %     8        8
]], text)
  end)

  it("takes costs of a whole device's share", function()
    local _, rows = compare { "1f1b", "zbv", "v_half", devices = 4, chunks = 8 }
    assert.same({ 33, 25.5, 26.5 }, { rows[1].makespan, rows[2].makespan, rows[3].makespan })
    assert.same({ 4, 4, 3 }, { rows[1].peak, rows[2].peak, rows[3].peak })
    assert.equal(24, rows[2].span)
  end)

  it("fits the terminal", function()
    local text = compare({ { "interleaved_1f1b", stages_per_device = 2 }, "gpipe", devices = 2,
      chunks = 4 }, "60")
    for line in text:gmatch "[^\n]+" do assert(utf8.len(line) <= 60, line) end
    assert(text:find("interleaved..", 1, true), text)
  end)

  it("gives a schedule that cannot be built a row with the reason", function()
    local text, rows = compare { "gpipe", "dualpipe", devices = 3, chunks = 8 }
    assert.equal("schedule dualpipe: 3 devices, expected an even number", rows[2].reason)
    assert(text:find(rows[2].reason, 1, true))
    local _, stuck = compare { "1f1b", devices = 4, chunks = 8, capacity = 0 }
    assert(stuck[1].reason:find("cannot send", 1, true))
    assert.is_nil(stuck[1].makespan)
  end)

  it("takes built schedules of any size", function()
    local text, rows = compare({ build("1f1b", 2, 3), build("gpipe", 4, 8), devices = 4,
      chunks = 8 }, "100")
    assert.equal(12, rows[1].makespan)
    assert(text:find("\n1f1b chunks=3 devices=2 ", 1, true), text)
    assert(text:find("\ngpipe ", 1, true), text)
  end)

  it("counts bytes of a whole device's share", function()
    local text, rows = compare { "1f1b", "zbv", devices = 4, chunks = 8,
      memory = { activation = 10, resident = 1 } }
    assert.same({ 41, 41 }, { rows[1].peak_bytes, rows[2].peak_bytes })
    assert(text:find("bytes", 1, true))
  end)

  it("refuses unknown names and options", function()
    fails_with("gp.schedule.compare: there is no schedule \"gpip\" (string) (did you mean "
      .. "'gpipe'?)",
      schedule.compare, { "gpip", devices = 2, chunks = 2 })
    fails_with("gp.schedule.compare: unknown option 'device' (did you mean 'devices'?)",
      schedule.compare, { "gpipe", device = 2, chunks = 2 })
    fails_with("gp.schedule.compare: no schedules are given", schedule.compare, { devices = 2 })
  end)
end)
