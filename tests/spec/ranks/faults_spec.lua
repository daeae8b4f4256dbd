-- tests/spec/ranks/faults_spec.lua - when one rank fails, hangs or dies, all of them end and say
-- which one it was.

local child = dofile "tests/child.lua"

local TRAIN = [[
local gp = require "gpipe"
gp.seed(1)
local model = gp.nn.Sequential {
  gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = 3, chunks = 4, loss = gp.nn.CrossEntropyLoss(), watchdog = 4,
})
pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
local x, y = gp.randn { 16, 8 }, gp.randint(0, 4, { 16 })
local bad = gp.full({ 16 }, 9, { dtype = "i64" })
]]

local function run(text, environment)
  local script = child.file(TRAIN .. text)
  local began = require("gpipe.core").seconds()
  local out, err, code = child.run({ "--ranks", "3", script }, { environment = environment })
  os.remove(script)
  return out, err, code, require("gpipe.core").seconds() - began
end

local function has(text, part) assert.truthy(text:find(part, 1, true), text) end

describe("a rank that fails", function()
  it("raises the same error on all ranks, with the rank", function()
    local _, err, code = run "pipe:step(x, y) pipe:step(x, bad)"
    has(err, "rank 2: loss (nn.CrossEntropyLoss): class 9 at row 1 is outside 0..3")
    assert.equal(1, code)
  end)

  it("leaves a pipeline that goes on, with the same parameters on all ranks", function()
    local out = run [[
      local before = pipe:state_dict()
      local good, message = pcall(pipe.step, pipe, x, bad)
      local after = pipe:state_dict()
      for name, tensor in pairs(before) do assert(gp.equal(tensor, after[name])) end
      local losses = gp.all_gather(pipe:step(x, y))
      print(good, losses[1] == losses[2] and losses[2] == losses[3], pipe:step(x, y) < losses[1])
    ]]
    assert.equal("false\ttrue\ttrue\n", out)
  end)

  it("is the one that GPIPE_FAULT strikes", function()
    local _, err = run("pipe:step(x, y)", { GPIPE_FAULT = "device=1,op=B,action=fail" })
    has(err, "rank 1: GPIPE_FAULT asked for this failure")
  end)

  it("tells the others its error when its script raises", function()
    local _, err, code = run [[
      pipe:step(x, y)
      if gp.rank() == 1 then error "too much" end
      while true do pipe:step(x, y) end]]
    has(err, "rank 1: ")
    has(err, "too much")
    assert.equal(1, code)
  end)

  for _, failing in ipairs { 0, 1 } do
    it(("tells them before the job has come together: rank %d"):format(failing), function()
      local script = child.file((
        "local gp = require 'gpipe' if gp.rank() == %d then error 'too early' end gp.barrier()")
        :format(failing))
      local began = require("gpipe.core").seconds()
      local _, err, code = child.run { "--ranks", "3", script }
      os.remove(script)
      has(err, failing == 0 and "too early" or "rank 1: ") -- rank 0's words are those of the job
      has(err, "too early")
      assert.equal(1, code)
      assert.is_true(require("gpipe.core").seconds() - began < 4) -- no one is asked to end
    end)
  end

  it("does not wait long for others that never come, to tell them", function()
    local script = child.file [[error "there is no file x"]]
    local began = require("gpipe.core").seconds()
    local _, err, code = child.run({ script }, { environment = { GPIPE_JOB_KEY = "k",
      RANK = "1", WORLD_SIZE = "2", LOCAL_RANK = "1", LOCAL_WORLD_SIZE = "2",
      MASTER_ADDR = "127.0.0.1", MASTER_PORT = "19" } })
    os.remove(script)
    assert.truthy(err:find("there is no file x", 1, true), err)
    assert.equal(1, code)
    assert.is_true(require("gpipe.core").seconds() - began < 20)
  end)

  it("tells the others when it ends before them", function()
    local _, err, code = run [[
      pipe:step(x, y)
      if gp.rank() == 1 then return end
      while true do pipe:step(x, y) end]]
    has(err, "rank 1 has ended")
    assert.equal(1, code)
  end)
end)

describe("a rank that hangs", function()
  it("is named with its action within the watchdog's time, and the ranks can go on", function()
    local out, err = run([[
      print(select(2, pcall(pipe.step, pipe, x, y)))
      print(#gp.all_gather(1))]],
      { GPIPE_FAULT = "device=1,step=0,op=F,micro=0,action=hang" })
    has(out, "rank 1: no progress")
    has(out, "device 1 (cpu:1) is in 1F0")
    has(out, "\n3\n")
    has(err, "post-mortem of step")
  end)
end)

describe("a rank that is killed", function()
  it("ends the others with its name, and the launcher with its code", function()
    local _, err, code, seconds = run [[
      pipe:step(x, y)
      if gp.rank() == 1 then os.execute "kill -9 $PPID" end
      while true do pipe:step(x, y) end]]
    assert.truthy(err:match "rank 1 %(process %d+%) is gone: its connection was closed", err)
    has(err, "rank 1 was ended by signal 9")
    assert.equal(137, code)
    assert.truthy(seconds < 20)
  end)
end)
