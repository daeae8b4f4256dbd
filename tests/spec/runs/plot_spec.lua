-- tests/spec/runs/plot_spec.lua - curves of runs in terminals and figures, and `gpipe-lua plot`.

local axis = require "gpipe.draw.axis"
local child = dofile "tests/child.lua"
local colours = require "gpipe.draw.colours"
local gp = require "gpipe"
local run_folder = require "tests.support.run_folder"
local xml = require "tests.support.xml"

local root
before_each(function() root = run_folder.root() end)
after_each(function() run_folder.remove(root) end)

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- ---- axes --------------------------------------------------------------------------------------

describe("ticks", function()
  local cases = {
    { "of small numbers", { 0, 10, { most = 5 } }, "0 2 4 6 8 10" },
    { "of thousands", { 0, 1000, { most = 5 } }, "0 200 400 600 800 1000" },
    { "of many steps", { 0, 1e6, { most = 4 } }, "0 500k 1M" },
    { "of tens of thousands", { 0, 90000, { most = 5 } }, "0 20k 40k 60k 80k" },
    { "of values close to each other", { 0.998, 1, { most = 2 } }, "0.998 0.999 1" },
    { "of tiny numbers", { 0, 4e-5, { most = 4 } }, "0 1e-5 2e-5 3e-5 4e-5" },
    { "of one value", { 5, 5, { most = 2 } }, "5" },
    { "of powers", { 1e-3, 10, { most = 5, log = true } }, "0.001 0.01 0.1 1 10" },
    { "of less than a decade", { 0.2, 0.9, { most = 4, log = true } }, "0.2 0.5" },
    { "of negative values", { -1, 1, { most = 4, log = true } }, "-1 -0.5 0 0.5 1" },
    { "of seconds", { 0, 90, { most = 3, time = true } }, "0 50" },
    { "of less than a second", { 0, 0.4, { most = 2, time = true } }, "0 200 400" },
    { "of hours", { 0, 8 * 3600, { most = 4, time = true } }, "0 2 4 6 8" },
  }
  for _, case in ipairs(cases) do
    it(case[1] .. " are round", function()
      local texts = {}
      for i, tick in ipairs(axis.new(table.unpack(case[2])).ticks) do texts[i] = tick.text end
      assert.equal(case[3], table.concat(texts, " "))
    end)
  end
end)

it("however wide the terminal is, an axis has ticks", function()
  assert.is_true(#axis.new(0, 1000, { most = 800 }).ticks > 10)
end)

it("colours of curves are seen on white and on the dark page", function()
  for _, curve in ipairs(colours.curves) do
    assert.is_true(colours.contrast(curve.day, colours.day.paper) >= 3, curve.day)
    assert.is_true(colours.contrast(curve.night, colours.night.paper) >= 3, curve.night)
  end
end)

-- ---- text --------------------------------------------------------------------------------------

describe("a plot in the terminal", function()
  local function plotted(names, opts)
    opts.colour = opts.colour or false
    return gp.runs(root):plot(names, opts)
  end

  it("falls as the values do", function()
    run_folder.make(root, "a", { step = 9, value = function(step) return 10 - step end })
    local lines = {}
    for line in plotted("loss", { width = 20, height = 9, unicode = false }):gmatch "[^\n]+" do
      lines[#lines + 1] = line
    end
    assert.matches("^9? ?.*%*", lines[2])
    local last = 0
    for row = 2, 10 do
      local at = lines[row]:find("*", 1, true)
      assert.is_true(at > last, table.concat(lines, "\n"))
      last = at
    end
  end)

  it("fits the width, in braille or in letters", function()
    run_folder.make(root, "a-long-name-of-a-run", { step = 200 })
    run_folder.make(root, "b", { step = 100 })
    for _, width in ipairs { 40, 57, 80, 133 } do
      for _, unicode in ipairs { true, false } do
        for line in plotted(nil, { width = width, height = 6, unicode = unicode }):gmatch "[^\n]+" do
          assert.is_true(utf8.len(line) <= width, line)
          assert.is_true(unicode or not line:find "[\128-\255]", line)
        end
      end
    end
  end)

  it("keeps one spike in many values, and reports values that are not finite", function()
    run_folder.make(root, "a", { step = 5000,
      value = function(step) return step == 2500 and 1000 or 1 end })
    local log = assert(io.open(root .. "/a/log.jsonl", "ab"))
    log:write '{"step":5001,"loss":null,"nonfinite":{"loss":"nan"}}\n'
    log:close()
    local text = plotted("loss", { width = 60, height = 8, unicode = false })
    assert.matches("\n1000[^\n]*%*", text)
    assert.matches("nan %(1 not finite%)", text)
  end)

  it("has a colour for each curve only on request", function()
    run_folder.make(root, "a", { step = 20 })
    local text = plotted("loss,val_loss", { width = 40, height = 5, colour = true, unicode = true })
    local seen = {}
    for code in text:gmatch "\27%[38;5;(%d+)m" do seen[code] = true end
    assert.is_truthy(seen["33"] and seen["208"])
    assert.is_nil(plotted("loss", { width = 40, height = 5 }):find "\27")
  end)

  it("refuses names that no run logged, and wrong options", function()
    run_folder.make(root, "a", { step = 10 })
    local list = gp.runs(root)
    for _, call in ipairs {
      { "val_los", {}, "val_loss" }, { 7, {}, "7" }, { { {} }, {}, "1" },
      { "loss", { smoth = 0.5 }, "smooth" }, { "loss", { smooth = 1 }, "1" },
      { "loss", { x = "tim" }, "time" },
    } do
      local good, message = pcall(list.plot, list, call[1], call[2])
      assert.is_false(good)
      assert.is_truthy(message:find(call[3], 1, true), message)
    end
  end)
end)

-- ---- figures -----------------------------------------------------------------------------------

describe("a figure", function()
  it("is well-formed, has a line for each curve and no nan", function()
    run_folder.make(root, "a", { step = 3000, name = "<script>alert(1)</script> & \\\"co\\\"" })
    run_folder.make(root, "b", { step = 500, half = '{"step":501,"loss":nul' })
    for _, opts in ipairs { {}, { x = "time" }, { log = true, smooth = 0.9 } } do
      opts.force = true
      local path = root .. "/out.svg"
      assert(gp.runs(root):svg(path, { "loss,val_loss", "loss" }, opts))
      local text = read(path)
      xml.elements(text)
      assert.equal(6, select(2, text:gsub('class="curve"', "")))
      assert.is_nil(text:find "nan" or text:find "inf")
      assert.is_nil(text:find("<script", 1, true))
    end
  end)

  it("replaces no other file", function()
    run_folder.make(root, "a", { step = 5 })
    local path = root .. "/out.svg"
    run_folder.write(path, "precious")
    local good, message, code = gp.runs(root):svg(path)
    assert.same({ nil, "exists" }, { good, code })
    assert.is_truthy(message:find(path, 1, true))
    assert.equal("precious", read(path))
    assert.is_true(gp.runs(root):svg(path, nil, { force = true }))
    assert.matches("^<svg", read(path))
  end)
end)

-- ---- the command -------------------------------------------------------------------------------

describe("gpipe-lua plot", function()
  it("draws folders and names in any order", function()
    run_folder.make(root, "a", { step = 20 })
    run_folder.make(root, "b", { step = 20 })
    local out, err, code = child.run({ "plot", "val_loss", root .. "/a", root .. "/b", "--smooth=0.5" },
      { environment = { LC_ALL = "C", COLUMNS = "60" } })
    assert.same({ "", 0 }, { err, code })
    assert.matches("^val_loss\n", out)
    assert.is_truthy(out:find "a = a " and out:find "b = b ")
    assert.is_nil(out:find "\27")
  end)

  it("refuses wrong arguments with 2, and an existing file with 1", function()
    run_folder.make(root, "a", { step = 20 })
    run_folder.write(root .. "/there.svg", "precious")
    local cases = {
      { { root, "val_los" }, 2, "val_loss" }, { { root, "--smooth", "1" }, 2, "--smooth" },
      { { root, "--x", "tim" }, 2, "tim" }, { { root, "--smoth", "1" }, 2, "--smooth" },
      { { "/nowhere/at/all" }, 2, "/nowhere/at/all" },
      { { root, "--svg", root .. "/there.svg" }, 1, "there.svg" },
      { { root, "--svg", root .. "/none/out.svg" }, 1, "none/out.svg" },
    }
    for _, case in ipairs(cases) do
      local out, err, code = child.run { "plot", table.unpack(case[1]) }
      assert.same({ "", case[2] }, { out, code })
      assert.is_truthy(err:find(case[3], 1, true), err)
    end
    assert.equal("precious", read(root .. "/there.svg"))
  end)
end)
