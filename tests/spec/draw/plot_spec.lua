-- tests/spec/draw/plot_spec.lua - gp.plot: numbers as curves in text and in figures.

local fails = require("tests.support.expect").failure
local gp = require "gpipe"
local xml = require "tests.support.xml"

local PLAIN = { width = 40, height = 5, colour = false, unicode = false }

local function with(opts)
  local all = {}
  for name, value in pairs(PLAIN) do all[name] = value end
  for name, value in pairs(opts or {}) do all[name] = value end
  return all
end

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

describe("gp.plot", function()
  it("draws a list and tensors of any dtype alike", function()
    local text = gp.plot({ 1, 2, 3, 4, 5 }, PLAIN)
    assert.equal(text, gp.plot(gp.arange(1, 5), PLAIN))
    assert.equal(text, gp.plot(gp.arange(1, 5, { dtype = "i64" }), PLAIN))
    assert.equal(text, gp.plot(gp.arange(1, 5, { requires_grad = true }), PLAIN))
    local lines = {}
    for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(5 + 3, #lines) -- the plot, its axis, ticks, the name of the axis
    assert.matches("%*$", lines[1]) -- the curve rises to the right
    assert.matches("place$", lines[#lines])
  end)

  it("draws a curve a column, with letters and a legend", function()
    local text = gp.plot(gp.tensor { { 1, 5 }, { 2, 4 }, { 3, 3.5 } }, PLAIN)
    assert.is_truthy(text:find("a = 1 3  b = 2 3.5", 1, true))
  end)

  it("draws curves by name over their own x", function()
    local text = gp.plot({ test = { x = { 10, 30 }, y = { 3, 2 } }, train = { 5, 1 } },
      with { title = "Losses", x = "epoch" })
    assert.matches("^Losses\n", text)
    assert.matches("epoch\n", text)
    assert.is_truthy(text:find("a = test 2  b = train 1", 1, true))
    assert.is_truthy(text:find("30", 1, true))
  end)

  it("leaves out and counts what cannot be drawn", function()
    assert.matches("4 %(1 not finite%)", gp.plot({ 1, 0 / 0, 4 }, PLAIN))
    assert.matches("4 %(2 left out%)", gp.plot({ -1, 0, 4 }, with { log = true }))
  end)

  it("shows a million numbers by their means and extremes", function()
    local many = gp.zeros { 1000000 }
    many[500000] = 100
    local text = gp.plot(many, with { height = 10 })
    assert.is_truthy(text:find("100", 1, true))
  end)

  it("writes figures, and replaces no file unasked", function()
    local path = os.tmpname()
    local good, message, code = gp.plot({ 1, 2 }, { svg = path })
    assert.same({ nil, "exists" }, { good, code })
    assert.is_truthy(message:find(path, 1, true))
    assert.is_true(gp.plot({ a = { 1, 2 }, b = { 2, 3 } }, { svg = path, force = true,
      title = "x < y" }))
    local text = read(path)
    xml.elements(text)
    assert.equal(2, select(2, text:gsub('class="curve"', "")))
    assert.is_truthy(text:find("x &lt; y", 1, true))
    os.remove(path)
    assert.same({ nil, "io" }, { (gp.plot({ 1 }, { svg = "/nowhere/at/all.svg" })),
      (select(3, gp.plot({ 1 }, { svg = "/nowhere/at/all.svg" }))) })
  end)

  local wrong = {
    { "nothing", nil, "the values are nil" },
    { "a number", 5, "the values are 5" },
    { "no numbers", {}, "nothing to show, expected at least one finite number" },
    { "words", { "x" }, 'place 1, is "x"' },
    { "many dimensions", gp.zeros { 2, 2, 2 }, "3 dimensions" },
    { "a matrix among curves", { a = gp.zeros { 2, 2 } }, "'a' has 2 dimensions" },
    { "another number of x", { x = { 1, 2 }, y = { 1 } }, "2 x and 1 y" },
    { "x that go back", { x = { 2, 1 }, y = { 1, 2 } }, "expected ascending" },
    { "x that are no numbers", { x = { 1, 0 / 0 }, y = { 1, 2 } }, "expected ascending" },
    { "nothing finite", { 0 / 0 }, "at least one finite" },
    { "keys that are no names", { a = { 1 }, [7] = { 2 } }, "the key 7" },
    { "too many curves", gp.zeros { 2, 65 }, "65 curves" },
  }
  for _, case in ipairs(wrong) do
    it("refuses " .. case[1], function()
      local text = fails(gp.plot, case[2], PLAIN)
      assert.is_truthy(text:find(case[3], 1, true), text)
      assert.matches("^gp.plot: ", text:gsub("^[^ ]+:%d+: ", ""))
    end)
  end
  it("refuses options that it does not know", function()
    assert.matches("unknown option 'colr'", fails(gp.plot, { 1 }, { colr = true }))
    assert.matches("nothing to show, expected at least one positive", fails(gp.plot, { -1 },
      { log = true }))
  end)
end)
