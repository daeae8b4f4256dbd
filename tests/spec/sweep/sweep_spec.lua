-- tests/spec/sweep/sweep_spec.lua - sweeps in their file: running, resuming, extending.
local child = dofile "tests/child.lua"
local errors = require "gpipe.errors"
local gp = require "gpipe"
local sweep = gp.sweep

-- The thread sanitizer holds signals back until the program blocks; loops of Lua never do.
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

local folder
before_each(function()
  folder = os.tmpname()
  os.remove(folder)
end)
after_each(function() os.execute("rm -rf " .. folder) end)

local function new(more)
  local o = { name = "s", dir = folder, trials = 8, quiet = true,
    space = { x = sweep.uniform(-1, 1), n = sweep.int(1, 4) } }
  for key, value in pairs(more or {}) do o[key] = value end
  return sweep(o)
end

local function parabola(params) return params.x ^ 2 + params.n end

local function states(s)
  local list = {}
  for i, trial in ipairs(s.trials) do list[i] = trial.state end
  return table.concat(list, " ")
end

describe("a sweep", function()
  it("runs its trials and knows the best", function()
    local s = new():run(parabola)
    assert.are.equal(8, #s.trials)
    local best = s.trials[1]
    for _, trial in ipairs(s.trials) do
      assert.are.equal(parabola(trial.params), trial.value)
      if trial.value < best.value then best = trial end
    end
    assert.are.equal(best.number, s.best.number)
    local most = new { name = "m", maximize = "value" }:run(parabola)
    for _, trial in ipairs(most.trials) do assert.is_true(trial.value <= most.best.value) end
  end)

  it("that has ended runs nothing more, and goes on where more trials are asked for", function()
    local first, calls = new():run(parabola), 0
    local function count(params) calls = calls + 1 return parabola(params) end
    new():run(count)
    assert.are.equal(0, calls)
    local s = new { trials = 11 }:run(count)
    assert.are.equal(3, calls)
    for i, trial in ipairs(first.trials) do assert.same(trial.params, s.trials[i].params) end
  end)

  it("returns every value as it was, bit for bit", function()
    local seen = {}
    local s = new { space = { a = sweep.log(1e-9, 1e9), b = sweep.choice { 1, 1.5, "1", true, false,
      'q"\n' }, c = sweep.uniform(0, 1), d = 3.0, e = "", f = sweep.int(-5, 5) }, trials = 40 }
    s:run(function(params, trial)
      seen[trial.number] = params
      return 0
    end)
    s = new { space = s.options.space, trials = 40 }
    for i, trial in ipairs(s.trials) do
      assert.same(seen[i], trial.params)
      for name, value in pairs(seen[i]) do
        assert.are.equal(math.type(value), math.type(trial.params[name]))
      end
    end
  end)

  it("takes a table of numbers, and the last report where nothing is returned", function()
    local s = new { minimize = "val_loss", trials = 3 }
    s:run(function(_, trial)
      if trial.number == 1 then return { val_loss = 2, accuracy = 0.5 } end
      if trial.number == 2 then return { vall_loss = 2 } end
      for step = 1, 3 do assert.is_false(trial:report(step, 10 / step)) end
    end)
    assert.are.equal("complete failed complete", states(s))
    assert.same({ val_loss = 2, accuracy = 0.5 }, s.trials[1].values)
    local other = new { name = "inf", trials = 1 }
    other:run(function() return { value = 1, most = math.huge } end)
    assert.are.equal(math.huge, other.trials[1].values.most)
    assert.is_truthy(s.trials[2].error:find("val_loss", 1, true))
    assert.are.equal(10 / 3, s.trials[3].value)
  end)

  it("records failures with line and traceback, and goes on", function()
    local s = new { trials = 6 }
    s:run(function(_, trial)
      if trial.number == 1 then error "boom" end
      if trial.number == 2 then error { reason = "table" } end
      if trial.number == 3 then return 0 / 0 end
      if trial.number == 4 then return "no" end
      if trial.number == 5 then return nil end
      return 1
    end)
    assert.are.equal("failed failed failed failed failed complete", states(s))
    assert.is_truthy(s.trials[1].error:find("sweep_spec.lua:%d+: boom\nstack traceback"))
    assert.is_truthy(s.trials[2].error:find("table", 1, true))
    assert.is_truthy(s.trials[3].error:find("nan", 1, true))
  end)

  it("begins each trial with the random numbers of its number", function()
    local function first() return gp.rand({ 1 }):item() end
    local a, b = new { trials = 4 }:run(first), new { name = "b", trials = 4 }
    gp.seed(99)
    local before = gp.rand({ 1 }):item()
    gp.seed(99)
    b:run(function() gp.rand { 3 } return 0 end)
    assert.are.equal(before, gp.rand({ 1 }):item())
    local c = new { name = "c", trials = 4 }:run(first)
    for i = 1, 4 do assert.are.equal(a.trials[i].value, c.trials[i].value) end
    assert.are_not.equal(a.trials[1].value, a.trials[2].value)
  end)

  it("holds no more memory after thirty trials than after ten", function()
    local live = {}
    new { trials = 30 }:run(function(_, trial)
      local pipe = gp.pipeline(gp.nn.Sequential { gp.nn.Linear(64, 64) }, { loss = gp.nn.MSELoss() })
      pipe:step(gp.ones { 8, 64 }, gp.ones { 8, 64 })
      live[trial.number] = gp.memory().cpu.live
      return 1
    end)
    assert.are.equal(live[10], live[30])
  end)

  it("refuses another space or goal under its name, and says what differs", function()
    new():run(parabola)
    local good, message = pcall(new, { space = { x = sweep.uniform(-1, 2), n = sweep.int(1, 4) } })
    assert.is_false(good)
    assert.is_truthy(message:find("x is uniform -1..2, it was uniform -1..1", 1, true), message)
    assert.is_nil(message:find("n is", 1, true))
    good, message = pcall(new, { maximize = "value" })
    assert.is_false(good)
    assert.is_truthy(message:find("minimize value", 1, true), message)
  end)

  it("names a file that is not a sweep's", function()
    assert(os.execute("mkdir -p " .. folder))
    for _, case in ipairs { { "text", "hello, this is no database at all" }, { "cut", "SQLite" } } do
      local path = ("%s/%s.db"):format(folder, case[1])
      local file <close> = assert(io.open(path, "w"))
      file:write(case[2])
      file:close()
      local good, message = pcall(new, { name = case[1] })
      assert.is_false(good)
      assert.is_truthy(message:find(path, 1, true), message)
      assert.are.equal("format", errors.code_of(message))
    end
    local good, message = pcall(new, { dir = "/dev/null/x" })
    assert.is_false(good)
    assert.is_truthy(message:find("/dev/null", 1, true), message)
  end)

  with_signals("ends each trial that runs too long", function()
    local s = new { trials = 4, timeout = 0.2 }
    s:run(function(_, trial)
      while trial.number < 4 do end
      return 1
    end)
    assert.are.equal("timeout timeout timeout complete", states(s))
  end)

  it("refuses steps that do not ascend", function()
    local s = new { trials = 2 }
    s:run(function(_, trial)
      trial:report(2, 1)
      trial:report(trial.number == 1 and 2 or 1, 1)
    end)
    assert.are.equal("failed failed", states(s))
    assert.is_truthy(s.trials[1].error:find("trial:report: step is 2", 1, true))
  end)
end)

describe("the resources of a sweep", function()
  -- Count the open files. A pipe would not do: this process may close its second end before or
  -- after they are listed.
  local function files()
    local path, count = os.tmpname(), 0
    os.execute(("ls /proc/%d/fd >%s"):format(require "gpipe.core".process(), path))
    for _ in io.lines(path) do count = count + 1 end
    os.remove(path)
    return count
  end

  it("are freed: files, threads and statements", function()
    new():run(parabola)
    collectgarbage()
    collectgarbage()
    local before = files()
    for _ = 1, 20 do new { trials = 9 }:run(parabola) end
    collectgarbage()
    collectgarbage()
    assert.are.equal(before, files())
  end)

  it("are closed only once, and cannot be used afterwards", function()
    local db = assert(require "gpipe.core".database(folder .. ".db"))
    assert(db:run "CREATE TABLE t (a)")
    assert.is_false(pcall(db.run, db, "INSERT INTO t VALUES (?)", {}))
    assert(db:run("INSERT INTO t VALUES (?)", "x"))
    db:close()
    db:close()
    assert.is_false(pcall(db.run, db, "SELECT * FROM t"))
    os.remove(folder .. ".db")
  end)
end)

describe("a process of a sweep", function()
  local core = require "gpipe.core"
  local worker = require "gpipe.sweep.store.worker"

  local function row(more)
    local me = worker.me()
    local of = { id = 1, machine = me.machine, host = me.host, pid = me.pid, started = me.started,
      beat = 5 }
    for key, value in pairs(more) do of[key] = value end
    return of
  end

  it("lives while a process has its id and its start time", function()
    assert.is_true(worker.is_alive(row {}, {}))
    assert.is_false(worker.is_alive(row { started = 1 }, {})) -- the id was used again
    assert.is_false(worker.is_alive(row { pid = 0 }, {}))
    assert.is_false(worker.is_alive(row { ended = 1 }, {}))
  end)

  it("of another machine lives while its heartbeats come, by our own clock", function()
    local real, now, seen = core.seconds, 1000, {}
    core.seconds = function() return now end
    local function lives_after(seconds, beat)
      now = now + seconds
      return worker.is_alive(row { machine = "elsewhere", beat = beat }, seen)
    end
    local said = { lives_after(0, 5), lives_after(59, 5), lives_after(2, 6), lives_after(59, 6),
      lives_after(2, 6), lives_after(0, 7) }
    core.seconds = real
    assert.same({ true, true, true, true, false, true }, said)
  end)
end)

describe("a sweep in a process", function()
  local SCRIPT = [[
    local gp = require "gpipe"
    local s = gp.sweep {name = "s", dir = %q, trials = 8, quiet = true,
      space = {x = gp.sweep.uniform(-1, 1), n = gp.sweep.int(1, 4)}}
    s:run(function(params, trial) %s return params.x ^ 2 + params.n end)
  ]]
  local function run(body)
    local path = child.file(SCRIPT:format(folder, body))
    local out, err, code = child.run { path }
    os.remove(path)
    return out .. err, code
  end

  it("that is killed goes on, and runs only the interrupted trial again", function()
    local _, code = run [[if trial.number == 4 then os.execute("kill -9 $PPID") end]]
    assert.are.equal(137, code)
    local numbers = {}
    local s = new():run(function(params, trial)
      numbers[#numbers + 1] = ("%d.%d"):format(trial.number, trial.attempt)
      return parabola(params)
    end)
    assert.are.equal("4.2 5.1 6.1 7.1 8.1", table.concat(numbers, " "))
    local alone = new { name = "alone" }:run(parabola)
    for i, trial in ipairs(s.trials) do
      assert.same(alone.trials[i].params, trial.params)
      assert.are.equal(alone.trials[i].value, trial.value)
    end
  end)

  it("gives up a trial that kills it every time", function()
    for _ = 1, 3 do
      assert.are.equal(137, select(2, run "if trial.number == 2 then os.execute('kill -9 $PPID') end"))
    end
    local text, code = run "if trial.number == 2 then os.execute('kill -9 $PPID') end"
    assert.are.equal(0, code, text)
    local s = new()
    assert.are.equal("complete killed" .. (" complete"):rep(6), states(s))
    assert.is_truthy(s.trials[2].error:find "process %d+ on ")
  end)

  with_signals("that gets Ctrl-C leaves its trial to be run again", function()
    local text, code = run("if trial.number == 3 then " .. child.presses(0)
      .. " while true do end end")
    assert.are_not.equal(0, code, text)
    assert.are.equal("complete complete interrupted", states(new()))
    assert.are.equal(1, new():run(parabola).trials[3].attempts)
  end)

  it("shares its file with another one, and no trial runs twice", function()
    local path = child.file(SCRIPT:format(folder, "io.write(trial.number, '\\n')"))
    local out = child.shell(("for i in 1 2 3; do %s %s & done; wait"):format(child.program, path))
    os.remove(path)
    local numbers = {}
    for number in out:gmatch "%d+" do numbers[#numbers + 1] = math.tointeger(number) end
    table.sort(numbers)
    assert.same({ 1, 2, 3, 4, 5, 6, 7, 8 }, numbers)
  end)
end)
