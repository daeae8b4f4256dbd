-- tests/spec/pipeline/links_spec.lua - values reach their readers over any kind of link, and the
-- bits stay the same.
--
-- The tested kind is a library of the tests (tests/links): a pair of sockets, whose ends share
-- neither memory nor state. The build also runs some specs of transparency over it.

local child = dofile "tests/child.lua"

local library = os.getenv "GPIPE_TEST_LINK"
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

local function over_sockets(test, sentence, f)
  test(sentence, function()
    if not library then pending("GPIPE_TEST_LINK names no library of links") return end
    f()
  end)
end

-- Runs steps, evaluation and a forward pass on four devices; arg: the schedule, and whether it
-- streams.
local SCRIPT = [[
local gp = require "gpipe"
local models = require "tests.support.models"
local x, y = models.ids(7, 6), models.ids(7, 6)
local pipe <close> = gp.pipeline(models.gpt()(), { balance = { 2, 1, 2, 2 }, chunks = 5, schedule = SCHEDULE,
  devices = { "cpu:0", "cpu:1", "cpu:2", "cpu:3" }, loss = gp.nn.CrossEntropyLoss(), seed = 1, watchdog = 3 })
pipe:use(gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 }), OPTIONS)
local function sockets()
  local list <close> = io.popen "ls -l /proc/$PPID/fd"
  return select(2, list:read "a":gsub("socket:", ""))
end
local function show(loss)
  for _, l in ipairs(type(loss) == "table" and loss or { loss }) do print(("%a"):format(l)) end
end
]]

local STEPS = [[
for _ = 1, 5 do show(pipe:step(x, y)) end
if pipe.flush then show(pipe:flush()) end
print(("%a"):format(pipe:evaluate(x, y)))
print(sockets() > 0)
]]

local function run(schedule, text, more, environment)
  local head = SCRIPT:gsub("SCHEDULE", ("%q"):format(schedule)):gsub("OPTIONS",
    more or "{ clip_norm = 1 }")
  local script = child.file(head .. text)
  child.seconds = 60
  local out, err, code = child.run({ script }, { environment = environment })
  os.remove(script)
  assert.equal(0, code, err)
  return out
end

describe("a pipeline over sockets", function()
  for _, schedule in ipairs { "gpipe", "1f1b", "zb_h1", "chimera" } do
    over_sockets(it, "gives the same bits: " .. schedule, function()
      local wanted = run(schedule, STEPS)
      local out = run(schedule, STEPS, nil, { GPIPE_LINK_PLUGIN = library })
      assert.matches("^0x.*\ntrue\n$", out)
      assert.equal(wanted:gsub("false\n$", ""), (out:gsub("true\n$", "")))
    end)
  end

  -- Tied weights, clipping, the loss scale of f16, accumulated gradients and two copies of every
  -- stage: all that stages exchange once per step.
  for _, schedule in ipairs { "1f1b", "interleaved_1f1b", "dualpipe", "chimera" } do
    over_sockets(it, "gives the same bits of what is exchanged once per step: " .. schedule, function()
      local steps = ([[
local gp = require "gpipe"
local x = (gp.arange(0, 47) % 13):to "i64":reshape { 8, 6 }
for _, precision in ipairs { "f32", "f16" } do
  gp.seed(1)
  local lm = gp.models.transformer_lm { vocabulary = 13, width = 8, heads = 2, layers = 3, context = 6,
    tied = true }
  local pipe <close> = gp.pipeline(lm, { balance = BALANCE, chunks = 4, schedule = "SCHEDULE",
    devices = { "cpu:0", "cpu:1" }, loss = gp.nn.CrossEntropyLoss(), seed = 1, precision = precision,
    watchdog = 10 })
  print(("%a"):format(pipe:evaluate(x, x)))
  local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
  pipe:step(x, x) pipe:step(x, x, { accumulate = true })
  print(gp.optim.clip_grad_norm(pipe:parameters(), 0.5)) opt:step()
  pipe:use(opt, { clip_norm = 0.5 })
  for _ = 1, 3 do print(("%a"):format(pipe:step(x, x))) end
end]]):gsub("SCHEDULE", schedule):gsub("BALANCE", schedule == "interleaved_1f1b" and "{ 1, 1, 2, 1 }"
        or "{ 2, 3 }")
      local script = child.file(steps)
      child.seconds = 60
      local wanted, first, code = child.run({ script }, {})
      assert.equal(0, code, first)
      local out, err = child.run({ script }, { environment = { GPIPE_LINK_PLUGIN = library } })
      os.remove(script)
      assert.equal("", err)
      assert.equal(wanted, out)
    end)
  end

  over_sockets(it, "gives the same bits where stages update without a barrier", function()
    local wanted = run("1f1b", STEPS, "{ barrier = false }")
    local out = run("1f1b", STEPS, "{ barrier = false }", { GPIPE_LINK_PLUGIN = library })
    assert.equal(wanted:gsub("false\n$", ""), (out:gsub("true\n$", "")))
  end)

  over_sockets(it, "is given up where a stage hangs, and goes on as if nothing had been", function()
    -- no micro-batch of these hangs
    local few = "show(pipe:step(x:narrow(1, 1, 2), y:narrow(1, 1, 2)))"
    local wanted = run("1f1b", few)
    local out = run("1f1b",
      "print(tostring(select(2, pcall(pipe.step, pipe, x, y))):match '2F3')\n" .. few, nil, {
      GPIPE_LINK_PLUGIN = library, GPIPE_FAULT = "stage=2,op=F,micro=3,action=hang",
    })
    assert.equal("2F3\n" .. wanted, out)
  end)

  over_sockets(with_signals, "ends with Ctrl-C and goes on", function()
    local out = run("1f1b", child.presses(0.7) .. [[
      local good, e = true
      while good do good, e = pcall(pipe.step, pipe, x, y) end
      print(e.code, pcall(pipe.step, pipe, x, y))]], nil, { GPIPE_LINK_PLUGIN = library })
    assert.matches("^interrupt\ttrue\t%d", out)
  end)
end)

describe("a library of links that cannot be used", function()
  it("is named when a pipeline is planned", function()
    local out = run("1f1b", "print(pcall(pipe.step, pipe, x, y))", nil,
      { GPIPE_LINK_PLUGIN = "/nowhere.so" })
    assert.matches("^false\t.*GPIPE_LINK_PLUGIN: /nowhere.so", out)
  end)
end)
