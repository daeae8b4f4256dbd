-- tests/spec/schedule/schedule_spec.lua - schedules as data: golden lists, and schedules that users
-- define.
--
-- The golden lists are those of torch.distributed.pipelining's text form, written for human
-- readers.
local gp = require "gpipe"
local fails_with = require("tests.support.expect").fails_with
local training = require "tests.support.training"
local nn, schedule = gp.nn, gp.schedule

local function rows(name, devices, chunks, options)
  local opts = { devices = devices, chunks = chunks }
  for key, value in pairs(options or {}) do opts[key] = value end
  return table.concat(schedule.build(name, opts):verify():rows(), "\n")
end

local function lines(text) return (text:gsub("%s+", "\n"):gsub("^\n", ""):gsub("\n$", "")) end

-- Makes a schedule of two stages with these rows (placement: one stage a device by default).
local function of(list, placement)
  schedule.define("given",
    function() return { rows = list, placement = placement or { [0] = 0, 1 } } end)
  return schedule.build("given", { devices = 2, chunks = 2 })
end

-- ---- golden lists ------------------------------------------------------------------------------

local golden = {
  { "naive", 2, 2, [[ 0F0,0B0,0F1,0B1 1F0,1B0,1F1,1B1 ]] },
  { "gpipe", 4, 4, [[
    0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3
    1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3
    2F0,2F1,2F2,2F3,2B0,2B1,2B2,2B3
    3F0,3F1,3F2,3F3,3B0,3B1,3B2,3B3 ]] },
  { "1f1b", 4, 8, [[
    0F0,0F1,0F2,0F3,0B0,0F4,0B1,0F5,0B2,0F6,0B3,0F7,0B4,0B5,0B6,0B7
    1F0,1F1,1F2,1B0,1F3,1B1,1F4,1B2,1F5,1B3,1F6,1B4,1F7,1B5,1B6,1B7
    2F0,2F1,2B0,2F2,2B1,2F3,2B2,2F4,2B3,2F5,2B4,2F6,2B5,2F7,2B6,2B7
    3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7 ]] },
  { "1f1b", 4, 8, [[
    0F0,0F1,0F2,0F3,0F4,0F5,0F6,0B0,0F7,0B1,0B2,0B3,0B4,0B5,0B6,0B7
    1F0,1F1,1F2,1F3,1F4,1B0,1F5,1B1,1F6,1B2,1F7,1B3,1B4,1B5,1B6,1B7
    2F0,2F1,2F2,2B0,2F3,2B1,2F4,2B2,2F5,2B3,2F6,2B4,2F7,2B5,2B6,2B7
    3F0,3B0,3F1,3B1,3F2,3B2,3F3,3B3,3F4,3B4,3F5,3B5,3F6,3B6,3F7,3B7 ]], { warmup = 2 } },
  { "1f1b", 4, 2, [[
    0F0,0F1,0B0,0B1
    1F0,1F1,1B0,1B1
    2F0,2F1,2B0,2B1
    3F0,3B0,3F1,3B1 ]] },
  { "1f1b", 1, 3, [[ 0F0,0B0,0F1,0B1,0F2,0B2 ]] },
  { "gpipe", 1, 1, [[ 0F0,0B0 ]] },
}

describe("rows:series", function()
  it("appends what single calls append, each time with the next micro-batches", function()
    local one, many = gp.schedule.rows(2), gp.schedule.rows(2)
    for i = 0, 4 do
      one:F(1, 3, 2 + i)
      one:B(1, 0, i)
      one:W(1, 3, 7 + i)
    end
    many:series(1, 5, "F", 3, 2, "B", 0, 0, "W", 3, 7)
    assert.equal(one:text(1), many:text(1))
    many:series(0, 0, "F", 0, 0)
    assert.equal("", many:text(0))
    many:series(0, 2, "I", 1, 999998)
    assert.equal("1I999998,1I999999", many:text(0))
  end)

  it("refuses what is no series", function()
    local made = gp.schedule.rows(1)
    for _, call in ipairs {
      { 0, 1 }, { 0, 1, "F", 0 }, { 0, 1, "U", 0, 0 }, { 0, -1, "F", 0, 0 },
      { 0, 2, "F", 0, 999999 }, { 1, 1, "F", 0, 0 },
      { 0, 1, "F", 0, 0, "F", 0, 0, "F", 0, 0, "F", 0, 0 },
    } do
      assert.is_false(pcall(made.series, made, table.unpack(call)))
    end
    assert.equal("", made:text(0))
  end)
end)

describe("the order of actions", function()
  for _, case in ipairs(golden) do
    local name, devices, chunks, text, options = table.unpack(case)
    it(("is the published one: %s, %d devices, %d micro-batches%s"):format(name, devices, chunks,
      options and ", eager" or ""), function()
      assert.equal(lines(text), rows(name, devices, chunks, options))
    end)
  end

  it("is a schedule for any number of devices and micro-batches", function()
    for _, name in ipairs { "naive", "gpipe", "1f1b" } do
      for devices = 1, 9 do
        for chunks = 1, 17, 4 do
          assert(schedule.build(name, { devices = devices, chunks = chunks }):verify())
        end
      end
    end
    assert(schedule.build("1f1b", { devices = 3, chunks = 7, warmup = 100 }):verify())
  end)

  it("keeps at most min(p - r, m) micro-batches alive in 1F1B", function()
    for _, case in ipairs { { 4, 8 }, { 4, 2 }, { 3, 3 }, { 1, 4 } } do
      local p, m = table.unpack(case)
      for r, row in ipairs(schedule.build("1f1b", { devices = p, chunks = m }):rows()) do
        local live, most = 0, 0
        for op in row:gmatch "%a" do
          live = live + (op == "F" and 1 or -1)
          most = math.max(most, live)
        end
        assert.equal(math.min(p - (r - 1), m), most)
      end
    end
  end)
end)

-- ---- build and define --------------------------------------------------------------------------

describe("gp.schedule", function()
  it("lists all names", function()
    local names = table.concat(schedule.names(), " ")
    for _, name in ipairs { "naive", "gpipe", "1f1b" } do
      assert.truthy(names:find(name, 1, true))
    end
  end)

  it("builds objects that know their placement and print themselves", function()
    local s = schedule.build("gpipe", { devices = 2, chunks = 2 })
    assert.same({ [0] = 0, 1 }, s.placement)
    assert.equal("schedule gpipe: 2 devices, 2 micro-batches\n  0F0,0F1,0B0,0B1\n  1F0,1F1,1B0,1B1",
      tostring(s))
    s:rows()[1] = "changed"
    assert.equal("0F0,0F1,0B0,0B1", s:rows()[1])
    assert.equal(s, s:verify())
    assert.equal(s, s:verify())
  end)

  it("prints the beginning of each row of a large schedule", function()
    local text = tostring(schedule.build("1f1b", { devices = 100, chunks = 1000 }))
    assert(#text < 100000, #text)
    assert(text:find(",...\n  31F0,", 1, true) and text:sub(-24) == "\n  ... (68 more devices)",
      text:sub(-24))
  end)

  it("refuses unknown names and options with a suggestion", function()
    fails_with("there is no schedule \"gpip\" (string) (did you mean 'gpipe'?)", schedule.build,
      "gpip",
      { devices = 1, chunks = 1 })
    fails_with("unknown option 'warmups' (did you mean 'warmup'?)", schedule.build, "1f1b",
      { devices = 1,
      chunks = 1, warmups = 1 })
    fails_with("option 'warmup' is 0, expected an integer >= 1", schedule.build, "1f1b",
      { devices = 1, chunks = 1,
      warmup = 0 })
    fails_with("missing option 'chunks'", schedule.build, "1f1b", { devices = 1 })
    fails_with("option 'devices' is 0, expected an integer >= 1", schedule.build, "1f1b",
      { devices = 0, chunks = 1 })
    fails_with("generator is missing, expected a function", schedule.define, "mine")
    fails_with("name is 3, expected a string", schedule.define, 3, function() end)
  end)

  it("lets a script define its own name again, a published one only if it says so", function()
    local published = schedule.build("naive", { devices = 2, chunks = 2 }):rows()
    local function other(p, m)
      return gp.schedule.greedy { placement = { [0] = 0, p - 1 }, chunks = m }
    end
    schedule.define("given", other)
    schedule.define("given", other)
    fails_with("schedule 'naive' is a published one, expected another name, or {replace = true}",
      schedule.define, "naive", other)
    assert.are.same(published, schedule.build("naive", { devices = 2, chunks = 2 }):rows())
    fails_with("unknown option 'replaces'", schedule.define, "naive", other, { replaces = true })
    schedule.define("naive", other, { replace = true })
    assert.are_not.same(published, schedule.build("naive", { devices = 2, chunks = 2 }):rows())
    local naive = require "gpipe.schedule.published.naive" -- as it was, for other specs
    schedule.define("naive", naive, { replace = true })
  end)

  it("leaves a cell empty where a generator says so", function()
    local function with(action)
      schedule.define("given", function()
        local list = schedule.rows(1)
        list:F(0, 0, 0)
        if action then list:idle(0) end
        list:B(0, 0, 0)
        return { rows = list, placement = { [0] = 0 } }
      end)
      return schedule.build("given", { devices = 1, chunks = 1 }):verify()
    end
    assert.same({ "0F0,,0B0" }, with(true):rows())
    assert.same({ "0F0,0B0" }, with(false):rows())
    assert.equal(with(false):simulate().makespan, with(true):simulate().makespan)
    assert.error(function() schedule.rows(1):idle(1) end)
    assert.error(function() schedule.rows(1):idle(-1) end)
  end)

  it("takes rows as text, with spaces, or as lists of actions", function()
    local text = of { "0F0, 0F1, 0B0, 0B1", "1F0 ,1B0,1F1,1B1" }
    local list = {}
    for d = 0, 1 do
      list[d + 1] = {}
      for i = 0, 1 do
        list[d + 1][2 * i + 1] = { op = "F", stage = d, micro = i }
        list[d + 1][2 * i + 2] = { op = "B", stage = d, micro = i }
      end
    end
    assert.equal("0F0,0F1,0B0,0B1", assert(text:verify()):rows()[1])
    assert.equal("1F0,1B0,1F1,1B1", assert(of(list):verify()):rows()[2])
    list[1][1].stage, list[1][1].micro = 0 / 2, 4 / 2 - 2 -- whole numbers that are floats
    assert.equal("0F0,0B0,0F1,0B1", of(list):rows()[1])
  end)

  it("checks the numbers of devices and micro-batches of a user's schedule too", function()
    schedule.define("given", function() error "called" end)
    fails_with("option 'devices' is 0, expected an integer >= 1", schedule.build, "given",
      { devices = 0, chunks = 1 })
    fails_with("option 'chunks' is -3, expected an integer >= 1", schedule.build, "given",
      { devices = 1, chunks = -3 })
    fails_with("missing option 'devices'", schedule.build, "given", { chunks = 1, anything = 1 })
    fails_with("missing option", schedule.build, "given")
    fails_with("100000 devices and 100000 micro-batches, expected at most", schedule.build, "gpipe",
      { devices = 100000, chunks = 100000 })
  end)

  it("requires exactly the micro-batches that were asked for", function()
    schedule.define("given",
      function() return { rows = { "0F0,0B0,0F1,0B1" }, placement = { [0] = 0 } } end)
    assert(schedule.build("given", { devices = 1, chunks = 2 }):verify())
    local _, report = schedule.build("given", { devices = 1, chunks = 3 }):verify()
    assert.equal("schedule: stage 0, micro-batch 2: F is missing", report[1].message)
    _, report = schedule.build("given", { devices = 1, chunks = 1 }):verify()
    assert.equal("schedule: 0F1 is of micro-batch 1, the schedule is for 1 (from 0)",
      report[1].message)
    assert.same({ 0, 3 }, { report[1].device, report[1].position })
  end)

  it("marks a cell that is not an action in the grid of the rows", function()
    local _, report = of({ "0F0,(0F1;0B0),0X2,0B1", "1F0,1B0,1F1,1B1" }):verify()
    assert.equal("schedule, device 0: '0X2' is not an action, expected \"2F0\"\n  device 0: 0F0 "
      .. "(0F1;0B0) >0X2< 0B1\n"
      .. (" "):rep(27) .. "^\n  device 1: 1F0 1B0 1F1 1B1", tostring(report))
  end)

  it("says what a generator returned instead of a schedule", function()
    local wrong = {
      { function() return 3 end,
        "schedule 'given': the generator returned 3, expected {placement = ..., rows = ...}" },
      { function() return { rows = {} } end,
        "the generator returned a table without placement, expected" },
      { function() return { rows = {}, placement = {} } end,
        "placement[0] is nil, expected the device of stage 0" },
      { function() return { rows = { 3 }, placement = { [0] = 0 } } end,
        "a row is 3, expected text" },
      { function() return { rows = { { 3 } }, placement = { [0] = 0 } } end,
        "an action is 3, expected {op = " },
      { function() return { rows = { "0F0" }, placement = { [0] = "x" } } end,
        'placement[0] is "x" (string)' },
      { function() return { rows = { "0F0" }, placement = { [0] = 0, [2] = 1 } } end,
        "placement[2] is 1, expected" },
      { function() error "mine" end, "mine" },
      { function() return { rows = {}, placement = { [0] = 0 } } end,
        "there are no rows, expected one for each" },
      { function() return { rows = { "0F0" }, placement = { [0] = "0" } } end,
        'placement[0] is "0" (string)' },
      { function() return { rows = { "0F0" } } end,
        "the generator returned a table without placement, expected {placement" },
      { function() return { rows = { "0F0" }, placement = { [0] = 0 }, batch = "1" } end,
        'batch is "1" (string)' },
      { function() return { rows = { { { stage = 0 } } }, placement = { [0] = 0 } } end,
        "the op of an action is nil" },
      { function() return { rows = { { { op = "F", stage = 0.5 } } }, placement = { [0] = 0 } } end,
        "the stage of an action is 0.5 (float), expected an integer >= 0" },
    }
    for _, case in ipairs(wrong) do
      schedule.define("given", case[1])
      fails_with(case[2], schedule.build, "given", { devices = 2, chunks = 2 })
    end
  end)
end)

-- ---- in a pipeline -----------------------------------------------------------------------------

-- Users' schedules: fill and drain with its backward passes last first; I and W separate, with all
-- W at the end and last first; and every stage on one device.
local function each(p, make)
  local list, placement = {}, {}
  for r = 0, p - 1 do list[r + 1], placement[r] = make(r), r end
  return { rows = list, placement = placement }
end
local function series(r, op, first, last, step)
  local row = {}
  for i = first, last, step or 1 do row[#row + 1] = ("%d%s%d"):format(r, op, i) end
  return table.concat(row, ",")
end
schedule.define("lifo", function(p, m)
  return each(p, function(r) return series(r, "F", 0, m - 1) .. ","
    .. series(r, "B", m - 1, 0, -1) end)
end)
schedule.define("weights_last", function(p, m)
  return each(p, function(r)
    return series(r, "F", 0, m - 1) .. "," .. series(r, "I", 0, m - 1) .. ","
      .. series(r, "W", m - 1, 0, -1)
  end)
end)
schedule.define("one_device", function(p, m)
  local row, placement = {}, {}
  for r = 0, p - 1 do placement[r] = 0 row[#row + 1] = series(r, "F", 0, m - 1) end
  for r = p - 1, 0, -1 do row[#row + 1] = series(r, "B", 0, m - 1) end
  return { rows = { table.concat(row, ",") }, placement = placement }
end)

local setup = {
  x = gp.randn({ 7, 6 }, { seed = 1 }), y = gp.randn({ 7, 3 }, { seed = 2 }), loss = nn.MSELoss(),
  model = function()
    gp.seed(3)
    local first, tied = nn.Linear(6, 6), nn.Linear(6, 6)
    tied.weight = first.weight
    local body = nn.Sequential { nn.LayerNorm(6), nn.Linear(6, 6), nn.GELU("erf") }
    return nn.Sequential { first, nn.Tanh(), nn.Dropout(0.2), nn.Residual(body), tied,
      nn.Linear(6, 3) }
  end,
}

describe("a user's schedule", function()
  it("gives the bits of every other: out of order, I and W separate, all stages on one device",
    function()
    training.check_same(setup, training.combinations {
      balance = { { 6 }, { 3, 3 }, { 1, 4, 1 }, { 2, 1, 1, 2 } }, chunks = 4, threads = { 1, 2 },
      schedule = { "gpipe", "lifo", "weights_last", "one_device" },
    })
  end)

  it("may be given with its options, or built", function()
    local eager = { balance = { 3, 3 }, chunks = 4, schedule = { "1f1b", warmup = 2 } }
    local built = { balance = { 3, 3 },
      schedule = schedule.build("lifo", { devices = 2, chunks = 4 }) }
    assert.is_nil(training.difference(training.run(setup, eager), training.run(setup, built)))
  end)

  it("may place its stages unevenly: the balance is per stage, the devices are those that it is "
    .. "for", function()
    schedule.define("three_on_two", function(p, m)
      assert(p == 2, "this is for two devices")
      local first, second = {}, {}
      for i = 0, m - 1 do
        first[i + 1], second[i + 1] = ("0F%d,2F%d,2B%d,0B%d"):gsub("%%d", i),
          ("1F%d,1B%d"):gsub("%%d", i)
      end
      return { placement = { [0] = 0, 1, 0 },
        rows = { table.concat(first, ","), table.concat(second, ",") } }
    end)
    local plain = training.run(setup, { balance = { 6 }, chunks = 4, schedule = "gpipe" })
    for _, devices in ipairs { { "cpu:0", "cpu:1" }, false } do
      local uneven = { balance = { 2, 3, 1 }, devices = devices or nil, chunks = 4,
        schedule = "three_on_two" }
      assert.is_nil(training.difference(plain, training.run(setup, uneven)))
    end
  end)

  it("may be asynchronous and built: its stream is longer than what was built", function()
    local losses = {}
    for i, given in ipairs { "pipedream",
      schedule.build("pipedream", { devices = 2, chunks = 4 }) } do
      gp.seed(3)
      local model = nn.Sequential { nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 3) }
      local pipe <close> = gp.pipeline(model,
        { balance = { 2, 1 }, chunks = 4, loss = setup.loss, schedule = given })
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
      for _ = 1, 5 do pipe:step(setup.x, setup.y) end
      losses[i] = pipe:flush()
    end
    assert.same(losses[1], losses[2])
  end)

  it("is refused before any action runs where it does not fit", function()
    local function pipe(options) return gp.pipeline(setup.model(), options) end
    schedule.define("cyclic", function(p, m)
      return each(p, function(r) return r == 0 and "0F0,0B0,0F1,0B1" or "1F0,1F1,1B0,1B1" end, m)
    end)
    fails_with("gp.pipeline: schedule: 0B0 waits for 1B0", pipe, { balance = { 3, 3 }, chunks = 2,
      schedule = "cyclic" })
    fails_with("the schedule has 2 stages and 4 micro-batches, balance and chunks give 3 and 4",
      pipe,
      { balance = { 2, 2, 2 }, schedule = schedule.build("gpipe", { devices = 2, chunks = 4 }) })
    fails_with("the schedule has 2 stages and 4 micro-batches, balance and chunks give 2 and 3",
      pipe,
      { balance = { 3, 3 }, chunks = 3,
        schedule = schedule.build("gpipe", { devices = 2, chunks = 4 }) })
    fails_with("there is no schedule \"1f2b\" (string) (did you mean '1f1b'?)", pipe,
      { schedule = "1f2b" })
  end)

  it("built for more micro-batches than the batch has rows is refused with both numbers", function()
    local pipe <close> = gp.pipeline(setup.model(), { balance = { 3, 3 }, loss = setup.loss,
      schedule = schedule.build("gpipe", { devices = 2, chunks = 4 }) })
    fails_with("step: the batch has rows for 2 micro-batches, the schedule is for 4", pipe.step,
      pipe,
      gp.ones { 2, 6 }, gp.ones { 2, 3 })
    assert.equal("number", type(pipe:step(setup.x, setup.y)))
  end)
end)

describe("a generator", function()
  it("may say where activations are recomputed", function()
    gp.schedule.define("own recomputation", function(_, m)
      local list = gp.schedule.rows(2)
      for i = 0, m - 1 do list:F(0, 0, i) list:F(1, 1, i) end
      for i = 0, m - 1 do list:B(1, 1, i) list:R(0, 0, i) list:B(0, 0, i) end
      return { placement = { [0] = 0, 1 }, rows = list }
    end)
    local made = assert(gp.schedule.build("own recomputation", { devices = 2, chunks = 2 }):verify())
    assert.equal("0F0,0F1,0R0,0B0,0R1,0B1", made:rows()[1])
  end)
end)
