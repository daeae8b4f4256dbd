-- tests/spec/draw/memory_spec.lua - memory over time: steps, what is alive, text, figures, pages.

local expect = require "tests.support.expect"
local json = require "tests.support.json"
local memory = require "gpipe.draw.memory"
local xml = require "tests.support.xml"

local MIB = 1 << 20
local PLAIN = { width = 60, height = 6, colour = false, unicode = false }

-- Two micro-batches of 1F1B on one device; times count tasks.
local function tasks()
  return { name = "cpu:0", cap = 16 * MIB, times = { "0F0", "0F1", "0B0", "0B1", "0U" }, spans = {
    { label = "weights", area = "parameters", first = 1, last = 5, bytes = 4 * MIB },
    { label = "saved[0]", area = "activations", first = 1, last = 3, bytes = 3 * MIB },
    { label = "saved[1]", area = "activations", first = 2, last = 4, bytes = 3 * MIB },
    { label = "scratch", area = "temporaries", first = 3, last = 3, bytes = MIB },
  } }
end

local function seconds()
  return { name = "cuda:0", planned = { { 0, { activations = 2 * MIB, parameters = MIB } },
    { 0.5, { parameters = MIB } }, { 1, { parameters = MIB } } },
    measured = { { 0, 3 * MIB }, { 0.6, MIB } } }
end

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  return lines
end

local function written(render, devices, opts)
  local path = os.tmpname()
  opts = opts or {}
  opts.force = true
  assert(render(devices, path, opts))
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  os.remove(path)
  return text
end

describe("what is alive", function()
  local function labels(device, moment)
    local list = {}
    for i, entry in ipairs(memory.alive(device, moment)) do list[i] = entry.label end
    return table.concat(list, " ")
  end

  it("is named at a task, the largest first", function()
    assert.equal("weights saved[0] saved[1] scratch", labels(tasks(), "0B0"))
    assert.equal("weights saved[1]", labels(tasks(), "0B1"))
    assert.equal("weights saved[0]", labels(tasks(), 1))
    assert.equal("weights", labels(tasks(), 5))
  end)

  it("is what begins at a time, not what ends then", function()
    local device = { name = "d", spans = {
      { label = "a", area = "edges", first = 0, last = 0.5, bytes = 64 },
      { label = "b", area = "edges", first = 0.5, last = 1, bytes = 64 } } }
    assert.equal("a", labels(device, 0.25))
    assert.equal("b", labels(device, 0.5))
    assert.equal("", labels(device, 1))
  end)

  it("lies on the seconds at which tasks begin", function()
    local device = tasks()
    device.times = { 0, 0.1, 0.2, 0.4, 0.6, 0.7 }
    assert.equal("weights saved[0] saved[1] scratch", labels(device, 0.3))
    assert.equal("weights", labels(device, 0.65))
  end)

  it("is the areas where only levels are given", function()
    assert.equal("activations parameters", labels(seconds(), 0.2))
    assert.equal("parameters", labels(seconds(), 0.7))
  end)

  it("is a table with its sum", function()
    local text = memory.alive_text(tasks(), "0B0", 2)
    assert.matches("weights +parameters +4%.0 MiB", text)
    assert.matches("2 more +4%.0 MiB", text)
    assert.matches("together +11%.0 MiB$", text)
  end)
end)

describe("a text of memory over time", function()
  it("stacks areas and fits its width", function()
    local lines = lines_of(memory.text(tasks(), PLAIN))
    assert.equal("cpu:0: peak 11.0 MiB at 0B0, 69 % of the cap 16.0 MiB", lines[1])
    for _, line in ipairs(lines) do assert.is_true(utf8.len(line) <= 60) end
    assert.matches("=====", lines[2]) -- the cap
    assert.matches("^ +0 .*|?p+$", "  0 " .. lines[7])
    assert.matches("aaaa", lines[5])
    assert.matches("0F0 +0F1 +0B0 +0B1 +0U", table.concat(lines, "\n"))
    assert.matches("p = parameters  a = activations  b = temporaries", table.concat(lines, "\n"))
  end)

  it("marks what was measured", function()
    local text = memory.text(seconds(), PLAIN)
    assert.matches("measured 3%.0 MiB", text)
    assert.equal(1, select(2, text:gsub("%* measured", "")))
    assert.is_true(select(2, text:gsub("%*", "")) > 20)
    assert.matches("time %(s%)", text)
  end)

  it("loses no peak, however short", function()
    local device = { name = "d", planned = {} }
    for i = 1, 1000 do
      device.planned[i] = { i, { workspace = i == 777 and 64 * MIB or MIB } }
    end
    assert.matches("peak 64%.0 MiB", memory.text(device, PLAIN))
    local _, rows = memory.text(device, PLAIN):gsub("|[^\n]*w", "")
    assert.is_true(rows >= 3) -- the column of the peak reaches up
  end)

  it("names a cap that is far away without drawing it", function()
    local device = tasks()
    device.cap = 64 << 30
    local text = memory.text(device, PLAIN)
    assert.matches("less than 1 %% of the cap 64%.0 GiB", text)
    assert.is_nil(text:find("====", 1, true))
  end)

  it("has one scale for all devices", function()
    local small = { name = "small", planned = { { 0, { edges = MIB } }, { 1, { edges = MIB } } } }
    local large = { name = "large", planned = { { 0, { edges = 60 * MIB } }, { 1, { edges = MIB } } } }
    local lines = lines_of(memory.text({ small, large }, PLAIN))
    assert.is_nil(lines[6]:find "e") -- an upper row of the small one
    assert.matches("e", lines[9])
  end)

  it("closes every colour", function()
    local text = memory.text({ tasks(), seconds() }, { width = 80, colour = true, unicode = true })
    local _, opened = text:gsub("\27%[[34]8;5;", "")
    local _, closed = text:gsub("\27%[0m", "")
    assert.equal(opened, closed)
    assert.is_true(opened > 0)
  end)

  it("is drawn of nothing", function()
    assert.matches("nothing planned", memory.text({ name = "idle" }, PLAIN))
    assert.is_string(memory.text({}, PLAIN))
  end)
end)

describe("a figure of memory over time", function()
  it("is well-formed and has an area, a line and a cap", function()
    local device = tasks()
    device.measured = { { 1, 6 * MIB }, { 3, 10 * MIB } }
    local classes = {}
    for _, element in ipairs(xml.elements(written(memory.svg, { device, seconds() }))) do
      local class = element.attributes.class
      if class then classes[class] = (classes[class] or 0) + 1 end
    end
    assert.same({ area = 5, measured = 2, cap = 1 }, classes)
  end)

  it("draws as many points as paper shows", function()
    local device = { name = "d", planned = {} }
    for i = 1, 50000 do device.planned[i] = { i, { edges = i % 7 * MIB } } end
    assert.is_true(#written(memory.svg, device) < 100000)
  end)

  it("shows names as text", function()
    local device = tasks()
    device.name = "<b>&"
    assert.is_truthy(written(memory.svg, device):find("&lt;b&gt;&amp;", 1, true))
  end)
end)

describe("a page of memory over time", function()
  local function data_of(text)
    return json.read(text:match '<script id="data" type="application/json">(.-)</script>')
  end

  it("holds every span and what was measured", function()
    local data = data_of(written(memory.html, { tasks(), seconds() }))
    assert.equal(2, #data.devices)
    local one, other = data.devices[1], data.devices[2]
    assert.same({ "weights", "saved[0]", "saved[1]", "scratch" }, one.labels)
    assert.same({ 0, 0, 1, 2 }, one.spans[3])
    assert.same({ 5, 3, 4, 3 }, one.spans[4])
    assert.equal(2, one.peak)
    assert.same({ { 0, 3 * MIB }, { 0.6, MIB } }, other.measured)
    assert.equal("parameters", data.areas[1][1])
    assert.same({ MIB, MIB, MIB }, other.levels[1])
  end)

  it("loads nothing from elsewhere, and no name ends its script", function()
    local device = tasks()
    device.spans[1].label = "</script><b>"
    local text = written(memory.html, device)
    assert.is_nil(text:find "https?://")
    assert.is_nil(text:find "src=")
    assert.is_nil(text:find "{{")
    assert.is_nil(text:find("<b>", 1, true))
    assert.equal("</script><b>", data_of(text).devices[1].labels[1])
  end)

  it("replaces a file unless it is told to keep it", function()
    local path = os.tmpname()
    assert(memory.svg(tasks(), path))
    local ok, message, code = memory.html(tasks(), path, { force = false })
    assert.is_nil(ok)
    assert.matches("expected another path", message)
    assert.equal("exists", code)
    os.remove(path)
  end)
end)

describe("data that cannot be drawn", function()
  local function refused(wanted, change)
    local device = tasks()
    change(device)
    expect.fails_with(wanted, memory.text, device, PLAIN)
  end

  it("is named with its device and place", function()
    refused("device 'cpu:0': spans[2].bytes is -1, expected bytes",
      function(d) d.spans[2].bytes = -1 end)
    refused("there is no task 9, expected 1 to 5", function(d) d.spans[1].last = 9 end)
    refused("spans[1] ends at", function(d) d.spans[1].first, d.spans[1].last = 3, 1 end)
    refused("times[3] is 0.1 (float), expected ascending seconds",
      function(d) d.times = { 0, 0.5, 0.1, 0.6, 0.7, 0.8 } end)
    refused("cap is \"much\" (string), expected bytes", function(d) d.cap = "much" end)
    refused("measured[2] is before", function(d) d.measured = { { 2, 1 }, { 1, 1 } } end)
    expect.fails_with('there is no task "7F7"', memory.alive, tasks(), "7F7")
    expect.fails_with("expected a table", memory.text, 3)
  end)
end)
