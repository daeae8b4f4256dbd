-- tests/spec/cli/progress_spec.lua - the words of the progress line, and how it fits a terminal.
local child = dofile "tests/child.lua"
local progress = require "gpipe.progress"

describe("progress", function()
  it("shortens numbers", function()
    local texts = {}
    for i, n in ipairs { 7, 999, 1234, 5.6e6, 7.8e9 } do texts[i] = progress.short(n) end
    assert.are.same({ "7", "999", "1.2k", "5.6M", "7.8G" }, texts)
  end)

  it("shows times as clocks do", function()
    local texts = {}
    for i, s in ipairs { 0, 59.6, 75, 3600, 3725 } do texts[i] = progress.clock(s) end
    assert.are.same({ "0:00", "1:00", "1:15", "1:00:00", "1:02:05" }, texts)
  end)

  it("takes the mean bubble over the devices in percent", function()
    assert.near(15, progress.bubble { bubble = { 0.1, 0.2 } }, 1e-9)
    assert.is_nil(progress.bubble {})
  end)

  it("shows losses and rates in a few characters", function()
    local texts = {}
    for i, x in ipairs { 0, 2.5, 999.5, 12345, 0.02, 6e-4, -3, 0 / 0, math.huge } do
      texts[i] = progress.number(x)
    end
    assert.are.same({ "0", "2.500", "999.500", "1.23e+04", "0.020", "0.0006", "-3.000", "nan",
      "inf" }, texts)
  end)
end)

-- ---- a child's line ----------------------------------------------------------------------------

local FACTS = [[local facts = {loss = 2.5, val = 2.25, lr = 6e-4, norm = 0.75, rate = 41400,
  bubble = 14, memory = {5 * 2^30, 3 * 2^30}}
]]
local TEXT = "local progress = require 'gpipe.progress'\n" .. FACTS

-- Returns what a script writes on standard error, where that is a pipe.
local function plain(text, environment)
  local path = child.file(TEXT .. text)
  local out, err, code = child.run({ path }, { environment = environment })
  os.remove(path)
  assert.equal(0, code, err)
  assert.equal("", out)
  assert.is_nil(err:find "[\r\27]")
  local lines = {}
  for line in err:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

local LOOP = "for step = 1, %d do line:update(step, facts) end line:finish()"

describe("without a terminal", function()
  it("a line is written for each twentieth of a run", function()
    local lines = plain("local line = progress.new {steps = 400}\n" .. LOOP:format(400))
    assert.equal(20, #lines)
    assert.matches("^step 20/400   5%% | loss 2%.500", lines[1])
    assert.matches("^step 400/400 100%% | loss 2%.500 %(mean 2%.500%) | val 2%.250 | lr 0%.0006 "
      .. "| norm 0%.750 | 41%.4k tok/s | bubble 14%% | mem 5%.0 GiB | eta 0:00$", lines[20])
  end)
  it("a line is written every so many steps, and at the last", function()
    local lines = plain("local line = progress.new {steps = 10, every = 4}\n" .. LOOP:format(10))
    for i, step in ipairs { 4, 8, 10 } do
      assert.matches(("^step %d/10 "):format(step), lines[i])
    end
    assert.equal(3, #lines)
  end)
  it("a resumed run estimates the time left from its own steps", function()
    local lines = plain [[local line = progress.new {steps = 1000}
      line.started = line.started - 10
      line:update(950, facts)
      line:finish()]]
    assert.matches("eta 8:20$", lines[1]) -- 50 steps of 10 seconds
  end)
  it("lines are few where the number of steps is not known", function()
    local lines = plain("local line = progress.new()\n" .. LOOP:format(1000))
    assert.equal(1, #lines)
    assert.matches("^step 1 | loss 2%.500 | val", lines[1])
  end)
  it("a quiet run writes nothing", function()
    assert.same({}, plain("local line = progress.new {steps = 9, quiet = true}\n" .. LOOP:format(9)))
  end)
end)

local terminal = child.has "script" and it or pending

-- Returns what a script draws on a terminal of some columns: the drawings of the line, and what is
-- below.
local function drawn(text, columns, environment)
  local path = child.file(TEXT .. text)
  local words = {}
  for name, value in pairs(environment or { TERM = "xterm" }) do
    words[#words + 1] = name .. "=" .. value
  end
  local screen = child.shell(("env %s SHELL=/bin/sh script -qec %s /dev/null"):format(
    table.concat(words, " "), child.quote(("stty cols %d -onlcr; exec %s %s"):format(columns,
      child.program, path))))
  os.remove(path)
  return screen
end

describe("on a terminal", function()
  local text = "local line = progress.new {steps = 50}\n" .. LOOP:format(50)
  terminal("one line is rewritten", function()
    local screen = drawn(text, 200)
    assert.equal(1, select(2, screen:gsub("\n", "")))
    assert.matches("\rstep 1/50", screen)
    assert.matches("\rstep 50/50 100%% .* eta 0:00 *\n$", screen)
    assert.is_nil(screen:find("\27", 1, true))
  end)

  local cases = { -- columns, what is shown, what is left out
    { 150, { "50/50 100%", "mean", "val", "lr", "norm", "tok/s", "bubble", "mem", "eta" }, {} },
    { 100, { "val", "tok/s", "bubble", "mem", "eta" }, { "mean", "norm" } },
    { 70, { "50/50 100%", "loss", "val", "tok/s", "eta" }, { "mem", "lr" } },
    { 44, { "50/50 100%", "loss", "val" }, { "tok/s", "eta" } },
    { 24, { "50/50", "loss 2.500" }, { "step", "%%", "val" } },
  }
  for _, case in ipairs(cases) do
    terminal(("of %d columns the line shows what matters most"):format(case[1]), function()
      local line = drawn(text, case[1]):match "\r([^\r\n]*50/50[^\r\n]*)\n$"
      assert.is_true(#line < case[1], line)
      for _, word in ipairs(case[2]) do assert.is_truthy(line:find(word, 1, true), line) end
      for _, word in ipairs(case[3]) do assert.is_nil(line:find(word), line) end
    end)
  end

  terminal("the last step is shown also where the loop was left early", function()
    local screen = drawn("local line = progress.new {steps = 1000}\n" .. LOOP:format(500), 80)
    assert.matches("\rstep 500/1000  50%%[^\n]*\n$", screen)
  end)
  terminal("a message has a line of its own, and the line goes on below", function()
    local screen = drawn([[local line = progress.new {steps = 2}
      line:update(1, facts)
      progress.say "saved"
      line:update(2, facts)
      line:finish()]], 80)
    assert.matches("\r +\rsaved\n\rstep 2/2[^\n]*\n$", screen)
  end)
  terminal("what the script of a run prints has a line of its own", function()
    local place = os.tmpname()
    os.remove(place)
    local screen = drawn(([[local run = require "gpipe".run("line", {dir = %q, steps = 2})
      run:log(1, {loss = 1})
      print "hello"
      run:log(2, {loss = 1})
      run:finish()]]):format(place), 80)
    os.execute("rm -r " .. place)
    assert.matches("\rstep 1/2[^\n]*\r +\rhello\r?\n\rstep 2/2[^\n]*\n", screen)
  end)
  terminal("that is dumb the program writes plain lines", function()
    local screen = drawn(text, 80, { TERM = "dumb" })
    assert.equal(20, select(2, screen:gsub("\n", "")))
    assert.is_nil(screen:find("\r", 1, true))
  end)
end)
