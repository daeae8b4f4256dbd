-- tests/spec/sweep/parallel_spec.lua - trials in processes of their own.
local child = dofile "tests/child.lua"
local gp = require "gpipe"

local folder
before_each(function()
  folder = os.tmpname()
  os.remove(folder)
end)
after_each(function() os.execute("rm -rf " .. folder) end)

local SCRIPT = [[
  local gp = require "gpipe"
  print("before", #arg, arg[1])
  local s = gp.sweep {name = "s", dir = %q, trials = %d, quiet = true, parallel = %d, method = "random",
    space = {x = gp.sweep.uniform(-1, 1), n = gp.sweep.int(1, 4)}, %s}
  s:run(function(params, trial) %s return params.x ^ 2 + params.n end)
  print("after", s.best.number, #s.trials)
]]

local function open()
  return gp.sweep { name = "s", dir = folder, trials = 1, quiet = true,
    space = { x = gp.sweep.uniform(-1, 1), n = gp.sweep.int(1, 4) } }
end

local function run(o)
  local path = child.file(SCRIPT:format(folder, o.trials or 8, o.parallel or 2, o.options or "",
    o.body or ""))
  local out, err, code = child.run { path, "word" }
  os.remove(path)
  return out .. err, code
end

local function states(s)
  local list = {}
  for i, trial in ipairs(s.trials) do list[i] = trial.state end
  return table.concat(list, " ")
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- Makes shell text that waits until so many trials have written "began".
local function wait_for(count)
  return ('until [ "$(cat %s/*.txt 2>/dev/null | grep -o began | wc -l)" -ge %d ]; do sleep 0.05; done;')
    :format(folder, count)
end

describe("a sweep in two processes", function()
  it("runs every trial once, with the values of one process, and the script goes on once", function()
    local text, code = run {}
    assert.are.equal(0, code, text)
    assert.is_truthy(text:find "^before\t1\tword\nafter\t%d+\t8\n$", text)
    local s = open()
    assert.are.equal(("complete "):rep(8), states(s) .. " ")
    for _, trial in ipairs(s.trials) do
      assert.are.equal(trial.params.x ^ 2 + trial.params.n, trial.value)
      assert.are.equal(1, trial.attempts)
    end
    assert.is_truthy(read(folder .. "/s.worker-1.txt"):find("before\t1\tword", 1, true))
    assert.is_nil(read(folder .. "/s.worker-1.txt"):find("after", 1, true))
  end)

  it("distributes devices and shares of the cores", function()
    local text, code = run { options = 'devices = {"cpu:0", "cpu:1"}',
      body = [[print("has", gp.devices()[1].name, #gp.devices(), require "gpipe.core".machine().cores)
        require "gpipe.core".sleep(0.1)]] }
    assert.are.equal(0, code, text)
    local cores = require "gpipe.core".machine().cores
    local shares = 0
    for worker = 1, 2 do
      local printed = read(("%s/s.worker-%d.txt"):format(folder, worker))
      local name, count, share = printed:match "has\t(%S+)\t(%d+)\t(%d+)"
      assert.are.equal("cpu:" .. worker - 1, name, printed)
      assert.are.equal("1", count)
      shares = shares + math.tointeger(tonumber(share))
    end
    assert.are.equal(math.max(2, cores), shares)
  end)

  it("records a trial that dies with its signal, runs it again and goes on", function()
    local text, code = run { options = "retries = 1",
      body = "if trial.number == 3 then os.execute('kill -KILL $PPID') end" }
    assert.are.equal(0, code, text)
    local s = open()
    assert.are.equal("complete complete killed" .. (" complete"):rep(5), states(s))
    assert.are.equal(2, s.trials[3].attempts)
    assert.is_truthy(s.trials[3].error:find("signal 9", 1, true), s.trials[3].error)
  end)

  it("ends a trial that runs too long, also one that ignores interrupts", function()
    local text, code = run { options = "timeout = 0.3", trials = 4,
      body = "if trial.number == 2 then while true do end end" }
    assert.are.equal(0, code, text)
    assert.are.equal("complete timeout complete complete", states(open()))
  end)

  it("says why a script fails before its sweep", function()
    local path = child.file(([[
      if os.getenv "GPIPE_SWEEP_WORKER" then error "no data" end
      require "gpipe".sweep {name = "s", dir = %q, parallel = 2, quiet = true,
        space = {x = 1}}:run(print)]]):format(folder))
    local out, err, code = child.run { path }
    os.remove(path)
    assert.are.equal(1, code)
    assert.is_truthy((out .. err):find("no data", 1, true), err)
    assert.is_truthy((out .. err):find(folder .. "/s.worker-", 1, true), err)
  end)

  it("needs a script", function()
    local out, err, code = child.run({ "-e", ([[require "gpipe".sweep {name = "s", dir = %q,
      parallel = 2, space = {x = 1}}:run(print)]]):format(folder) })
    assert.are.equal(1, code, out)
    assert.is_truthy(err:find("parallel is 2", 1, true), err)
  end)

  it("leaves no process behind when it is killed, and goes on", function()
    local path = child.file(SCRIPT:format(folder, 6, 2, "",
      "if not gone and trial.number == 3 then io.stderr:write 'began' os.execute('sleep 30') end")
      :gsub("gone", "os.getenv 'GPIPE_TEST_GONE'"))
    local line = "%s %s >/dev/null & %s kill -9 $!; sleep 0.3; pgrep -f %s"
    local out = child.shell(line:format(child.program, path, wait_for(1), path .. "$"))
    assert.are.equal("", out)
    local _, err, code = child.run({ path }, { environment = { GPIPE_TEST_GONE = "1" } })
    os.remove(path)
    assert.are.equal(0, code, err)
    local s = open()
    assert.are.equal(("complete "):rep(6), states(s) .. " ")
    local again = 0
    for _, trial in ipairs(s.trials) do again = again + trial.attempts - 1 end
    assert.is_true(again == 1 or again == 2, again)
  end)

  it("ends with Ctrl-C, keeps its trials for the next time, and leaves no process", function()
    local path = child.file(SCRIPT:format(folder, 6, 2, "",
      "io.stderr:write 'began' while not os.getenv 'GPIPE_TEST_GONE' do end"))
    local line = "env --default-signal=INT %s %s >/dev/null & %s kill -INT $!; wait $!; "
      .. "echo code $?; sleep 0.2; pgrep -f %s"
    local out, err = child.shell(line:format(child.program, path, wait_for(2), path .. "$"))
    assert.are.equal("code 130\n", out, err)
    assert.are.equal("interrupted interrupted", states(open()))
    local _, text, code = child.run({ path }, { environment = { GPIPE_TEST_GONE = "1" } })
    os.remove(path)
    assert.are.equal(0, code, text)
    assert.are.equal(("complete "):rep(6), states(open()) .. " ")
  end)

  it("shows the best trials in one place of a terminal", function()
    if not child.has "script" then return pending "no script to make a terminal" end
    local path = child.file(SCRIPT:format(folder, 6, 2, "", "os.execute('sleep 0.1')")
      :gsub("quiet = true", "quiet = false"))
    local out, err, code = child.shell(("env TERM=xterm COLUMNS=80 script -qec %s /dev/null"):format(
      child.quote(child.program .. " " .. path)))
    os.remove(path)
    assert.are.equal(0, code, err)
    assert.is_truthy(out:find("\27%[%d+A\r?\27%[J"), out)
    assert.is_truthy(out:find("s: 6 complete of 6 trials", 1, true), out)
  end)
end)
