-- tests/spec/cli/stop_spec.lua - SIGTERM and SIGHUP are reported before they end the program, or
-- wait for the end of a step.

local child = dofile "tests/child.lua"

-- The thread sanitizer holds signals back until the next system call: a loop without one never
-- receives them.
local in_loops = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

-- Returns Lua text that sends the program a signal after each of the pauses (in seconds).
local function signals(name, ...)
  local sent = {}
  for i, pause in ipairs { ... } do sent[i] = ("sleep %g; kill -%s $PPID"):format(pause, name) end
  return ("Sent = io.popen(%q)\n"):format(table.concat(sent, "; "))
end

local function run(text)
  local script = child.file(text)
  child.seconds = 20
  local out, err, code = child.run { script }
  os.remove(script)
  return out, err, code
end

local TRAIN = [[
  local gp = require "gpipe"
  local pipe = gp.pipeline(gp.nn.Sequential {gp.nn.Linear(2, 2)}, {loss = gp.nn.MSELoss()})
  local x = gp.ones {4, 2}
  local opt = gp.optim.SGD(pipe:parameters(), {lr = 0.1})
  local steps, updates = 0, 0
  %s
  while true do
    pipe:step(x, x)
    steps = steps + 1
    opt:step()
    updates = updates + 1
    if updates == 1 then %s end
  end]]

describe("a signal that asks the program to end", function()
  for name, number in pairs { TERM = 15, HUP = 1 } do
    in_loops(("is reported, and ends it: SIG%s"):format(name), function()
      local _, err, code = run(signals(name, 0.3) .. "while true do end")
      assert.matches("SIG" .. name, err)
      assert.equal(128 + number, code)
    end)

    it(("is kept for the end of a step where a handler asks: SIG%s"):format(name), function()
      local out, err, code = run(TRAIN:format([[
        gp.on_stop(function(signal)
          print(signal, steps == updates, pipe:evaluate(x, x) >= 0)
        end)]], signals(name, 0.3)))
      assert.equal(("SIG%s\ttrue\ttrue\n"):format(name), out)
      assert.matches("SIG" .. name, err)
      assert.equal(128 + number, code)
    end)
  end

  it("changes nothing if it does not come", function()
    local out, err, code = run [[
      local gp = require "gpipe"
      gp.on_stop(print)
      local pipe = gp.pipeline(gp.nn.Sequential {gp.nn.Linear(2, 2)}, {loss = gp.nn.MSELoss()})
      pipe:step(gp.ones {4, 2}, gp.ones {4, 2})
      gp.on_stop(nil)]]
    assert.same({ "", "", 0 }, { out, err, code })
  end)

  it("ends the program at once where the handler was removed", function()
    local out, _, code = run(TRAIN:format("gp.on_stop(print) gp.on_stop(nil)",
      signals("TERM", 0.3)))
    assert.equal("", out)
    assert.equal(128 + 15, code)
  end)

  in_loops("ends it at once when it comes a second time", function()
    local out, _, code = run("local gp = require 'gpipe' gp.on_stop(print)\n"
      .. signals("TERM", 0.2, 0.3) .. "while true do end")
    assert.equal("", out)
    assert.equal(128 + 15, code)
  end)

  it("is one request where timeout or a batch system sends it twice at once", function()
    local twice = "Sent = io.popen 'sleep 0.3; kill -TERM $PPID; kill -TERM $PPID'"
    local out, _, code = run(TRAIN:format("gp.on_stop(function(signal) print(signal, steps == updates) end)",
      twice .. " gp.randn({2000, 2000}):matmul(gp.randn {2000, 2000})"))
    assert.equal("SIGTERM\ttrue\n", out)
    assert.equal(128 + 15, code)
  end)

  it("ends the program even if the handler fails", function()
    local _, err, code = run(TRAIN:format("gp.on_stop(function() error 'full' end)",
      signals("TERM", 0.3)))
    assert.matches("full", err)
    assert.equal(128 + 15, code)
  end)

  it("stays ignored under nohup", function()
    local script = child.file(signals("HUP", 0.2)
      .. "local t = os.clock() while os.clock() < t + 0.8 do end print 'went on'")
    local out, _, code = child.shell(("trap '' HUP; exec %s %s"):format(child.quote(child.program),
      script))
    os.remove(script)
    assert.equal("went on\n", out)
    assert.equal(0, code)
  end)
end)

describe("gp.on_stop", function()
  it("takes only functions", function()
    local good, text = pcall(require "gpipe".on_stop, "save")
    assert.is_false(good)
    assert.matches("a function", text)
  end)
end)
