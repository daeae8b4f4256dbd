-- tests/spec/schedule/page_spec.lua - timelines as pages and as Chrome traces, read back as JSON.
local draw = require "gpipe.draw.schedule"
local json = require "tests.support.json"
local timelines = require "tests.support.timelines"
local build, timeline, measured_of = timelines.build, timelines.scheduled, timelines.measured

-- ---- pages -------------------------------------------------------------------------------------

describe("a page", function()
  local function page_of(given, opts)
    local text = timelines.written(draw.html, given, opts)
    return text, json.read(text:match '<script id="data" type="application/json">(.-)</script>')
  end

  it("holds every action of every timeline", function()
    local predicted = timeline("1f1b", 4, 8)
    local _, data = page_of(predicted, { measured = measured_of(predicted, 0.010) })
    assert.equal(2, #data.timelines)
    assert.equal("s", data.unit)
    for _, one in ipairs(data.timelines) do
      for d = 1, 4 do
        local ops, stages, micros, _, begins, durations = table.unpack(one.rows[d])
        for i, a in ipairs(predicted[d]) do
          assert.equal(a.op, data.ops[ops[i] + 1][1])
          assert.equal(a.stage, one.stages[d][stages[i] + 1])
          assert.equal(a.micro, micros[i])
          assert.is_true(math.abs(begins[i] * one.factor - a.begin * 0.010) < 1e-9)
          assert.is_true(durations[i] > 0)
        end
      end
    end
  end)

  it("loads nothing from elsewhere", function()
    local text = page_of(timeline("gpipe", 2, 2))
    assert.is_nil(text:find "https?://")
    assert.is_nil(text:find "src=")
    assert.is_nil(text:find "{{")
    assert.is_nil(text:find "@import")
    assert.is_truthy(text:find('Content-Security-Policy" content="default-src &#39;none&#39;', 1, true))
  end)

  it("does not end at a name with markup", function()
    local one = timeline("gpipe", 2, 2)
    one.name = "</script><b>"
    local text, data = page_of(one)
    assert.equal("</script><b>", data.timelines[1].name)
    assert.equal(2, select(2, text:gsub("</script>", "")))
    assert.is_nil(text:find("<b>", 1, true))
  end)

  it("has a row of figures per timeline and device", function()
    local predicted = timeline("1f1b", 4, 8)
    local text = page_of(predicted, { measured = measured_of(predicted, 0.010) })
    assert.is_truthy(text:find("<td>27.3 %</td>", 1, true))
    assert.equal(2 + 2 + 4, select(2, text:gsub("<tr>", "")))
  end)
end)

-- ---- traces ------------------------------------------------------------------------------------

describe("a trace", function()
  local function events_of(given, opts)
    local by = {}
    for _, event in ipairs(json.read(timelines.written(draw.trace, given, opts)).traceEvents) do
      by[event.ph] = by[event.ph] or {}
      table.insert(by[event.ph], event)
    end
    return by
  end

  -- Returns the complete event of a thread that contains a time.
  local function slice_at(by, flow)
    for _, x in ipairs(by.X) do
      local inside = flow.ts >= x.ts and flow.ts < x.ts + x.dur
      if x.pid == flow.pid and x.tid == flow.tid and inside then return x end
    end
  end

  it("has an event per action, and names for processes and threads", function()
    local predicted = timeline("1f1b", 4, 8)
    local by = events_of(predicted, { measured = measured_of(predicted, 0.010) })
    assert.equal(2 * 64, #by.X)
    assert.same({ ph = "X", cat = "forward", name = "0F0", pid = 0, tid = 0, ts = 0.0, dur = 1000.0,
      args = { stage = 0, micro = 0, wait = 0.0 } }, by.X[1])
    assert.equal(2 * (2 + 4 * 2), #by.M)
    assert.same({ name = "predicted" }, by.M[1].args)
  end)

  for _, case in ipairs { { "1f1b", 4, 8 }, { "zbv", 4, 8 }, { "dualpipe", 4, 8 },
    { "chimera", 4, 4 },
    { "interleaved_1f1b", 3, 6 }, { "pipedream", 3, 5 } } do
    it("has an arrow for every value that crosses devices: " .. case[1], function()
      local s = build(table.unpack(case))
      local by = events_of(s:simulate({ F = 1, B = 2, U = 0.25 }):timeline())
      assert.equal(#by.s, #by.f)
      local crossing = 0
      for _, event in ipairs(by.X) do
        crossing = crossing + (event.name:find "%d[FBI]%d" and 1 or 0)
      end
      assert.is_true(#by.s > 0 and #by.s < crossing)
      for i, start in ipairs(by.s) do
        local finish = by.f[i]
        assert.equal(start.id, finish.id)
        assert.is_true(start.tid ~= finish.tid and start.ts <= finish.ts)
        local producer, consumer = slice_at(by, start), slice_at(by, finish)
        assert.equal(producer.args.micro, consumer.args.micro)
        local forward = consumer.name:find "F" ~= nil
        assert.equal(consumer.args.stage - producer.args.stage, forward and 1 or -1)
        assert.equal(producer.name:find "F" ~= nil, forward)
      end
    end)
  end

  it("counts the arrows of 1F1B: m values over p - 1 edges, both ways", function()
    assert.equal(2 * 8 * 3, #events_of(timeline("1f1b", 4, 8)).s)
  end)

  it("has no two events of a thread at the same time", function()
    local by, last = events_of(build("dualpipe", 4, 8):simulate():timeline()), {}
    for _, event in ipairs(by.X) do
      assert.is_true(event.ts >= (last[event.tid] or 0) - 1e-3)
      last[event.tid] = event.ts + event.dur
    end
  end)
end)
