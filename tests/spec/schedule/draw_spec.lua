-- tests/spec/schedule/draw_spec.lua - timelines as text, compared literally; schedules; mistakes.
local gp = require "gpipe"
local child = require "tests.child"
local draw = require "gpipe.draw.schedule"
local fails_with = require("tests.support.expect").fails_with
local timelines = require "tests.support.timelines"
local view_of = require("gpipe.draw.schedule.timeline").view
local schedule = gp.schedule
local build, timeline = timelines.build, timelines.scheduled
local measured_of, random_timeline = timelines.measured, timelines.random

local function lines_of(text)
  local list = {}
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do list[#list + 1] = line end
  return list
end

local function outdent(text)
  local list = lines_of((text:gsub("^\n", ""):gsub("%s+$", "")))
  local margin = #list[1]:match "^ *"
  for i, line in ipairs(list) do list[i] = line:sub(margin + 1) end
  return table.concat(list, "\n")
end

-- Returns the row of a device without its name: the first one is "0 |...".
local function row_of(text, device)
  for _, line in ipairs(lines_of(text)) do
    local row = line:match("^" .. device .. " *|(.*)")
    if row then return row end
  end
end

-- ---- text --------------------------------------------------------------------------------------

local grids = {
  { "naive", 2, 2, { F = 1, B = 1 }, [[
    naive: 2 devices, makespan 8, bubble 50.0 %, peak 1 activation (device 0)
    0 |F0 ......B0 F1 ......B1
    1 |...F0 B0 ......F1 B1 ...
       0              5
    F forward  B backward  . idle ]] },
  { "gpipe", 4, 4, { F = 1, B = 1 }, [[
    gpipe: 4 devices, makespan 14, bubble 42.9 %, peak 4 activations (device 0)
    0 |F0 F1 F2 F3 ..................B0 B1 B2 B3
    1 |...F0 F1 F2 F3 ............B0 B1 B2 B3 ...
    2 |......F0 F1 F2 F3 ......B0 B1 B2 B3 ......
    3 |.........F0 F1 F2 F3 B0 B1 B2 B3 .........
       0              5              10
    F forward  B backward  . idle ]] },
  { "1f1b", 4, 4, { F = 1, B = 1 }, [[
    1f1b: 4 devices, makespan 14, bubble 42.9 %, peak 4 activations (device 0)
    0 |F0 F1 F2 F3 .........B0 ...B1 ...B2 ...B3
    1 |...F0 F1 F2 ......B0 F3 B1 ...B2 ...B3 ...
    2 |......F0 F1 ...B0 F2 B1 F3 B2 ...B3 ......
    3 |.........F0 B0 F1 B1 F2 B2 F3 B3 .........
       0              5              10
    F forward  B backward  . idle ]] },
  { "1f1b", 4, 8, { F = 1, B = 2 }, [[
    1f1b: 4 devices, makespan 33, bubble 27.3 %, peak 4 activations (device 0)
    0 |F0F1F2F3............B0- F4B1- F5B2- F6B3- F7B4- ..B5- ..B6- ..B7-
    1 |..F0F1F2........B0- F3B1- F4B2- F5B3- F6B4- F7B5- ..B6- ..B7- ....
    2 |....F0F1....B0- F2B1- F3B2- F4B3- F5B4- F6B5- F7B6- ..B7- ........
    3 |......F0B0- F1B1- F2B2- F3B3- F4B4- F5B5- F6B6- F7B7- ............
       0         5         10        15        20        25        30
    F forward  B backward  . idle ]] },
}

describe("a text drawing", function()
  for _, case in ipairs(grids) do
    local name, devices, chunks, costs, wanted = table.unpack(case)
    it(("shows the classic grid where there is room: %s, %d devices, %d micro-batches"):format(name,
      devices,
      chunks), function()
      assert.equal(outdent(wanted),
        draw.text(timeline(name, devices, chunks, costs), { width = 80 }))
    end)
  end

  it("says which width the numbers of micro-batches need, and shows them at that width", function()
    for _, case in ipairs { { "interleaved_zero_bubble", 4, 8 }, { "1f1b", 4, 32 }, { "zbv", 3, 5 } } do
      local one = timeline(table.unpack(case))
      local narrow = draw.text(one, { width = 60 })
      local width = tonumber(narrow:match "numbers of micro%-batches: width = (%d+)")
      assert.is_truthy(width, case[1])
      assert.is_nil(row_of(narrow, 0):find "F0")
      local wide = draw.text(one, { width = width })
      assert.is_truthy(row_of(wide, 0):find "^F0")
      assert.is_nil(wide:find("width =", 1, true))
    end
  end)

  it("shows stages in numbers where there is room, else the second one in lower case", function()
    local rows = { "0F0,3F0,3B0,0B0", "1F0,2F0,2B0,1B0" }
    local two = timelines.of("v", rows, { F = 1, B = 1 })
    local wide, narrow = draw.text(two, { width = 50 }), draw.text(two, { width = 20 })
    assert.equal("0F0 ........3F0 3B0 ........0B0", row_of(wide, 0))
    assert.equal("....1F0 2F0 ........2B0 1B0 ....", row_of(wide, 1))
    assert.is_truthy(wide:find "F forward  B backward  . idle$")
    assert.equal("F0....f0b0....B0", row_of(narrow, 0))
    assert.equal("..F0f0....b0B0..", row_of(narrow, 1))
    local middle = draw.text(two, { width = 30 })
    assert.equal("F0 ......f0 b0 ......B0", row_of(middle, 0))
    assert.is_truthy(draw.text(timelines.of("v", rows), { width = 44 })
      :find "lower case: second stage of a device$")
  end)

  it("shows versions of the weights, and updates", function()
    local made = timelines.of("async", { "0F0@0,0B0@0,0U0@1,0F1@1,0B1@1,0U1@2" },
      { F = 1, B = 1, U = 1 })
    assert.equal("F0@0 B0@0 U0@1 F1@1 B1@1 U1@2", row_of(draw.text(made, { width = 80 }), 0))
    assert.equal("F0 B0 U0 F1 B1 U1", row_of(draw.text(made, { width = 25 }), 0))
  end)

  it("gives each action of an overlapped pair one half", function()
    local made = timelines.of("pair", { "0F0,(0F1;0B0)OVERLAP_F_B,0B1" }, { F = 1, B = 1 })
    assert.equal("F0 F1 B0 B1", row_of(draw.text(made, { width = 40 }), 0))
  end)

  it("puts predicted above measured on one scale and says the ratio", function()
    local predicted = timeline("1f1b", 2, 2, { F = 1, B = 1 })
    local text = draw.text(predicted, { width = 80, measured = measured_of(predicted, 0.010) })
    assert.equal(outdent [[
      predicted: 2 devices, makespan 6, bubble 33.3 %, peak 2 activations (device 0)
      measured: 2 devices, makespan 60 ms, bubble 41.7 %
      peak 2 activations (device 0)
      1 unit of predicted = 10 ms (equal makespans)
    ]], table.concat(lines_of(text), "\n", 1, 4))
    local list = lines_of(text)
    assert.equal("0 predicted |", list[5]:sub(1, 13))
    assert.equal("  measured  |", list[6]:sub(1, 13))
    assert.equal("F0F1B0B1", (list[5]:gsub("^.*|", ""):gsub("[^%w]", "")))
    assert.equal("F0F1B0B1", (list[6]:gsub("^.*|", ""):gsub("[^%w]", "")))
    local said = draw.text(predicted,
      { width = 80, measured = measured_of(predicted, 0.010), scale = 0.005 })
    assert.is_truthy(said:find("1 unit of predicted = 5 ms\n", 1, true))
  end)

  it("leaves out the devices in the middle where there are too many", function()
    local list = lines_of(draw.text(timeline("gpipe", 12, 2), { width = 80, height = 4 }))
    assert.same({ "0 ", "1 ", "  ... 8 more devices (option height)", "10", "11" },
      { list[2]:sub(1, 2), list[3]:sub(1, 2), list[4], list[5]:sub(1, 2), list[6]:sub(1, 2) })
  end)

  it("shows a crowded stretch by the shares of its actions", function()
    local row = row_of(draw.text(timeline("1f1b", 1, 300, { F = 1, B = 2 }), { width = 63 }), 0)
    assert.equal(60, #row)
    assert.equal(20, select(2, row:gsub("F", "")))
    assert.equal(40, select(2, row:gsub("B", "")))
  end)

  it("is never wider than allowed", function()
    for seed = 1, 60 do
      local one = random_timeline(seed)
      local width = math.random(20, 160)
      local others = seed % 3 == 0 and { measured = one } or {}
      others.width = width
      for _, line in ipairs(lines_of(draw.text(one, others))) do
        assert(utf8.len(line) <= width, ("seed %d, width %d: %q"):format(seed, width, line))
      end
    end
  end)

  it("is the same text with colours", function()
    for seed = 1, 10 do
      local one = random_timeline(seed)
      local coloured = draw.text(one, { width = 100, colour = true })
      assert.is_truthy(#one[1] == 0 or coloured:find("\27[48;5;", 1, true))
      for _, line in ipairs(lines_of(coloured)) do
        assert.is_true(utf8.len((line:gsub("\27%[[%d;]*m", ""))) <= 100)
      end
      assert.is_nil(draw.text(one, { width = 100, colour = false }):find("\27", 1, true))
    end
  end)

  it("obeys COLUMNS and writes no colours into a pipe", function()
    local chunk = "print(require 'gpipe'.schedule.build('1f1b', {devices = 4, chunks = 8}):draw())"
    local text = child.run({ "-e", chunk }, { environment = { COLUMNS = "44" } })
    assert.is_truthy(text:find "^1f1b: 4 devices, makespan 33, bubble 27.3 %%\npeak 4")
    for _, line in ipairs(lines_of(text)) do assert.is_true(#line <= 44 and not line:find "\27") end
  end)
end)

-- ---- figures -----------------------------------------------------------------------------------

describe("the figures of a drawing", function()
  for _, name in ipairs(schedule.names()) do
    it("are those of the simulation: " .. name, function()
      local run = build(name, 4, 8):simulate { F = 1, B = 2, U = 0.5 }
      local view = view_of("spec", run:timeline())
      assert.equal(run.makespan, view.makespan)
      assert.is_true(math.abs(run.span - view.span) < 1e-9)
      assert.same(run.peak_live, view.peak)
      for d = 1, 4 do assert.is_true(math.abs(run.bubble[d] - view.bubble[d]) < 1e-9) end
    end)
  end
end)

-- ---- schedules and mistakes --------------------------------------------------------------------

describe("a schedule", function()
  it("is drawn with unit costs, then with those of the last simulation", function()
    local s = build("gpipe", 2, 2)
    assert.equal("F0 F1 .........B0--- B1---", row_of(s:draw { width = 60 }, 0))
    s:simulate { F = 1, B = 1 }
    assert.equal("F0 F1 ......B0 B1", row_of(s:draw { width = 60 }, 0))
  end)

  it("makes lists only for the devices that are shown", function()
    local s = build("1f1b", 512, 1024)
    s:simulate()
    local before = collectgarbage "count"
    collectgarbage "stop"
    local text = s:draw { width = 80, height = 4 }
    local grown = collectgarbage "count" - before
    collectgarbage "restart"
    assert.is_truthy(text:find("508 more devices", 1, true))
    assert.is_true(grown < 50 * 1024)
  end)

  it("is drawn into all kinds of files", function()
    local s = build("1f1b", 2, 3)
    for _, kind in ipairs { "svg", "html", "trace" } do
      assert.is_true(#timelines.written(function(path) return s[kind](s, path) end) > 1000)
    end
  end)

  it("says that a file cannot be written, and leaves the old one", function()
    local s = build("1f1b", 2, 3)
    for _, kind in ipairs { "svg", "html", "trace" } do
      local good, message, code = s[kind](s, "/nonexistent/folder/file")
      assert.is_nil(good)
      assert.equal("/nonexistent/folder/file: cannot save: No such file or directory", message)
      assert.equal("io", code)
      assert.is_nil((s[kind](s, "/dev/full")))
    end
  end)

  it("refuses wrong options and paths", function()
    local s = build("1f1b", 2, 3)
    fails_with("schedule:draw: unknown option 'with' (did you mean 'width'?)", s.draw, s,
      { with = 3 })
    fails_with("schedule:draw: option 'width' is 5, expected an integer >= 20", s.draw, s,
      { width = 5 })
    fails_with("schedule:svg: path is missing, expected a string", s.svg, s)
    fails_with("schedule:html: path is 3, expected a string", s.html, s, 3)
    fails_with("schedule:trace: unknown option 'colour'", s.trace, s, "x", { colour = true })
    fails_with("schedule:svg: option 'scale' is 0, expected a number > 0", s.svg, s, "x",
      { scale = 0 })
  end)
end)

local mistakes = {
  { 3, 'draw.text: a timeline is 3, expected {devices = p, [1] = {{op =, begin =, finish =}}, ...}'
    },
  { {}, "draw.text: there is no timeline to draw" },
  { { devices = 0 }, "draw.text: a timeline is a table without devices" },
  { { devices = 2, {} },
    "draw.text: timeline 'timeline' has nil as device 1, expected a list of actions" },
  { { devices = 1, unit = "ms", {} },
    'the unit of a timeline is "ms" (string), expected "" or "s"' },
  { { devices = 1, makespan = -1, {} },
    "the makespan of timeline 'timeline' is -1, expected a number >= 0" },
  { { devices = 1, { { stage = 0 } } }, "device 0: action 1 is without an op" },
  { { devices = 1, { { op = "F", begin = 0 } } },
    "action 1 is without finite times begin and finish" },
  { { devices = 1, { { op = "F", begin = 2, finish = 1 } } },
    "action 1 is finished before it began" },
  { { devices = 1, { { op = "F", stage = 0.5, begin = 0, finish = 1 } } }, "that is no integer" },
  { { devices = 1, { { op = "F", begin = 2, finish = 3 }, { op = "F", begin = 1, finish = 2 } } },
    "action 2 is begun before the one ahead of it" },
  { { { devices = 1, name = "a", {} }, { devices = 2, name = "b", {}, {} } },
    "draw.text: timeline 'b' has 2 devices, expected 1 as 'a' has" },
}

describe("a wrong timeline", function()
  for _, case in ipairs(mistakes) do
    it("is refused: " .. case[2],
      function() fails_with(case[2], draw.text, case[1], { width = 80 }) end)
  end
end)
