-- tests/spec/run/run_spec.lua - gp.run: the folder of a training run, and resuming where it was
-- stopped.

local child = require "tests.child"
local core = require "gpipe.core"
local expect = require "tests.support.expect"
local gp = require "gpipe"
local json = require "gpipe.io.json"

local failure, nn = expect.failure, gp.nn

local places = {}

local function place()
  local path = os.tmpname()
  os.remove(path)
  places[#places + 1] = path
  return path
end

after_each(function()
  for _, path in ipairs(places) do os.execute("rm -rf " .. child.quote(path)) end
  places = {}
end)

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function lines(path)
  local list = {}
  for line in io.lines(path) do list[#list + 1] = json.decode(line) end
  return list
end

-- Makes a model in two stages, its data, and a run of it.
local function make(path, opts)
  gp.seed(7)
  local model = nn.Sequential { nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2) }
  local pipe = gp.pipeline(model, { balance = { 1, 2 }, chunks = 2, loss = nn.MSELoss() })
  local adam = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  local x, y = gp.randn({ 20, 4 }, { seed = 1 }), gp.randn({ 20, 2 }, { seed = 2 })
  local data = gp.data.epochs(gp.data.tensors(x, y), { batch = 6, seed = 3 })
  local all = { pipe = pipe, opt = adam, data = data, steps = 12, every = 4, quiet = true }
  for key, value in pairs(opts or {}) do all[key] = value end
  return gp.run(path, all), pipe, adam
end

-- Trains until `last`, as if the process had ended there: nothing is finished.
local function train(path, last, opts)
  local run, pipe, adam = make(path, opts)
  for step, x, y in run:steps(last) do
    local loss = pipe:step(x, y)
    adam:step()
    run:log(step, { loss = loss })
  end
  return run, pipe
end

local function weights(pipe)
  local list = {}
  for i, entry in ipairs(pipe:parameters()) do list[i] = entry.value:bytes() end
  return table.concat(list)
end

describe("gp.run", function()
  it("writes its settings, its state, and what the script logs", function()
    local path = place()
    local run <close> = train(path, 12, { config = { width = 8 } })
    run:finish()
    local config, state = json.read(path .. "/config.json"), json.read(path .. "/state.json")
    assert.equal(8, config.config.width)
    assert.equal(path:match "[^/]+$", config.name)
    assert.equal(gp.version, config.gpipe)
    assert.is_number(config.machine.cores)
    assert.equal("finished", state.state)
    assert.same({ 12, 12 }, { state.step, state.steps })
    local log, timing = lines(path .. "/log.jsonl"), lines(path .. "/timing.jsonl")
    assert.same({ 12, 12 }, { #log, #timing })
    for step = 1, 12 do
      assert.equal(step, log[step].step)
      assert.equal(step, timing[step].step)
      assert.is_number(log[step].loss)
      assert.is_nil(log[step].time) -- the same bytes whenever it runs
    end
    local memory = json.read(path .. "/memory.json")
    assert.equal(2, #memory)
    for _, device in ipairs(memory) do
      assert.is_true(device.planned > 0 and device.measured >= device.planned)
      assert.is_true(device.parts.optimizer == 2 * device.parts.model)
    end
    assert.matches("<svg", read(path .. "/timeline.svg"))
  end)

  it("writes events for TensorBoard, a file for each process", function()
    local path = place()
    for last = 4, 8, 4 do
      local run, pipe = train(path, last)
      run:close()
      pipe:close()
    end
    local found = {}
    for _, name in ipairs(core.folder_names(path)) do
      if name:find "tfevents" then found[#found + 1] = read(path .. "/" .. name) end
    end
    assert.equal(2, #found)
    for _, text in ipairs(found) do
      assert.is_truthy(text:find("brain.Event:2", 1, true))
      assert.equal(4, select(2, text:gsub("loss", "")))
    end
    assert.is_truthy(found[1]:find("config", 1, true))
  end)

  it("warns that the loss jumps or is not finite, at most three times", function()
    local path = place()
    local script = child.file(([[
      local gp = require "gpipe"
      local run = gp.run(%q, { quiet = true })
      for step = 1, 20 do run:log(step, { loss = 3 - step / 100 }) end
      run:log(21, { loss = 90 })
      for step = 22, 30 do run:log(step, { loss = 0 / 0 }) end
      run:finish()
    ]]):format(path))
    local _, err, code = child.run { script }
    os.remove(script)
    assert.equal(0, code)
    assert.matches("step 21: the loss jumped to 90", err)
    assert.matches("step 22: the loss is nan", err)
    assert.equal(3, select(2, err:gsub("\n", "")))
  end)

  it("removes what a process left that was killed during a save", function()
    local path = place()
    local run, pipe = train(path, 4)
    run:finish()
    pipe:close()
    for _, name in ipairs { ".step-00000113.tmp.4711.0", ".best-loss.tmp.4711.0", ".step-00000001.old" } do
      os.execute(("mkdir -p '%s/checkpoints/%s' && touch '%s/checkpoints/%s/stage-0.safetensors'")
        :format(path, name, path, name))
    end
    local again, other = train(path, 4)
    again:finish()
    other:close()
    for _, name in ipairs(core.folder_names(path .. "/checkpoints")) do
      assert.matches("^step%-%d+$", name)
    end
  end)

  it("records the current step as the best", function()
    local function step_of(path)
      local state = assert(gp.checkpoint.read(path .. "/checkpoints/best-val_loss"))
      return state.extra.run.best_of.val_loss.step
    end
    for _, first in ipairs { "best", "log" } do -- which of the two a loop calls first
      local path = place()
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 2) }, { loss = nn.MSELoss() })
      local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
      local run = gp.run(path, { pipe = pipe, opt = opt, quiet = true })
      for step = run:resume() + 1, 3 do
        local loss = pipe:step(gp.ones { 4, 4 }, gp.ones { 4, 2 })
        opt:step()
        if first == "log" then run:log(step, { loss = loss }) end
        if step == 3 then assert.is_true(run:best("val_loss", 1)) end
        if first == "best" then run:log(step, { loss = loss }) end
      end
      run:finish()
      assert.equal(3, step_of(path), first)
    end
    local path = place()
    local run, pipe = train(path, 4)
    for step in run:steps(6) do
      if step == 6 then run:best("val_loss", 1) end
      run:log(step, { loss = 1 })
    end
    run:finish()
    pipe:close()
    assert.equal(6, step_of(path))
  end)

  it("carries a rate that falls on plateaus, and LBFGS, as parts of its state", function()
    local path, model = place(), nn.Sequential { nn.Linear(4, 2) }
    local function parts()
      return gp.optim.schedule.plateau { max = 0.1 }, gp.optim.LBFGS(model:parameters())
    end
    local rate, opt = parts()
    local run = gp.run(path, { model = model, state = { rate = rate, lbfgs = opt }, quiet = true })
    rate(2.5)
    run:log(1, { loss = 1 })
    run:finish()
    local later, other = parts()
    local again = gp.run(path, { model = model, state = { rate = later, lbfgs = other }, quiet = true })
    again:resume()
    assert.equal(2.5, later:state().best)
    again:finish()
  end)

  it("keeps the newest checkpoints and the best", function()
    local path = place()
    local run, pipe = train(path, 12, { keep = 2 })
    assert.is_true(run:best("val_loss", 0.5))
    assert.is_false(run:best("val_loss", 0.5))
    assert.is_false(run:best("val_loss", 0 / 0))
    assert.is_true(run:best("accuracy", 10, "max"))
    assert.is_false(run:best("accuracy", 9, "max"))
    run:finish()
    assert.same({ "best-accuracy", "best-val_loss", "step-00000008", "step-00000012" },
      core.folder_names(path .. "/checkpoints"))
    local state, tensors = assert(gp.checkpoint.read(path .. "/checkpoints/best-accuracy"))
    assert.equal(10, state.extra.run.best_of.accuracy.value)
    assert.equal(pipe:parameters()[1].value:bytes(), tensors["model.1.weight"]:bytes())
    pipe:close()
  end)

  it("resumes after the newest checkpoint with the same bits", function()
    local whole, cut = place(), place()
    local run, pipe = train(whole, 12)
    run:finish()
    local first, left = train(cut, 7) -- the last checkpoint is of step 4
    first:close()
    left:close()
    local second, other = train(cut, 12)
    second:finish()
    assert.equal(weights(pipe), weights(other))
    assert.equal(read(whole .. "/log.jsonl"), read(cut .. "/log.jsonl"))
    assert.equal(12, #lines(cut .. "/timing.jsonl"))
    pipe:close()
    other:close()
  end)

  it("resumes in a loop of the script's own", function()
    local function steps(path, first, last)
      local run, pipe, adam = make(path)
      assert.equal(first - 1, run:resume())
      for step = first, last do
        local loss = pipe:step(run.data:next())
        adam:step()
        run:log(step, { loss = loss })
      end
      return run, pipe
    end
    local whole, cut = place(), place()
    local run, pipe = steps(whole, 1, 12)
    run:finish()
    local first, left = steps(cut, 1, 10)
    first:close()
    left:close()
    local second, other = steps(cut, 9, 12)
    second:finish()
    assert.equal(weights(pipe), weights(other))
    assert.equal(read(whole .. "/log.jsonl"), read(cut .. "/log.jsonl"))
    pipe:close()
    other:close()
  end)

  it("resumes under asynchronous schedules, whose losses come later", function()
    local function stream(path, first, last)
      gp.seed(7)
      local model = nn.Sequential { nn.Linear(4, 8), nn.Linear(8, 2) }
      local pipe = gp.pipeline(model, { devices = 2, schedule = "pipedream", loss = nn.MSELoss() })
      local sgd = gp.optim.SGD(pipe:parameters(), { lr = 0.1, momentum = 0.9 })
      pipe:use(sgd)
      local x, y = gp.randn({ 20, 4 }, { seed = 1 }), gp.randn({ 20, 2 }, { seed = 2 })
      local data = gp.data.epochs(gp.data.tensors(x, y), { batch = 5, seed = 3 })
      local run = gp.run(path, { pipe = pipe, opt = sgd, data = data, every = 3, quiet = true })
      assert.equal(first - 1, run:resume())
      for step, bx, by in run:steps(last) do run:log(step, { loss = pipe:step(bx, by) }) end
      return run, pipe
    end
    local whole, cut = place(), place()
    local run, pipe = stream(whole, 1, 10)
    run:finish()
    local first, left = stream(cut, 1, 8)
    first:close()
    left:close()
    local second, other = stream(cut, 7, 10)
    second:finish()
    assert.equal(weights(pipe), weights(other))
    assert.equal(read(whole .. "/log.jsonl"), read(cut .. "/log.jsonl"))
    pipe:close()
    other:close()
  end)

  it("does not wait for steps that overlap", function()
    local path = place()
    local run, pipe, adam = make(path, { every = 0 })
    pipe:use(adam, { barrier = false })
    local core_of = require("gpipe.pipeline.object").inside(pipe).core
    for step, x, y in run:steps() do
      run:log(step, { loss = pipe:step(x, y) })
      assert.is_truthy(core_of:stream())
    end
    run:finish()
    assert.equal(12, #lines(path .. "/timing.jsonl"))
    pipe:close()
  end)

  it("saves named states and values of the script", function()
    local function counter()
      local c = { n = 0 }
      function c:state() return { n = self.n } end
      function c:restore(state) self.n = state.n end
      return c
    end
    local path, one, two = place(), counter(), counter()
    local run, pipe = make(path, { state = { one = one } })
    run:resume()
    one.n, run.extra.word = 5, "here"
    run:checkpoint(3)
    run:close()
    pipe:close()
    local again, other = make(path, { state = { one = two } })
    assert.equal(3, again:resume())
    assert.same({ 5, "here" }, { two.n, again.extra.word })
    again:close()
    other:close()
    local third, last = make(path, { state = { one = two, more = counter() } })
    assert.matches("'more'", failure(function() third:resume() end))
    third:close()
    last:close()
  end)

  it("takes an older checkpoint where the newest is damaged, and says so", function()
    local path = place()
    local run, pipe = train(path, 12)
    run:finish()
    pipe:close()
    local file = path .. "/checkpoints/step-00000012/stage-1.safetensors"
    local text = read(file)
    write(file, text:sub(1, -2) .. string.char(text:byte(-1) ~ 1))
    local script = child.file(([[
      local gp = require "gpipe"
      local model = gp.nn.Sequential { gp.nn.Linear(4, 8), gp.nn.Dropout(0.1), gp.nn.Linear(8, 2) }
      local pipe <close> = gp.pipeline(model, { loss = gp.nn.MSELoss() })
      local opt = gp.optim.AdamW(pipe:parameters(), { lr = 1e-2 })
      local run <close> = gp.run(%q, { pipe = pipe, opt = opt })
      print(run:resume())
    ]]):format(path))
    local out, err, code = child.run { script }
    os.remove(script)
    assert.same({ "8\n", 0 }, { out, code })
    assert.matches("step%-00000012/stage%-1%.safetensors", err)
    assert.matches("checksum", err)
  end)

  it("raises where no checkpoint can be read, and where one is required", function()
    local path = place()
    local run, pipe = train(path, 4)
    run:finish()
    pipe:close()
    write(path .. "/checkpoints/step-00000004/MANIFEST.json", "nothing")
    local again, other = make(path)
    local text = failure(function() again:resume() end)
    assert.matches("MANIFEST%.json", text)
    again:close()
    other:close()
    local nowhere = place()
    assert.matches("no folder of a run", failure(function() make(nowhere, { resume = true }) end))
    assert.is_nil(io.open(nowhere))
    local first, second = make(nowhere)
    first:resume()
    first:close()
    second:close()
    local new, third = make(nowhere, { resume = true })
    assert.matches("has no checkpoint", failure(function() new:resume() end))
    new:close()
    third:close()
  end)

  it("cuts half a line off a log that is shorter than its checkpoint says", function()
    local path = place()
    local run, pipe = train(path, 8)
    run:close()
    pipe:close()
    local log = read(path .. "/log.jsonl")
    local fourth = select(2, log:find('"step":4,[^\n]*\n'))
    write(path .. "/log.jsonl", log:sub(1, fourth + 9)) -- and nine bytes of the fifth
    local again, other = make(path)
    again:resume()
    again:close()
    other:close()
    assert.equal(log:sub(1, fourth), read(path .. "/log.jsonl"))
  end)

  it("is held by one process at a time", function()
    local path = place()
    local run, pipe = make(path)
    local pid = core.process()
    local other = nn.Sequential { nn.Linear(2, 2) }
    local text = failure(function() gp.run(path, { model = other }) end)
    assert.is_truthy(text:find(("pid %d"):format(pid), 1, true), text)
    run:close()
    gp.run(path, { model = other }):close()
    pipe:close()
  end)

  it("refuses to write over a run that it did not resume", function()
    local path = place()
    local run, pipe = train(path, 4)
    run:finish()
    pipe:close()
    local again, other = make(path)
    local text = failure(function() again:log(1, { loss = 1 }) end)
    assert.matches("run:resume", text)
    assert.is_truthy(text:find(path, 1, true))
    assert.equal(4, #lines(path .. "/log.jsonl"))
    again:close()
    other:close()
  end)

  it("may be one of several, whose signals are kept until the last is closed", function()
    local one, two = gp.run(place(), { quiet = true }), gp.run(place(), { quiet = true })
    one:log(1, {})
    one:finish()
    os.execute("kill -USR1 " .. core.process()) -- unhandled it would end the process
    assert.equal("SIGUSR1", core.stop_caught())
    two:close()
    assert.is_nil(core.stop_caught())
  end)

  it("begins also with run:best", function()
    local path = place()
    local run, pipe = make(path)
    assert.is_true(run:best("val_loss", 3))
    run:close()
    assert.same({ "best-val_loss" }, core.folder_names(path .. "/checkpoints"))
    pipe:close()
  end)

  it("writes nothing without a folder", function()
    local run, pipe = make("none", { flags = {} })
    local count = 0
    for step, x, y in run:steps() do
      run:log(step, { loss = pipe:step(x, y) })
      count = count + 1
    end
    assert.is_true(run:best("loss", 1))
    run:finish()
    assert.equal(12, count)
    assert.is_nil(io.open "runs/none/log.jsonl")
    pipe:close()
  end)
end)

describe("run:log", function()
  local function logged(...)
    local path = place()
    local run = gp.run(path, { quiet = true })
    for i, values in ipairs { ... } do run:log(i, values) end
    run:finish()
    return read(path .. "/log.jsonl"), path
  end

  it("writes numbers that read back as they were", function()
    local values = { 0.1, 1e300, -1 / 3, 2 ^ 53, 5e-324 }
    for _, value in ipairs(values) do
      local text = logged { x = value }
      assert.equal(value, tonumber(text:match '"x":([^}]*)'))
    end
  end)

  it("writes null for what is not finite, and which it was", function()
    assert.equal('{"step":1,"a":null,"b":1,"c":null,"nonfinite":{"a":"nan","c":"-inf"}}\n',
      (logged { a = 0 / 0, b = 1, c = -math.huge }))
  end)

  it("takes scalars of tensors, texts, flags, and the losses of asynchronous schedules", function()
    assert.equal('{"step":1,"a":2.5,"b":"x","c":true,"d":1.5}\n',
      (logged { a = gp.full({}, 2.5), b = "x", c = true, d = { 1, 2 }, e = {} }))
  end)

  it("has the same bytes in every locale", function()
    local text = logged { x = 0.5 }
    assert.equal('{"step":1,"x":0.5}\n', text)
  end)

  it("names what it cannot take", function()
    local run = gp.run(place(), { quiet = true })
    assert.matches("'loss' is a function", failure(function() run:log(1, { loss = print }) end))
    assert.matches("step is 0", failure(function() run:log(0, {}) end))
    assert.matches("step is 1.5", failure(function() run:log(1.5, {}) end))
    assert.matches("values is 3", failure(function() run:log(1, 3) end))
    assert.matches("'step'", failure(function() run:log(1, { step = 3 }) end))
    run:log(5, {})
    assert.matches("step 4 comes after step 5", failure(function() run:log(4, {}) end))
    run:close()
  end)

  it("is refused when the run is over, as all writing methods are", function()
    for _, path in ipairs { place(), false } do
      local run = gp.run(path or "none", { quiet = true, flags = not path and {} or nil })
      run:log(1, { a = 1 })
      run:finish()
      run:finish()
      for _, call in ipairs {
        function() run:log(2, { a = 2 }) end, function() run:checkpoint(2) end,
        function() run:best("a", 1) end, function() run:resume() end,
        function() run:steps() end,
      } do
        assert.matches("the run is finished", failure(call))
      end
    end
  end)

  it("goes on where the disk is full, and reports it once", function()
    local path = place()
    local run = gp.run(path, { quiet = true })
    run:log(1, { a = 1 })
    run.records.files["log.jsonl"]:close()
    run.records.files["log.jsonl"] = assert(io.open("/dev/full", "ab"))
    run.records.files["log.jsonl"]:setvbuf "no"
    local said = {}
    local real = io.stderr
    io.stderr = { write = function(_, ...) said[#said + 1] = table.concat { ... } end } -- luacheck: ignore
    run:log(2, { a = 2 })
    run:log(3, { a = 3 })
    io.stderr = real -- luacheck: ignore
    run:finish()
    assert.equal(1, #said)
    assert.matches("No space left", said[1])
    assert.equal('{"step":1,"a":1}\n', read(path .. "/log.jsonl"))
  end)
end)

describe("a run that is told to end #process", function()
  local SCRIPT = [[
    local gp = require "gpipe"
    local nn = gp.nn
    local opt = require "gpipe.flags".parse("Train.", {
      { "--steps N", 400, "steps" }, { "--fail N", 0, "at a step", min = 0 },
    }, arg, { run = true })
    gp.seed(1)
    local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 2) }, { loss = nn.MSELoss() })
    local sgd = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
    local x, y = gp.ones { 8, 4 }, gp.ones { 8, 2 }
    local data = gp.data.epochs(gp.data.tensors(x, y), { batch = 4 })
    local run = gp.run("told", { flags = opt, pipe = pipe, opt = sgd, data = data,
      steps = opt.steps, quiet = true })
    print "ready"
    for step, bx, by in run:steps() do
      run:log(step, { loss = pipe:step(bx, by) })
      if step == opt.fail then error "as asked" end
      if opt.steps > 100 then io.popen("sleep 0.02"):close() end
    end
    run:finish()
    print "done"
  ]]

  local script
  before_each(function() script = child.file(SCRIPT) end)
  after_each(function() os.remove(script) end)

  local function signalled(name, folder)
    return child.shell(([[env --default-signal=INT %s %s --run-dir %s & p=$!
      sleep 0.6; kill -%s $p; wait $p]]):format(
      child.quote(child.program), child.quote(script), folder, name))
  end

  for _, name in ipairs { "TERM", "HUP", "INT", "USR1" } do
    it("saves after the step and exits with 75: SIG" .. name, function()
      local folder = place()
      local out, err, code = signalled(name, folder)
      assert.same({ "ready\n", 75 }, { out, code })
      assert.matches("SIG" .. name, err)
      local state = json.read(folder .. "/state.json")
      assert.same({ "stopped", "SIG" .. name }, { state.state, state.reason })
      assert.same({ ("step-%08d"):format(state.step) }, core.folder_names(folder .. "/checkpoints"))
      assert.equal(state.step, #lines(folder .. "/log.jsonl"))
    end)
  end

  it("ends at once at the second signal", function()
    local folder = place()
    local _, _, code = child.shell(([[%s %s --run-dir %s & p=$!; sleep 0.6; kill -STOP $p
      kill -TERM $p; kill -HUP $p; kill -CONT $p; wait $p]]):format(child.quote(child.program),
      child.quote(script), folder))
    assert.is_true(code == 128 + 15 or code == 128 + 1, code)
  end)

  it("ends when the time is over, and goes on with the same command", function()
    local folder = place()
    local out, _, code = child.run { script, "--run-dir", folder, "--minutes", "0.01" }
    assert.same({ "ready\n", 75 }, { out, code })
    out, _, code = child.run { script, "--run-dir", folder, "--steps", "60" }
    assert.same({ "ready\ndone\n", 0 }, { out, code })
    assert.equal(60, #lines(folder .. "/log.jsonl"))
    assert.equal("ready\nready\n", read(folder .. "/stdout.txt"))
  end)

  it("records in its folder why it failed", function()
    local folder = place()
    local _, _, code = child.run { script, "--run-dir", folder, "--steps", "9", "--fail", "3" }
    assert.equal(1, code)
    local state = json.read(folder .. "/state.json")
    assert.equal("failed", state.state)
    assert.matches("as asked", state.reason)
  end)

  it("takes no step in a dry run, and says what a step would take", function()
    local folder = place()
    local out, _, code = child.run { script, "--run-dir", folder, "--dry-run" }
    assert.equal(0, code)
    for _, word in ipairs { "cpu:0", "gradients", "optimizer", "in all" } do
      assert.is_truthy(out:find(word, 1, true), out)
    end
    assert.is_nil(io.open(folder .. "/config.json"))
  end)

  it("takes no step in a dry run of a loop of its own either", function()
    local own = [[
      local gp = require "gpipe"
      local nn = gp.nn
      local opt = require "gpipe.flags".parse("Train.", {}, arg, { run = true })
      local pipe <close> = gp.pipeline(nn.Sequential { nn.Linear(4, 2) }, { loss = nn.MSELoss() })
      local x, y = gp.ones { 8, 4 }, gp.ones { 8, 2 }
      local data = gp.data.epochs(gp.data.tensors(x, y), { batch = 4 })
      local run = gp.run("told", { flags = opt, pipe = pipe, data = DATA })
      for step = run:resume() + 1, 3 do
        print "trained"
        run:log(step, { loss = pipe:step(x, y) })
      end]]
    for data, wanted in pairs { data = 0, ["nil"] = 1 } do
      local path = child.file((own:gsub("DATA", data)))
      local out, err, code = child.run { path, "--dry-run" }
      os.remove(path)
      assert.equal(wanted, code, err)
      assert.is_nil(out:find "trained")
      assert.matches(data == "data" and "in all" or "%-%-dry%-run needs a batch to plan for", out .. err)
    end
  end)

  it("names the folder that it cannot make", function()
    local file = child.file ""
    local _, err, code = child.run { script, "--run-dir", file .. "/run" }
    os.remove(file)
    assert.equal(1, code)
    assert.is_truthy(err:find(file, 1, true), err)
  end)
end)
