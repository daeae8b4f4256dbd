-- tests/spec/schedule/svg_spec.lua - timelines as SVG figures: well-formed, complete, legible.
local gp = require "gpipe"
local colours = require "gpipe.draw.colours"
local draw = require "gpipe.draw.schedule"
local timelines = require "tests.support.timelines"
local xml = require "tests.support.xml"
local schedule = gp.schedule
local build, timeline, random_timeline = timelines.build, timelines.scheduled, timelines.random

local function svg_of(given, opts)
  return xml.elements(timelines.written(draw.svg, given, opts))
end

-- Lists the cells: they carry a tooltip, and nothing else that is drawn does.
local function cells_of(elements)
  local list = {}
  for i, element in ipairs(elements) do
    local after = elements[i + 1]
    if element.name == "rect" and after and after.name == "title" then
      list[#list + 1] = { box = element.attributes, tip = after.text }
    end
  end
  return list
end

describe("an SVG drawing", function()
  for _, name in ipairs(schedule.names()) do
    it("has a cell per action that takes time, all within the picture: " .. name, function()
      local s = build(name, 4, 8)
      local text = timelines.written(function(path) return s:svg(path, { critical = true }) end)
      local elements, wanted = xml.elements(text), 0
      local made = s.last_simulation:timeline()
      for d = 1, 4 do
        for _, a in ipairs(made[d]) do wanted = wanted + (a.finish > a.begin and 1 or 0) end
      end
      local cells, page = cells_of(elements), elements[1].attributes
      assert.equal(wanted, #cells)
      for _, cell in ipairs(cells) do
        assert.is_true(cell.box.x + cell.box.width <= tonumber(page.width))
        assert.is_true(cell.box.y + cell.box.height <= tonumber(page.height))
      end
    end)
  end

  it("numbers every cell where there is room", function()
    local numbers = 0
    for _, element in ipairs(svg_of(timeline("1f1b", 4, 8))) do
      if element.name == "text" and element.attributes.y and element.attributes["font-size"] == "11"
        and element.text:find "^%d$" then numbers = numbers + 1 end
    end
    assert.equal(64, numbers)
  end)

  it("makes each cell as wide as its action lasts", function()
    local widths = {}
    for _, cell in ipairs(cells_of(svg_of(timeline("gpipe", 2, 2, { F = 1, B = 3 })))) do
      widths[cell.tip:match "^%d(%a)"] = cell.box.width + 0.9 -- the hair between neighbours
    end
    assert.is_true(math.abs(widths.B / widths.F - 3) < 0.01)
  end)

  it("stays small and well-formed with tens of thousands of actions", function()
    for _, chunks in ipairs { 512, 4096 } do
      local s = build("1f1b", 64, chunks)
      local text = timelines.written(function(path) return s:svg(path) end)
      assert.is_true(#text < 3e6)
      if chunks == 512 then xml.elements(text) end
    end
  end)

  it("escapes names", function()
    local one = timeline("gpipe", 2, 2)
    one.name, one.names = 'a <b> & "c"\1\xff', { "<cpu:0>", "cpu&1" }
    local elements = svg_of({ one, one }, { title = "x < y" })
    assert.equal("x &lt; y: 2 devices", elements[2].text:match "^[^\u{b7}]*%w")
  end)

  it("replaces an existing file, unless force is false", function()
    local path, s = os.tmpname(), build("gpipe", 2, 2)
    for _, kind in ipairs { "svg", "html", "trace" } do
      assert.is_true(s[kind](s, path))
      local good, message, code = s[kind](s, path, { force = false })
      assert.same({ nil, "exists" }, { good, code })
      assert.is_truthy(message:find(path, 1, true))
      assert.is_true(s[kind](s, path, { force = true }))
    end
    os.remove(path)
  end)

  it("counts activations of stages where devices have several", function()
    assert.matches("at most 8 activations of one stage alive", timelines.written(function(path)
      return build("zbv", 4, 8):svg(path)
    end))
    assert.matches("at most 4 activations alive", timelines.written(function(path)
      return build("1f1b", 4, 8):svg(path)
    end))
  end)

  it("shows input and weight gradients of all stages in different lightness", function()
    for count = 2, 4 do
      local input, weight = colours.fill("I", count, count), colours.fill("W", count, count)
      assert.is_true(colours.contrast(input, "#000000") * 1.25 < colours.contrast(weight, "#000000"))
    end
  end)

  it("is drawn for any rows", function()
    for seed = 1, 20 do svg_of(random_timeline(seed)) end
    svg_of { devices = 1, {} }
  end)

  it("has inks that are readable on every fill", function()
    for _, entry in ipairs(colours.ops) do
      for count = 1, 8 do
        for place = 1, count do
          local fill = colours.fill(entry.op, place, count)
          assert.is_true(colours.contrast(fill, colours.ink(fill)) >= 4.5)
        end
      end
    end
  end)

  it("has ops that differ in lightness, for greyscale", function()
    local order = { "U", "F", "I", "W", "B", "R" }
    for i = 2, #order do
      local darker, lighter = colours.fill(order[i - 1]), colours.fill(order[i])
      assert.is_true(colours.contrast(darker, "#000000") * 1.15 < colours.contrast(lighter,
        "#000000"))
    end
  end)
end)
