-- tests/spec/pipeline/faults_spec.lua - actions that fail, hang, sleep or compute wrong values give
-- the same text every time.
--
-- A pipeline reads GPIPE_FAULT when it is made, so each fault needs a process of its own.
local child = dofile "tests/child.lua"

-- The thread sanitizer holds signals back until the program blocks.
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

-- Two stages of 1F1B over 7 rows in 3 micro-batches; everything is recomputed, so that R runs too.
local PRELUDE = [[
local gp = require "gpipe"
local nn = gp.nn
gp.seed(1)
local model = nn.Sequential { nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 3) }
local x, y = gp.randn({ 7, 4 }, { seed = 1 }), gp.tensor({ 0, 1, 2, 0, 1, 2, -1 }, { dtype = "i64" })
local pipe = gp.pipeline(model, { balance = { 2, 2 }, devices = { { "cpu:0", threads = 2 }, "cpu:1" }, chunks = 3,
  checkpoint = "always", loss = nn.CrossEntropyLoss { ignore_index = -1 }, seed = 1 })
local function few() return pipe:step(x:narrow(1, 1, 2), y:narrow(1, 1, 2)) end
]]

local function run(fault, text, ...)
  local script = child.file(PRELUDE .. child.presses(...) .. text)
  child.seconds = 60
  local out, err, code = child.run({ script }, { environment = { GPIPE_FAULT = fault } })
  os.remove(script)
  return out, err, code
end

-- ---- failures ----------------------------------------------------------------------------------

local FAILING = [[
local state = pipe:state_dict()
for _ = 1, 3 do print(select(2, pcall(pipe.step, pipe, x, y))) end
for name, value in pairs(pipe:state_dict()) do assert(gp.equal(value, state[name])) end
for _, p in ipairs(pipe:parameters()) do assert(gp.equal(p.grad, gp.zeros(p.grad.shape))) end
print(("%.17g"):format(few()))
pipe:close()
]]

local reference -- the loss of the small batch where nothing failed

describe("an action that fails", function()
  setup(function()
    local out = run("", "print(('%.17g'):format(few()))")
    reference = out:match "%S+"
  end)

  for stage = 0, 1 do
    for _, op in ipairs { "F", "B", "R", stage == 1 and "C" or nil } do
      it(("gives the same error every time, and the next step works: %s of stage %d"):format(op,
        stage), function()
        local out, err, code = run(("stage=%d,op=%s,micro=2,action=fail"):format(stage, op),
          FAILING)
        assert.equal("", err)
        assert.equal(0, code)
        local lines = {}
        for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
        assert.matches("GPIPE_FAULT asked for this failure$", lines[1])
        assert.equal(lines[1], lines[2])
        assert.equal(lines[1], lines[3])
        assert.equal(reference, lines[4])
      end)
    end
  end

  it("ends a script that does not catch it with code 1 and a traceback", function()
    local _, err, code = run("stage=1,op=B,action=fail", "pipe:step(x, y)")
    assert.equal(1, code)
    assert.matches("GPIPE_FAULT asked for this failure\nstack traceback:", err)
  end)

  it("may fail in one step only", function()
    local out, _, code = run("step=1,stage=0,op=F,action=fail", [[
      print((pcall(few)), (pcall(few)), (pcall(few)))]])
    assert.equal("true\tfalse\tfalse\n", out) -- a step that failed is step 1 again
    assert.equal(0, code)
  end)

  it("does not affect evaluation where it is a backward pass", function()
    local out = run("op=B,action=fail", [[
      print(pipe:evaluate(x, y) > 0, (pcall(few)), pipe:eval():forward(x).shape[1])]])
    assert.equal("true\tfalse\t7\n", out)
  end)

  it("in pipe:backward leaves zero gradients", function()
    local out = run("op=B,micro=1,action=fail", [[
      pipe:forward(x)
      print((pcall(pipe.backward, pipe, gp.ones { 7, 3 })))
      for _, p in ipairs(pipe:parameters()) do assert(gp.equal(p.grad, gp.zeros(p.grad.shape))) end
      print(select(2, pcall(pipe.backward, pipe, gp.ones { 7, 3 })):match "there is no forward")]])
    assert.equal("false\nthere is no forward\n", out)
  end)

  it("is refused where it is misspelt", function()
    for fault, wanted in pairs {
      ["stage=1,action=explode"] =
        "GPIPE_FAULT: action 'explode', expected fail, hang, interrupt, nan or sleep:SECONDS",
      ["stag=1,action=fail"] = "GPIPE_FAULT: unknown field 'stag'",
      ["stage"] = "GPIPE_FAULT: 'stage' has no '=', expected key=value",
      ["action=nan; micro=1x,action=fail"] =
        "GPIPE_FAULT: field 'micro' is '1x', expected a number from 0 (in rule 'micro=1x,action=fail')",
    } do
      local _, err, code = run(fault, "")
      assert.equal(1, code)
      assert(err:find(wanted, 1, true), err)
    end
  end)
end)

-- ---- rules -----------------------------------------------------------------------------------

describe("several rules", function()
  it("all strike where they match", function()
    local out = run("op=F,action=sleep:0.001; stage=1,op=B,action=sleep:0.001; device=1,op=C,action=fail;", [[
      print((pcall(few)), pipe:eval():forward(x).shape[1])]])
    assert.equal("false\t7\n", out)
  end)

  it("may name each action that a device does", function()
    for op, stage in pairs { F = 0, B = 1, R = 0, C = 1, P = 0, U = 0 } do
      local out, err = run(("stage=%d,op=%s,action=fail"):format(stage, op), [[
        pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
        print((pcall(few)))]])
      assert.equal("false\n", out, op .. err)
    end
  end)
end)

-- ---- values that are not numbers ---------------------------------------------------------------

describe("an action whose results are not numbers", function()
  it("shows in the loss", function()
    for _, where in ipairs { "stage=1,op=F,micro=1", "stage=0,op=F", "device=1,op=F" } do
      local out, err = run(where .. ",action=nan",
        "local loss = pipe:step(x, y) print(loss ~= loss)")
      assert.equal("true\n", out)
      assert.matches("^gpipe: the loss is nan at step 1", err)
    end
  end)

  it("shows in the gradients of its stage and of those before it", function()
    local out, err = run("stage=1,op=B,micro=0,action=nan", [[
      local loss = pipe:step(x, y)
      for _, p in ipairs(pipe:parameters()) do print(p.name, p.grad:ne(p.grad):sum():item() == p.grad:numel()) end
      print(loss == loss)]])
    assert.equal("", err)
    assert.equal("1.weight\ttrue\n1.bias\ttrue\n4.weight\ttrue\n4.bias\ttrue\ntrue\n", out)
  end)

  it("shows in the parameters after an update", function()
    local out = run("stage=0,op=U,action=nan", [[
      pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
      pipe:step(x, y)
      for _, p in ipairs(pipe:parameters()) do print(p.name, p.value:ne(p.value):sum():item() == p.value:numel()) end]])
    assert.equal("1.weight\ttrue\n1.bias\ttrue\n4.weight\tfalse\n4.bias\tfalse\n", out)
  end)

  it("is found by finite = true, which names the layer that made them", function()
    for where, wanted in pairs {
      ["stage=0,op=F"] = "2 %(Tanh%): tanh made a value that is not finite",
      ["stage=1,op=B"] = " made a value that is not finite in the backward pass",
      ["stage=1,op=F,step=1"] = "output: copy made a value that is not finite",
    } do
      local out = run(where .. ",action=nan", [[
        pipe:close()
        pipe = gp.pipeline(model, { balance = { 2, 2 }, devices = { "cpu:0", "cpu:1" }, chunks = 3, finite = true,
          loss = nn.CrossEntropyLoss { ignore_index = -1 }, seed = 1 })
        for _ = 1, 2 do
          local ok, message = pcall(pipe.step, pipe, x, y)
          if not ok then print(message) break end
        end]])
      assert.matches(wanted, out)
    end
  end)
end)

-- ---- hangs and slow actions ---------------------------------------------------------------------

describe("an action that hangs", function()
  for _, where in ipairs { "stage=0,op=F,micro=0", "stage=1,op=F,micro=1", "stage=0,op=B,micro=2",
    "stage=1,op=C,micro=0" } do
    with_signals("ends with Ctrl-C and code 130: " .. where, function()
      local out, err, code = run(where .. ",action=hang", "pipe:step(x, y) print 'not reached'",
        0.8)
      assert.equal("", out)
      assert.matches("^gpipe%-lua: interrupted!\nstack traceback:", err)
      assert.equal(130, code)
    end)
  end

  with_signals("ends with a Lua error that can be caught; the pipeline works on", function()
    local out, err, code = run("stage=1,op=F,micro=2,action=hang", [[
      local ok, e = pcall(pipe.step, pipe, x, y)
      print(ok, tostring(e), e.code)
      for _, p in ipairs(pipe:parameters()) do assert(gp.equal(p.grad, gp.zeros(p.grad.shape))) end
      print(("%.17g"):format(few()))]], 0.8)
    assert.equal("", err)
    assert.equal(("false\tinterrupted!\tinterrupt\n%s\n"):format(reference), out)
    assert.equal(0, code)
  end)
end)

describe("Ctrl-C", function()
  with_signals("stops a training loop between two actions", function()
    local out, err, code = run("", "while true do pipe:step(x, y) end", 0.8)
    assert.equal("", out)
    assert.matches("interrupted!", err)
    assert.equal(130, code)
  end)

  with_signals("stops an action that would take minutes", function()
    local out, err, code = run("", [[
      local Long = nn.class("Long")
      function Long:init() self.w = nn.Parameter({ 1024, 1024 }, nn.init.zeros()) end
      function Long:forward(a)
        for _ = 1, 1000 do a = a:matmul(self.w) end
        return a
      end
      local long = gp.pipeline(nn.Sequential { Long() }, { chunks = 1, loss = nn.MSELoss() })
      local a = gp.zeros { 8192, 1024 }
      print(pcall(long.evaluate, long, a, a))
      print(("%.17g"):format(few()))]], 2)
    assert.equal("", err)
    assert.matches("^false\tinterrupted!\n%d", out)
    assert.equal(0, code)
  end)

  with_signals("closes pipelines on the way out", function()
    local out, _, code = run("", [[
      local _done <close> = setmetatable({}, { __close = function() print(tostring(pipe):match "^%S+ %S+") end })
      local _pipe <close> = pipe
      while true do pipe:step(x, y) end]], 0.8)
    assert.equal("pipeline (closed):\n", out)
    assert.equal(130, code)
  end)
end)

describe("slow actions", function()
  it("change no bit", function()
    local losses = {}
    for i, fault in ipairs { "", "stage=0,op=F,action=sleep:0.01",
      "stage=1,op=B,action=sleep:0.01" } do
      losses[i] = run(fault, "for _ = 1, 3 do print(('%.17g'):format(pipe:step(x, y))) end")
    end
    assert.matches("^%d", losses[1])
    assert.equal(losses[1], losses[2])
    assert.equal(losses[1], losses[3])
  end)
end)

-- ---- losses that are not finite -----------------------------------------------------------------

describe("a loss that is not finite", function()
  it("is returned as it is and reported once", function()
    local out, err, code = run("", [[
      for _, p in ipairs(pipe:parameters()) do p.value:copy_(0 / 0) end
      print(pipe:step(x, y) ~= pipe:step(x, y))
      pipe:step(x, y)]])
    assert.equal("true\n", out)
    assert.equal("gpipe: the loss is nan at step 1 (reported once; finite = true names the layer)\n",
      err)
    assert.equal(0, code)
  end)
end)

-- ---- the end of a process -----------------------------------------------------------------------

describe("a process", function()
  it("ends with open pipelines, collected ones, and ones whose step failed", function()
    local out, err, code = run("stage=1,op=F,micro=2,action=fail", [[
      pcall(pipe.step, pipe, x, y)
      for i = 1, 3 do
        local other = gp.pipeline(nn.Sequential { nn.Linear(4, 3) }, { chunks = 2,
          loss = nn.CrossEntropyLoss { ignore_index = -1 } })
        other:step(x, y)
        if i == 2 then other = nil collectgarbage() end
        if i == 3 then kept = other end
      end
      print "end"]])
    assert.equal("end\n", out)
    assert.equal("", err)
    assert.equal(0, code)
  end)

  it("ends through os.exit at any time", function()
    local _, err, code = run("", "pipe:step(x, y) pipe:forward(x) os.exit(3, true)")
    assert.equal("", err)
    assert.equal(3, code)
    -- Without closing the state nothing is freed, which the leak sanitizer reports.
    if os.getenv "GPIPE_SANITIZE" == "address" then return end
    assert.equal(4, (select(3, run("", "pipe:step(x, y) os.exit(4)"))))
  end)
end)
