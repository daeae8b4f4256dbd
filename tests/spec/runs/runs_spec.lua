-- tests/spec/runs/runs_spec.lua - what gp.runs and `gpipe-lua runs` report about folders of runs.

local child = dofile "tests/child.lua"
local gp = require "gpipe"
local json = require "tests.support.json"
local run_folder = require "tests.support.run_folder"
local runs_table = require "gpipe.run_reader.table"

local root
before_each(function() root = run_folder.root() end)
after_each(function() run_folder.remove(root) end)

-- Returns the id of a process that has ended.
local function dead_pid()
  local pipe = assert(io.popen "echo $$")
  local pid = pipe:read "n"
  pipe:close()
  return pid
end

local function own_pid() -- the id of this test's process
  local file <close> = assert(io.open "/proc/self/stat")
  return file:read "n"
end

describe("the state of a run", function()
  local cases = {
    { "running where its process is there", { state = "running", pid = own_pid }, "running" },
    { "killed where its process is gone", { state = "running", pid = dead_pid }, "killed" },
    { "that of its files where it ran on another host",
      { state = "running", pid = dead_pid, host = "elsewhere" }, "running" },
    { "finished", { state = "finished", pid = dead_pid }, "finished" },
    { "stopped", { state = "stopped", pid = dead_pid }, "stopped" },
    { "failed", { state = "failed", pid = dead_pid }, "failed" },
    { "unknown where its files hold no known state", { state = "dancing" }, "unknown" },
  }
  for _, case in ipairs(cases) do
    it("is " .. case[1], function()
      local o = { step = 3 }
      for key, value in pairs(case[2]) do o[key] = type(value) == "function" and value() or value end
      run_folder.make(root, "a", o)
      assert.equal(case[3], gp.runs(root)[1].state)
    end)
  end
end)

describe("gp.runs", function()
  it("reports what the files hold, the last writer first", function()
    run_folder.make(root, "old", { step = 10, updated = 1000, config = '"lr":0.1' })
    run_folder.make(root, "deep/er/new", { step = 30, updated = 2000, name = "new one" })
    local list = gp.runs(root)
    assert.equal(2, #list)
    local new, old = list[1], list[2]
    assert.same({ "new one", 30, 100, 0.5, 810.5, "rows/s", 12.5 },
      { new.name, new.step, new.steps, new.loss, new.rate, new.unit, new.seconds })
    assert.same({ name = "val_loss", value = 0.25, step = 20 }, new.best)
    assert.same({ "old", { lr = 0.1 }, {} }, { old.name, old.config, old.faults })
    assert.same({ "loss", "val_loss" }, new:names())
  end)

  it("takes the folder of one run, and ignores runs inside of another", function()
    local path = run_folder.make(root, "a", { step = 3 })
    run_folder.make(root, "a/checkpoints/best-loss", { step = 3 })
    assert.equal(1, #gp.runs(root))
    assert.equal(1, #gp.runs(path))
  end)

  it("says where there is no such folder", function()
    local list, message, code = gp.runs(root .. "/none")
    assert.is_nil(list)
    assert.is_truthy(message:find(root .. "/none", 1, true))
    assert.equal("io", code)
  end)

  it("gives columns as tensors, with the steps", function()
    run_folder.make(root, "a", { step = 20 })
    local run = gp.runs(root)[1]
    local values, steps = run:column "val_loss"
    assert.same({ 10, 20 }, steps:totable())
    assert.same({ 2 / 10, 2 / 20 }, values:totable())
    assert.equal("f64", values.dtype)
    local good, message = pcall(run.column, run, "vall_loss")
    assert.is_false(good)
    assert.is_truthy(message:find("val_loss", 1, true))
  end)

  it("reads what is written later", function()
    local path = run_folder.make(root, "a", { step = 5, half = '{"step":6,"lo' })
    local run = gp.runs(path)[1]
    assert.equal(5, run:column "loss".shape[1])
    assert.same({}, run.faults)
    run_folder.make(root, "a", { step = 8 })
    assert.equal(8, run:update():column "loss".shape[1])
    assert.equal(8, run.step)
  end)

  it("reports damage with file and line, and goes on", function()
    local path = run_folder.make(root, "a", { step = 5 })
    local log = assert(io.open(path .. "/log.jsonl", "ab"))
    log:write('{"step":6,"loss":0.25,}\n\0\0\0\n{"step":7,"loss":0.125}\n')
    log:close()
    run_folder.write(path .. "/state.json", '{"state": "runn')
    run_folder.write(path .. "/config.json", '[1]')
    local run = gp.runs(root)[1]
    assert.same({ "a", "unknown", 7, 0.125 }, { run.name, run.state, run.step, run.loss })
    local all = table.concat(run.faults, "\n")
    assert.is_truthy(all:find("/log.jsonl:6: ", 1, true))
    assert.is_truthy(all:find("/state.json: ", 1, true))
  end)

  it("ignores fields of a wrong type", function()
    local path = run_folder.make(root, "a", { step = 5 })
    run_folder.write(path .. "/state.json", '{"state":7,"step":"x","loss":[],"best":3,"pid":{},'
      .. '"updated":1e999,"rate":"fast","unit":{}}')
    run_folder.write(path .. "/config.json", '{"name":[],"config":"none","created":{}}')
    local run = gp.runs(root)[1]
    assert.same({ "a", "unknown", 5 }, { run.name, run.state, run.step })
    assert.is_truthy(tostring(run):find "unknown")
  end)
end)

describe("the table of runs", function()
  local function list_of(n, name)
    local list = {}
    for i = 1, n do
      list[i] = { name = name or "run-" .. i, state = "finished", step = 1000, steps = 1000,
        loss = 0.27, best = { name = "val_loss", value = 0.25 }, rate = 812.5, unit = "rows/s",
        updated = 1000 - i, faults = {} }
    end
    return list
  end

  it("fits every width, and shows the states at every width", function()
    local list = list_of(3, "a-name-that-is-rather-long")
    for width = 24, 120 do
      for line in runs_table.text(list, { width = width, now = 5000 }):gmatch "[^\n]+" do
        assert.is_true(utf8.len(line) <= width, line)
        assert.is_truthy(line:find "state" or line:find "finished", line)
      end
    end
  end)

  it("says how long ago in one unit", function()
    local cases = { [0] = "now", [59] = "59 s ago", [60] = "1 min ago", [7300] = "2 h ago",
      [90000] = "1 d ago", [-100] = "now" }
    for seconds, text in pairs(cases) do assert.equal(text, runs_table.age(1e6, 1e6 + seconds)) end
    assert.equal("", runs_table.age(nil, 1e6))
  end)

  it("colours only the states", function()
    local plain = runs_table.text(list_of(2), { width = 80, now = 5000 })
    local painted = runs_table.text(list_of(2), { width = 80, now = 5000, colour = true })
    assert.equal(2, select(2, painted:gsub("\27%[36mfinished\27%[0m", "")))
    assert.equal(plain, (painted:gsub("\27%[%d+m", "")))
  end)
end)

describe("gpipe-lua runs", function()
  it("prints a plain table into a pipe", function()
    run_folder.make(root, "a", { step = 10, name = "e\\u001b[31mvil" })
    local out, err, code = child.run { "runs", root }
    assert.same({ "", 0 }, { err, code })
    assert.is_truthy(out:find "finished" and out:find "10/100")
    assert.is_nil(out:find "\27")
  end)

  it("prints JSON when asked", function()
    run_folder.make(root, "a", { step = 10, config = '"lr":0.1' })
    local out, _, code = child.run { "runs", "--json", root }
    local object = json.read(out)
    assert.same({ "a", "finished", 10, 0.1, 0 },
      { object.name, object.state, object.step, object.config.lr, code })
  end)

  local wrong = {
    { "an unknown flag", { "--jsn" }, "--json" },
    { "a folder that is not there", { "/nowhere/at/all" }, "/nowhere/at/all" },
    { "two folders", { "a", "b" }, "2" },
  }
  for _, case in ipairs(wrong) do
    it("refuses " .. case[1] .. " with 2", function()
      local out, err, code = child.run { "runs", table.unpack(case[2]) }
      assert.same({ "", 2 }, { out, code })
      assert.is_truthy(err:find(case[3], 1, true), err)
    end)
  end

  it("has help for each command", function()
    for _, word in ipairs { "runs", "plot", "watch" } do
      local out, err, code = child.run { word, "--help" }
      assert.same({ "", 0 }, { err, code })
      assert.is_truthy(out:find("gpipe-lua " .. word, 1, true))
    end
  end)

  it("leaves files of that name to ./ and --", function()
    run_folder.write(root .. "/runs", "print 'a script'")
    local program = child.quote(io.popen("realpath " .. child.program):read "l")
    local out = child.shell(("cd %s && %s ./runs && %s -- runs"):format(root, program, program))
    assert.equal("a script\na script\n", out)
  end)
end)
