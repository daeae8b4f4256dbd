-- tests/spec/pipeline/stream_faults_spec.lua - updates that are actions of the schedule, and
-- failures between them.
--
-- With a barrier all stages are updated or none. Without one, and in asynchronous schedules, stages
-- may be left with different numbers of updates: the pipeline says so and goes on only after a
-- state is loaded.
local gp = require "gpipe"
local inside = require "gpipe.pipeline.object".inside
local child = dofile "tests/child.lua"
local nn, optim = gp.nn, gp.optim

-- The thread sanitizer holds signals back until the program blocks.
local with_signals = os.getenv "GPIPE_SANITIZE" ~= "thread" and it or pending

local UNEVEN = "left some stages updated and others not: load a state"

local function model()
  gp.seed(2)
  return nn.Sequential { nn.Embedding(9, 6), nn.Sequential { nn.Linear(6, 6), nn.Tanh() },
    nn.Sequential { nn.Linear(6, 6), nn.Tanh() }, nn.Linear(6, 5) }
end

local KINDS = {
  pipedream = { schedule = "pipedream" },
  vertical_sync = { schedule = { "pipedream", vertical_sync = true } },
  pipedream_2bw = { schedule = "pipedream_2bw" },
  free = { schedule = "1f1b", use = { barrier = false } },
  zero_bubble = { schedule = "zb_h2", use = { barrier = false } },
  use = { schedule = "zb_h1", use = {} },
}

local function make(kind)
  local pipe = gp.pipeline(model(),
    { balance = { 1, 1, 1, 1 }, chunks = 3, loss = nn.CrossEntropyLoss(), seed = 1,
    schedule = KINDS[kind].schedule })
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  return pipe:use(opt, KINDS[kind].use), opt
end

-- Returns ids and targets of step t; bad: the row whose target does not exist.
local function batch(t, bad)
  local x, y = {}, {}
  for i = 1, 7 do x[i], y[i] = (i * t + 3) % 9, i == bad and 99 or (i + t) % 5 end
  return gp.tensor(x, { dtype = "i64" }), gp.tensor(y, { dtype = "i64" })
end

-- Steps until a step or flush fails; returns the message.
local function until_failure(pipe, steps, bad_step, row)
  for t = 1, steps do
    local good, message = pcall(pipe.step, pipe, batch(t, t == bad_step and row))
    if not good then return message end
  end
  local good, message = pcall(pipe.flush, pipe)
  return not good and message
end

local function same(a, b)
  for name, value in pairs(a) do assert.is_true(gp.equal(value, b[name]), name) end
end

-- Checks that both give the same bits from here on.
local function check_alike(a, b, steps)
  for t = 1, steps do assert.same(a:step(batch(t)), b:step(batch(t))) end
  assert.same(a:flush(), b:flush())
  same(a:state_dict(), b:state_dict())
end

describe("an asynchronous schedule whose mini-batch fails in the middle", function()
  for _, kind in ipairs { "pipedream", "vertical_sync" } do
    it("says what failed, and whether it needs a state, and goes on from one: " .. kind, function()
      local texts = {}
      for turn = 1, 3 do
        local pipe <close>, opt = make(kind)
        local state, moments = pipe:state_dict(), opt:state_dict()
        texts[turn] = until_failure(pipe, 9, 4, 5)
        assert.matches("class 99", texts[turn])
        assert.equal(texts[1], texts[turn]) -- always the first in the schedule's order
        local uneven = inside(pipe).core:broken() -- it depends on how far each stage came
        for _, f in ipairs { pipe.step, pipe.evaluate } do
          local good, message = pcall(f, pipe, batch(1))
          assert.equal(uneven, not good)
          if uneven then assert.matches(UNEVEN, message) end
        end
        pipe:flush()
        for name, value in pairs(pipe:state_dict()) do
          assert.same(value.shape, state[name].shape)
        end
        pipe:load_state_dict(state)
        opt:load_state_dict(moments)
        local fresh <close> = make(kind)
        check_alike(fresh, pipe, 5)
      end
    end)
  end

  it("needs no state where no update was made yet", function()
    local pipe <close> = make "pipedream"
    local fresh <close> = make "pipedream"
    local good, message = pcall(function()
      pipe:step(batch(1, 1)) -- the failure is in the very first row
      pipe:flush()
    end)
    assert.is_false(good)
    assert.matches("class 99", message)
    check_alike(fresh, pipe, 5)
  end)

  it("is even with one stage, which keeps its updates", function()
    local function one()
      local pipe = gp.pipeline(model(),
        { balance = { 4 }, chunks = 3, loss = nn.CrossEntropyLoss(), seed = 1,
        schedule = "pipedream" })
      return pipe:use(optim.AdamW(pipe:parameters(), { lr = 1e-2 }))
    end
    local pipe <close> = one()
    local fresh <close> = one()
    assert.matches("class 99", until_failure(pipe, 9, 4, 1))
    for t = 1, 3 do fresh:step(batch(t)) end
    fresh:flush()
    check_alike(fresh, pipe, 3)
  end)

  it("is even where it fails before any stage is updated for the mini-batch", function()
    local pipe <close>, opt = make "pipedream_2bw"
    local fresh <close>, other = make "pipedream_2bw"
    assert.matches("class 99", until_failure(pipe, 9, 4, 7))
    for t = 1, 3 do fresh:step(batch(t)) end
    fresh:flush()
    check_alike(fresh, pipe, 3)
    same(other:state_dict(), opt:state_dict())
  end)

  it("may be closed or collected afterwards", function()
    local pipe = make "pipedream"
    pcall(pipe.step, pipe, batch(1, 1))
    pipe:close()
    do
      local other <close> = make "pipedream"
      for t = 1, 3 do other:step(batch(t)) end
      pcall(other.step, other, batch(4, 1))
    end
    pipe = make "pipedream_2bw"
    pcall(pipe.step, pipe, batch(1, 1))
    pipe = nil -- luacheck: ignore 311
    collectgarbage()
    collectgarbage()
  end)
end)

describe("a step that fails", function()
  it("updates nothing with a barrier, and has no effect on the next steps", function()
    local pipe <close>, opt = make "use"
    local fresh <close> = make "use"
    for t = 1, 3 do assert.equal(fresh:step(batch(t)), pipe:step(batch(t))) end
    local state, moments = pipe:state_dict(), opt:state_dict()
    assert.is_false((pcall(pipe.step, pipe, batch(4, 6))))
    same(state, pipe:state_dict())
    same(moments, opt:state_dict())
    check_alike(fresh, pipe, 3)
  end)

  for _, kind in ipairs { "free", "zero_bubble" } do
    it("before any update has no effect, also without a barrier: " .. kind,
      function()
      local pipe <close>, opt = make(kind)
      local fresh <close>, other = make(kind)
      for t = 1, 3 do assert.equal(fresh:step(batch(t)), pipe:step(batch(t))) end
      local good, message = pcall(pipe.step, pipe, batch(4, 1))
      assert.is_false(good)
      assert.matches("class 99", message)
      check_alike(fresh, pipe, 3)
      same(other:state_dict(), opt:state_dict())
    end)
  end
end)

-- ---- GPIPE_FAULT -------------------------------------------------------------------------------

local PRELUDE = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
local function model()
  gp.seed(2)
  local layers = {}
  for i = 1, 3 do layers[i] = nn.Sequential { nn.Linear(6, 6), nn.Tanh() } end
  return nn.Sequential(layers)
end
local function make(schedule, use, devices)
  local pipe = gp.pipeline(model(), { balance = { 1, 1, 1 }, chunks = 2, loss = nn.MSELoss(), seed = 1,
    schedule = schedule, devices = devices })
  local opt = optim.AdamW(pipe:parameters(), { lr = 1e-2 })
  return pipe:use(opt, use), opt
end
local x, y = gp.randn({ 4, 6 }, { seed = 1 }), gp.randn({ 4, 6 }, { seed = 2 })
-- All bits of a pipeline, and those after one more step.
local function say(pipe)
  for _ = 1, 2 do
    local bits = {}
    for name, value in pairs(pipe:state_dict()) do bits[#bits + 1] = name .. value:bytes() end
    table.sort(bits)
    print(("%q"):format(table.concat(bits)))
    pipe:step(x, y)
    pipe:flush()
  end
end
]]

local function run(fault, text)
  local script = child.file(PRELUDE .. text)
  child.seconds = 60
  local out, err, code = child.run({ script }, { environment = { GPIPE_FAULT = fault } })
  os.remove(script)
  return out, err, code
end

local UNTIL = [[
local function until_failure(pipe)
  for _ = 1, 9 do
    local good, message = pcall(pipe.step, pipe, x, y)
    if not good then return message end
  end
  return select(2, pcall(pipe.flush, pipe))
end
]]

-- How far each stage came decides whether stages are uneven: the pipeline knows.
describe("a fault in the middle of a stream", function()
  for _, op in ipairs { "F", "B", "U" } do
    it("of stage 1 in " .. op
      .. " leaves a pipeline that knows whether it is even, and takes a state", function()
      local out, err, code = run(("stage=1,step=5,op=%s,action=fail"):format(op), UNTIL .. [[
        local pipe, opt = make "pipedream"
        local state, moments = pipe:state_dict(), opt:state_dict()
        local first = pipe:evaluate(x, y)
        print(until_failure(pipe))
        local refused, message = not pcall(pipe.evaluate, pipe, x, y)
        print(refused == require "gpipe.pipeline.object".inside(pipe).core:broken())
        pipe:load_state_dict(state)
        opt:load_state_dict(moments)
        print(pipe:evaluate(x, y) == first)
        pipe:close()]])
      assert.equal("", err)
      assert.equal(0, code)
      assert.matches("^[^\n]*GPIPE_FAULT asked for this failure\ntrue\ntrue\n$", out)
    end)
  end
end)

describe("an update that fails", function()
  it("on one stage after the barrier leaves a pipeline that says so", function()
    local out, err = run("stage=1,step=2,op=U,action=fail", UNTIL .. [[
      local pipe = make("1f1b", {})
      print(until_failure(pipe))
      print(select(2, pcall(pipe.step, pipe, x, y)))]])
    assert.equal("", err)
    assert.matches("GPIPE_FAULT asked for this failure\n[^\n]*" .. UNEVEN, out)
  end)
end)

-- The key is pressed once, when an action begins. That one takes long enough for the press to be
-- noticed in it, as a rule; nothing here depends on it.
local function press(place)
  return ("%s,action=interrupt;%s,action=sleep:0.3"):format(place, place)
end

-- What a pipeline holds after so many steps that nothing disturbs, and after one more.
local function undisturbed(call, steps)
  return (run("", ("local pipe = %s for _ = 1, %d do pipe:step(x, y) end say(pipe)"):format(call, steps)))
end

describe("Ctrl-C", function()
  for name, case in pairs {
    ["after the barrier takes effect when all stages are updated"] =
      { [[make("1f1b", {})]], "stage=1,step=2,op=U" },
    -- The second stage of a device was once skipped when the press came between its updates.
    ["between the updates of two stages of one device takes effect after both"] =
      { [[make({ "looped_bfs", stages_per_device = 3 }, {}, { "cpu:0" })]], "stage=0,step=2,op=U" },
  } do
    with_signals(name, function()
      local out, err, code = run(press(case[2]), ([[
        local pipe = %s
        for _ = 1, 2 do pipe:step(x, y) end
        print(pcall(function()
          pipe:step(x, y)
          while true do end
        end))
        say(pipe)]]):format(case[1]))
      assert.equal("", err)
      assert.equal(0, code)
      assert.equal("false\tinterrupted!\n" .. undisturbed(case[1], 3), out)
    end)
  end

  local ENDLESS = [[
    print(select(2, pcall(function() while true do pipe:step(x, y) end end)))
    pcall(pipe.flush, pipe)]]

  -- No state needs to be loaded: all stages have made the same updates, those of the mini-batches
  -- that were fed.
  for _, case in ipairs { { "pipedream", "nil" }, { "pipedream_2bw", "nil" },
    { "1f1b", "{ barrier = false }" } } do
    local call = ("make(%q, %s)"):format(case[1], case[2])
    for _, place in ipairs { "stage=2,step=7,op=F,micro=1", "stage=1,step=7,op=B,micro=1",
      "stage=1,step=7,op=U,micro=1" } do
      with_signals(("in the middle of a stream, at %s, leaves all stages at the same update: %s")
        :format(place, case[1]), function()
        local out, err, code = run(press(place), "local pipe, opt = " .. call .. ENDLESS .. ([[
          local steps, each = opt:state_dict().step:item(), %q == "pipedream" and pipe.chunks or 1
          print(steps // each, steps %% each)
          say(pipe)]]):format(case[1]))
        assert.equal("", err)
        assert.equal(0, code)
        local steps = tonumber(out:match "^interrupted!\n(%d+)\t0\n")
        assert.truthy(steps and steps > 0, out)
        assert.equal(("interrupted!\n%d\t0\n"):format(steps) .. undisturbed(call, steps), out)
      end)
    end

    with_signals("in the middle of a stream is an error; the pipeline takes a state: " .. case[1],
      function()
      local out, err, code = run(press "stage=1,step=7,op=F,micro=1", "local pipe, opt = " .. call .. [[
        local state, moments = pipe:state_dict(), opt:state_dict()]] .. ENDLESS .. [[
        pipe:load_state_dict(state)
        opt:load_state_dict(moments)
        for _ = 1, 3 do pipe:step(x, y) end
        pipe:flush()
        say(pipe)]])
      assert.equal("", err)
      assert.equal(0, code)
      assert.equal("interrupted!\n" .. undisturbed(call, 3), out)
    end)
  end
end)
