-- tests/spec/examples/scripts_spec.lua - the examples that are a single file.

local run = require "tests.support.example".run

describe("examples/digits.lua", function()
  it("classifies at least 97 % of the held-out digits right", function()
    local text, code = run "digits.lua --quiet"
    assert.are.equal(0, code, text)
    assert.is_true(tonumber(text:match "([%d.]+) %% of") >= 97, text)
  end)
end)

describe("examples/sweep.lua", function()
  it("searches in two processes, goes on, and writes its page", function()
    local folder = os.tmpname()
    os.remove(folder)
    local line = "sweep.lua --dir %s --trials %d --epochs 3 --images 300 --quiet"
    for _, trials in ipairs { 4, 6 } do
      local text, code = run(line:format(folder, trials))
      assert.are.equal(0, code, text)
      assert.is_truthy(text:find(("of %d trials\n"):format(trials), 1, true), text)
      local share = tonumber(text:match "([%d.]+) %% of the held%-out digits are right")
      assert.is_true(share > 15, text)
    end
    local page <close> = assert(io.open(folder .. "/digits.html"))
    assert.is_truthy(page:read "a":find("<svg", 1, true))
    os.execute("rm -r " .. folder)
  end)
end)

describe("examples/quickstart.lua", function()
  it("trains, validates, writes and suggests what to do next", function()
    local text, code = run(
      "quickstart.lua --steps 2 --layers 1 --width 16 --context 16 --batch 4 --length 5 --quiet")
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find "validation loss [%d.]+ nats per byte after 2 steps")
    assert.is_truthy(text:match "next: [^\n]+\n$")
  end)

  it("refuses an unknown option with the usage and status 2", function()
    local text, code = run "quickstart.lua --stpes 3"
    assert.are.equal(2, code)
    assert.is_truthy(text:find("unknown option '--stpes' (did you mean '--steps'?)", 1, true))
    assert.is_truthy(text:find("usage: gpipe-lua examples/quickstart.lua", 1, true))
  end)
end)

describe("examples/schedules", function()
  local folder
  setup(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
  end)
  teardown(function() os.execute("rm -r " .. folder) end)

  local function read(name)
    local file <close> = assert(io.open(folder .. "/" .. name))
    return file:read "a"
  end

  it("compare.lua reproduces the reference, trains under every schedule and draws them", function()
    local text, code = run(("schedules/compare.lua %s --width 8 --rows 2 --chunks 4 --steps 2"):format(folder))
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find("111 of 111 figures agree with the reference", 1, true), text)
    assert.is_nil(text:find("DIFFERS", 1, true), text)
    assert.are.equal(17,
      select(2, text:gsub("same bits", "")) + select(2, text:gsub("within %d", "")), text)
    assert.are.equal(2, select(2, text:gsub("  asynchronous\n", "")), text)
    assert.is_truthy(read("zbv.svg"):find "^<svg")
    assert.is_truthy(read("all.html"):find("chimera, measured", 1, true))
  end)

  it("compare.lua names the schedules that do not exist for so many devices", function()
    local text, code = run(("schedules/compare.lua %s --devices 3 --width 4 --rows 1 --steps 1"):format(folder))
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find "chimera +[^\n]*3 devices, expected an even number", text)
  end)

  it("compare.lua refuses a folder that cannot be made", function()
    local text, code = run "schedules/compare.lua /dev/null/pictures"
    assert.are.equal(1, code, text)
    assert.is_truthy(text:find("no folder '/dev/null/pictures' for the pictures", 1, true), text)
  end)

  it("my_schedule.lua shows a mistake, and the parameters of 1F1B without it", function()
    local text, code = run(("schedules/my_schedule.lua --steps 2 --chunks 3 --picture %s/mine.svg"):format(folder))
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find("0I0 waits for 1I0 behind 1F1", 1, true), text)
    assert.are.equal(2, select(2, text:gsub("parameters: those of 1f1b, to the last bit", "")),
      text)
    assert.is_truthy(read("mine.svg"):find("predicted and measured", 1, true))
  end)

  it("async.lua trains with and without a flush and draws the losses", function()
    local text, code = run(("schedules/async.lua --epochs 2 --width 8 --picture %s/async.svg"):format(folder))
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find "\npipedream +%d+ +%d+ +[%d.]+ +[%d.]+ %% +4 3 2 1 ", text)
    assert.is_truthy(text:find "\nvertical sync +%d+ +%d+ +[%d.]+ +[%d.]+ %% +4 4 4 4 ", text)
    assert.is_truthy(text:find "\npipedream_2bw +%d+ +%d+ +[%d.]+ +[%d.]+ %% +2 2 2 2 ", text)
    assert.are.equal(4, select(2, read("async.svg"):gsub('class="curve"', "")))
  end)
end)
