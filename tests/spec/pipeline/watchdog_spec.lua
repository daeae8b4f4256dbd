-- tests/spec/pipeline/watchdog_spec.lua - passes that make no progress end, say why, and leave a
-- working pipeline.
--
-- A pipeline reads GPIPE_FAULT when it is made, so each fault needs a process of its own. These
-- specs do not measure times: a process that hangs runs into the time limit of the child.
local child = dofile "tests/child.lua"

-- The thread sanitizer holds signals back until the program blocks.
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

-- Eight layers run on four devices. Faults are in micro-batch 3, so a batch of two rows has none
-- and runs through.
local PRELUDE = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(1)
local layers = {}
for i = 1, 8 do layers[i] = nn.Linear(4, 4) end
local model = nn.Sequential(layers)
local x, y = gp.randn({ 8, 4 }, { seed = 1 }), gp.randn({ 8, 4 }, { seed = 2 })
local opts = { devices = { "cpu:0", "cpu:1", "cpu:2", "cpu:3" }, chunks = 4, loss = nn.MSELoss(), seed = 1,
  watchdog = 1 }
local function make(more)
  for key, value in pairs(more or {}) do opts[key] = value end
  return gp.pipeline(model, opts)
end
local function few(pipe)
  local loss = pipe:step(x:narrow(1, 1, 2), y:narrow(1, 1, 2))
  return ("%.17g"):format(type(loss) == "table" and pipe:flush()[1] or loss)
end
local function say(ok, ...) print(ok, ...) end
]]

local function run(fault, text, environment)
  local script = child.file(PRELUDE .. text)
  child.seconds = 60
  environment = environment or {}
  environment.GPIPE_FAULT = fault
  local out, err, code = child.run({ script }, { environment = environment })
  os.remove(script)
  return out, err, code
end

-- ---- every kind of schedule ---------------------------------------------------------------------

-- The fault, what hangs as the error names it, and what the post-mortem says in addition.
local cases = {
  { "1f1b", [[schedule = "1f1b"]], "stage=2,op=F", "device 2 %(cpu:2%) is in 2F3",
    "3F3 needs 2F3 from cpu:2 %(activation, stage 2 to 3%)" },
  { "1f1b, backward", [[schedule = "1f1b"]], "stage=2,op=B", "device 2 %(cpu:2%) is in 2B3",
    "1B3 needs 2B3 from cpu:2 %(gradient, stage 2 to 1%)" },
  { "recomputation", [[checkpoint = "always"]], "stage=1,op=R", "device 1 %(cpu:1%) is in 1R3",
    "0B3 needs 1B3" },
  { "interleaved", [[schedule = { "interleaved_1f1b", stages_per_device = 2 }, balance = { 1, 1, 1, 1, 1, 1, 1, 1 }]],
    "stage=5,op=B", "device 1 %(cpu:1%) is in 5B3",
    "4B3 needs 5B3 from cpu:1 %(gradient, stage 5 to 4%)" },
  { "zero bubble, V", [[schedule = "zbv", balance = { 1, 1, 1, 1, 1, 1, 1, 1 }]], "stage=4,op=F",
    "device 3 %(cpu:3%) is in 4F3", "5F3 needs 4F3 from cpu:3 %(activation, stage 4 to 5%)" },
  { "zero bubble, weights", [[schedule = "zb_h1"]], "stage=3,op=W",
    "device 3 %(cpu:3%) is in 3W3", "device 0 %(cpu:0%)" },
  { "two copies", [[schedule = "chimera"]], "stage=1,op=F", "device 2 %(cpu:2%) is in 1F3",
    "2F3 needs 1F3 from cpu:2" },
}

describe("a step that hangs", function()
  local reference -- the loss of the small batch, which no schedule changes
  setup(function() reference = run("", "print(few(make()))") end)

  for _, case in ipairs(cases) do
    it("ends with an error and a post-mortem, and the next one works: " .. case[1], function()
      local text = ("local pipe <close> = make { %s }\n"):format(case[2])
      local out, err, code = run(case[3] .. ",micro=3,action=hang", text .. [[
        local before = pipe:state_dict()
        for name, value in pairs(before) do before[name] = value:clone() end
        say(pcall(pipe.step, pipe, x, y))
        for name, value in pairs(pipe:state_dict()) do assert(gp.equal(value, before[name])) end
        for _, p in ipairs(pipe:parameters()) do assert(gp.equal(p.grad, gp.zeros(p.grad.shape))) end
        print(few(pipe))]])
      assert.equal(0, code, err)
      assert.matches("^false\t[^\n]*: no progress for %d+%.%d seconds: " .. case[4]
        .. " for %d+%.%d s\n", out)
      assert.equal(reference, out:match "\n(.*)$")
      assert.matches("^gpipe: post%-mortem of step %(training step 0%), %d+%.%d s after its "
        .. "begin:\n", err)
      assert.matches(case[5], err)
      for d = 0, 3 do assert.matches(("\n  device %d %%(cpu:%d%%): "):format(d, d), err) end
    end)
  end

  it("names the first message that is missing, and what each device did before", function()
    local _, err = run("stage=1,op=F,micro=3,action=hang", [[
      local pipe <close> = make { schedule = { "gpipe", backward = "fifo" } }
      pcall(pipe.step, pipe, x, y)]])
    assert.matches("\n  first missing message: 1F3 from cpu:1 %(activation, stage 1 to 2%)\n$", err)
    assert.matches("\n  device 1 %(cpu:1%): in 1F3 for [%d.]+ s; before: 1P0 1F0 1F1 1F2\n", err)
  end)

  it("ends a script that does not catch it with code 1 and a traceback", function()
    local out, err, code = run("stage=2,op=F,action=hang",
      "local pipe = make() pipe:step(x, y) print 'not reached'")
    assert.equal("", out)
    assert.equal(1, code)
    assert.matches("gpipe%-lua: [^\n]+: no progress for [^\n]+ is in 2F0 [^\n]+\nstack traceback:",
      err)
  end)

  it("is reported by every device that waits for the verdict before its updates", function()
    local out, err = run("stage=2,op=B,micro=3,action=hang", [[
      local pipe <close> = make()
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
      say(pcall(pipe.step, pipe, x, y))
      print(few(pipe))]])
    assert.matches("^false\t.-is in 2B3.-\n[%d.]+\n$", out)
    assert.matches("device 3 %(cpu:3%): waiting for [%d.]+ s: "
      .. "3U0 needs 0DECIDE from cpu:0 %(the verdict on the update%)", err)
  end)
end)

-- ---- other passes -------------------------------------------------------------------------------

describe("a pass that hangs", function()
  for name, call in pairs {
    evaluate = "pipe:evaluate(x, y)", forward = "pipe:forward(x)",
    ["forward of eval"] = "pipe:eval():forward(x)",
  } do
    it("ends with an error: " .. name, function()
      local out, err, code = run("stage=2,op=F,micro=3,action=hang", ([[
        local pipe <close> = make()
        say(pcall(function() return %s end))
        print(few(pipe:train()))]]):format(call))
      assert.equal(0, code, err)
      assert.matches("^false\t.-no progress for [%d.]+ seconds: device 2 %(cpu:2%) is in 2F3", out)
      assert.matches("post%-mortem of " .. name:match "%a+", err)
    end)
  end

  it("ends with an error: backward", function()
    local out, err = run("stage=2,op=B,micro=3,action=hang", [[
      local pipe <close> = make()
      pipe:forward(x)
      say(pcall(pipe.backward, pipe, gp.ones { 8, 4 }))
      print(few(pipe))]])
    assert.matches("^false\t.-no progress for [%d.]+ seconds: device 2 %(cpu:2%) is in "
      .. "2B3.-\n[%d.]+\n$", out)
    assert.matches("post%-mortem of backward", err)
  end)
end)

describe("a stream that hangs", function()
  it("ends the step without a barrier with an error; after loading a state the next one works",
    function()
    local out, err, code = run("stage=2,op=B,step=1,micro=3,action=hang", [[
      local pipe <close> = make()
      local state = pipe:state_dict()
      for name, value in pairs(state) do state[name] = value:clone() end
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }), { barrier = false })
      local ok, message
      for _ = 1, 5 do ok, message = pcall(pipe.step, pipe, x, y) if not ok then break end end
      print(ok, message)
      pipe:load_state_dict(state)
      print(few(pipe))]])
    assert.equal(0, code, err)
    assert.matches("^false\t.-no progress for [%d.]+ seconds: device 2 %(cpu:2%) is in "
      .. "2B7.-\n[%d.]+\n$", out)
    assert.matches("post%-mortem of the stream of steps", err)
  end)

  for _, name in ipairs { "pipedream", "pipedream_2bw" } do
    it("of mini-batches ends with an error; after loading a state it works again: " .. name,
      function()
      local out, err, code = run("stage=2,op=F,micro=3,action=hang", ([[
        local pipe <close> = make { schedule = "%s" }
        local state = pipe:state_dict()
        for name, value in pairs(state) do state[name] = value:clone() end
        pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
        print(pcall(function() for _ = 1, 5 do pipe:step(x, y) end pipe:flush() end))
        pipe:load_state_dict(state)
        print(few(pipe))]]):format(name))
      assert.equal(0, code, err)
      assert.matches("^false\t.-no progress for [%d.]+ seconds: device 2 %(cpu:2%) is in 2F3@", out)
      assert.matches("\n[%d.e-]+\n$", out)
      assert.matches("post%-mortem of the stream of steps", err)
    end)
  end

  it("ends flush with an error", function()
    local out, err, code = run("stage=0,op=B,micro=3,action=hang", [[
      local pipe <close> = make { schedule = "pipedream" }
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
      pipe:step(x, y)
      say(pcall(pipe.flush, pipe))]])
    assert.equal(0, code, err)
    assert.matches("^false\t.-no progress for [%d.]+ seconds: device 0 %(cpu:0%) is in 0B3", out)
  end)
end)

-- ---- actions that never return -----------------------------------------------------------------

describe("an action that never ends", function()
  local LOST = [[
    say(pcall(pipe.step, pipe, x, y))
    say(pcall(pipe.step, pipe, x, y))
    say(pcall(pipe.zero_grad, pipe))
    assert(pipe:post_mortem():find("device 2 (cpu:2): in 2F3", 1, true))
    assert(gp.equal(pipe:state_dict()["1.weight"], model:parameters()[1].value))
    pipe:close()
    x, y = nil, nil
    collectgarbage() collectgarbage()
    local other <close> = gp.pipeline(model, { loss = nn.MSELoss() })
    print(other:step(gp.ones { 2, 4 }, gp.ones { 2, 4 }) > 0)]]

  it("breaks the pipeline, and neither close nor the end of the process hangs", function()
    local out, err, code = run("stage=2,op=F,micro=3,action=sleep:1000",
      "local pipe = make()\n" .. LOST)
    assert.equal(0, code, err)
    local lines = {}
    for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.matches("is in 2F3 for [%d.]+ s; cpu:2 did not come back from it: the pipeline is lost, "
      .. "close it$", lines[1])
    assert.matches("step: the pipeline is lost", lines[2])
    assert.matches("zero_grad: the pipeline is lost", lines[3])
    assert.equal("true", lines[4])
    assert.is_nil(lines[5])
  end)

  it("breaks it in a stream and with an optimizer too", function()
    local out, err, code = run("stage=2,op=U,action=sleep:1000", [[
      local pipe = make { schedule = "pipedream" }
      local opt = gp.optim.Adam(pipe:parameters(), { lr = 0.1 })
      pipe:use(opt)
      print(pcall(function() for _ = 1, 5 do pipe:step(x, y) end pipe:flush() end))
      print(pcall(pipe.flush, pipe))
      opt, pipe = nil, nil
      collectgarbage() collectgarbage()
      print "end"]])
    assert.equal(0, code, err)
    assert.matches("^false\t.-is in 2U%d+.-did not come back.-\nfalse\t.-lost.-\nend\n$", out)
  end)

  with_signals("ends with Ctrl-C in a stream too", function()
    local out, err, code = run("stage=1,op=B,micro=3,action=hang", [[
      local pipe <close> = make { schedule = "pipedream", watchdog = 30 }
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
      io.popen("sleep 1.5; kill -INT $PPID")
      while true do pipe:step(x, y) end]])
    assert.equal("", out)
    assert.equal(130, code)
    assert.matches("^gpipe%-lua: interrupted!\nstack traceback:", err)
  end)

  with_signals("is abandoned on Ctrl-C as well", function()
    local out, err, code = run("stage=2,op=F,micro=3,action=hang", [[
      local pipe = make { watchdog = false }
      io.popen("sleep 1.5; kill -INT $PPID")
      local ok, e = pcall(pipe.step, pipe, x, y)
      print(ok, e.code, pipe:post_mortem():match "in 2F3")
      print(few(pipe))]])
    assert.equal(0, code, err)
    assert.equal("", err)
    assert.matches("^false\tinterrupt\tin 2F3\n[%d.]+\n$", out)
  end)
end)

-- ---- what is only slow --------------------------------------------------------------------------

describe("a step that is slow but moves", function()
  it("goes on, however long it takes", function()
    local out, err, code = run("op=F,action=sleep:0.1;op=B,action=sleep:0.1", [[
      local pipe <close> = make { watchdog = 1 }
      print(pipe:step(x, y) > 0, pipe:post_mortem())]])
    assert.equal(0, code, err)
    assert.equal("true\tnil\n", out)
    assert.equal("", err)
  end)

  it("is abandoned when one action takes too long, and works when that returns", function()
    local out, err, code = run("stage=1,op=F,micro=3,action=sleep:1.7", [[
      local pipe <close> = make()
      print(pcall(pipe.step, pipe, x, y))
      print(few(pipe))]])
    assert.equal(0, code, err)
    assert.matches("^false\t.-device 1 %(cpu:1%) is in 1F3[^;]-\n[%d.]+\n$", out)
  end)

  it("goes on where there is no watchdog", function()
    for _, off in ipairs { "false", "0" } do
      local out = run("stage=1,op=F,micro=3,action=sleep:0.4", ([[
        local pipe <close> = make { watchdog = %s }
        print(pipe:step(x, y) > 0)]]):format(off))
      assert.equal("true\n", out)
    end
  end)
end)

-- ---- the option ---------------------------------------------------------------------------------

describe("option watchdog", function()
  it("comes from GPIPE_WATCHDOG where the script does not say", function()
    local out, _, code = run("stage=1,op=F,action=hang", [[
      opts.watchdog = nil
      local pipe <close> = make()
      print(pcall(pipe.step, pipe, x, y))]], { GPIPE_WATCHDOG = "1" })
    assert.equal(0, code)
    assert.matches("^false\t.-no progress for %d+%.%d seconds", out)
  end)

  it("is refused where it is not a time", function()
    local out = run("", [[
      for _, value in ipairs { -1, 0 / 0, 1 / 0, "1", {} } do print(select(2, pcall(make, { watchdog = value }))) end]])
    local count = 0
    for line in out:gmatch "[^\n]+" do
      assert.matches("gp.pipeline: option 'watchdog' is .-, expected a number or true or false >= "
        .. "0 and <= 1", line)
      count = count + 1
    end
    assert.equal(5, count)
    for _, text in ipairs { "soon", "-1", "nan", "1e99" } do
      local _, err, code = run("", "opts.watchdog = nil make()", { GPIPE_WATCHDOG = text })
      assert.equal(1, code)
      assert(err:find(("gp.pipeline: GPIPE_WATCHDOG is '%s', expected seconds"):format(text), 1,
        true), err)
    end
  end)
end)
