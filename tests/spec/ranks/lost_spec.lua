-- tests/spec/ranks/lost_spec.lua - a rank that is killed, stopped or cut off: the others end with
-- its name and say what it did, whatever connects them, and the job can go on from a checkpoint.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local seconds = require("gpipe.core").seconds

local TRAIN = [[
local gp = require "gpipe"
gp.seed(1)
local model = gp.nn.Sequential {
  gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = 3, chunks = 4, loss = gp.nn.CrossEntropyLoss(), watchdog = 20,
})
local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
pipe:use(opt)
local x, y = gp.randn { 16, 8 }, gp.randint(0, 4, { 16 })
local function train_for_ever()
  while true do pipe:step(x, y) end
end
]]

-- Seconds after which a job counts as hung.
local LONGEST = os.getenv "GPIPE_SANITIZE" == "thread" and 60 or 15

local function has(text, part) assert.truthy(text:find(part, 1, true), text) end

local function run(way, text, variables)
  local script, began = child.file(TRAIN .. text), seconds()
  local out, err, code = jobs.run(way, 3, { script }, variables)
  -- no process of the job is left
  local left = child.shell("pgrep -f " .. child.quote("[/]" .. script:sub(2)))
  os.remove(script)
  return out, err, code, seconds() - began, left
end

local STOP = [[
  pipe:step(x, y)
  if gp.rank() == 1 then os.execute "(sleep 1.5; kill -STOP $PPID) &" end
  train_for_ever()]]

describe("a rank that is stopped", function()
  for _, way in ipairs { "unix", "tcp" } do
    it("is lost after the time of GPIPE_HEARTBEAT, and said so with what it did, over " .. way, function()
      local _, err, code, took, left = run(way, STOP, { GPIPE_HEARTBEAT = "2",
        GPIPE_FAULT = "device=1,op=F,step=1,micro=0,action=sleep:2.5" })
      assert.truthy(err:match("rank 1 %(process %d+%) is gone: no heartbeat for [23]%.%d s; "
        .. "%d%.%d s before, it was in its step"), err)
      has(err, "device 1 (cpu:1) is in 1F0 for ")
      assert.equal(1, code)
      assert.truthy(took < LONGEST)
      assert.equal("", left)
    end)
  end

  it("is lost in a call of all ranks too", function()
    local _, err = run("tcp", [[
      gp.barrier()
      if gp.rank() == 1 then os.execute "kill -STOP $PPID" end
      gp.all_gather(1)
      gp.all_gather(2)]], { GPIPE_HEARTBEAT = "2" })
    has(err, "rank 1 (process ")
    has(err, "is gone: no heartbeat for ")
  end)

  it("is not lost if the whole job is stopped and goes on", function()
    local out, err, code = run("tcp", [[
      local ids = {}
      for i, id in ipairs(gp.all_gather((require("gpipe.core").process()))) do ids[i] = tostring(id) end
      pipe:step(x, y)
      if gp.rank() == 0 then
        local list = table.concat(ids, " ")
        os.execute("(sleep 4; kill -CONT " .. list .. ") & kill -STOP " .. list)
      end
      local loss = pipe:step(x, y)
      gp.barrier()
      print(loss > 0)]], { GPIPE_HEARTBEAT = "2" })
    assert.equal("", err)
    assert.equal("true\n", out)
    assert.equal(0, code)
  end)

  it("is waited for where GPIPE_HEARTBEAT is 0", function()
    local out, err = run("tcp", [[
      if gp.rank() == 1 then os.execute "(sleep 4; kill -CONT $PPID) & kill -STOP $PPID" end
      print(pipe:step(x, y) > 0)]], { GPIPE_HEARTBEAT = "0" })
    assert.equal("", err)
    assert.equal("true\n", out)
  end)

  it("may not have too little time", function()
    local _, err = run("unix", "", { GPIPE_HEARTBEAT = "1" })
    has(err, "GPIPE_HEARTBEAT is 1, expected 2 seconds or more, or 0 (off)")
  end)
end)

describe("a rank that is killed", function()
  for _, way in ipairs { "tcp", "hosts" } do
    it("ends the others with its name over " .. way, function()
      local _, err, code, took, left = run(way, [[
        pipe:step(x, y)
        if gp.rank() == 1 then os.execute "kill -9 $PPID" end
        train_for_ever()]])
      assert.truthy(err:match "rank 1 %(process %d+%) is gone: its connection was closed", err)
      assert.truthy(code == 137 or code == 1)
      assert.truthy(took < LONGEST)
      assert.equal("", left)
    end)
  end
end)

describe("a rank over MPI", function()
  local missing = jobs.missing "mpi"

  it("that raises ends all with its error", function()
    if missing then return pending(missing) end
    local _, err, code, took, left = run("mpi", [[
      pipe:step(x, y)
      if gp.rank() == 1 then error "too much" end
      train_for_ever()]])
    has(err, "too much")
    assert.equal(1, code)
    assert.truthy(took < LONGEST)
    assert.equal("", left)
  end)

  it("that is stopped is lost, and mpirun ends", function()
    if missing then return pending(missing) end
    local _, err, code, took, left = run("mpi", STOP, { GPIPE_HEARTBEAT = "2" })
    has(err, "is gone: no heartbeat for ")
    assert.equal(1, code)
    assert.truthy(took < LONGEST + 10)
    assert.equal("", left)
  end)

  it("may end before the others", function()
    if missing then return pending(missing) end
    local out, _, code = run("mpi", [[
      pipe:step(x, y)
      if gp.rank() == 0 then os.execute "sleep 2" end
      print "done"]])
    assert.equal("done\n", out)
    assert.equal(0, code)
  end)

  it("ends with the code of os.exit", function()
    if missing then return pending(missing) end
    local _, _, code = run("mpi", "pipe:step(x, y) os.exit(75, true)")
    assert.equal(75, code)
  end)
end)

describe("a job that has lost a rank", function()
  local SCRIPT = TRAIN .. [[
    local how, path = arg[1], arg[2]
    local run <close> = gp.run(path, { pipe = pipe, opt = opt, steps = 12, every = 4,
      quiet = true, background = false })
    for step in run:steps() do
      local loss = pipe:step(x, y)
      run:log(step, { loss = loss })
      if how == "kill" and step == 10 and gp.rank() == 2 then os.execute "kill -9 $PPID" end
    end
    local bits = {}
    for name, value in pairs(pipe:state_dict()) do bits[#bits + 1] = name .. value:bytes() end
    table.sort(bits)
    run:finish()
    print(("%q"):format(table.concat(bits)))]]

  for _, way in ipairs { "unix", "tcp" } do
    it("ends with code 75 where there is a checkpoint, and goes on with the same bits, over " .. way, function()
      local script, path = child.file(SCRIPT), os.tmpname()
      os.remove(path)
      local whole = jobs.run(way, 3, { script, "whole", path .. "-whole" })
      local _, err, code = jobs.run(way, 3, { script, "kill", path })
      has(err, "rank 2 (process ")
      has(err, "a rank was lost; the same command goes on from the last checkpoint")
      assert.equal(75, code)
      local state <close> = assert(io.open(path .. "/state.json"))
      assert.matches('"state": ?"stopped"', state:read "a") -- it has not failed
      local out = jobs.run(way, 3, { script, "resume", path })
      assert.truthy(#whole > 100)
      assert.equal(whole, out)
      os.remove(script)
      child.shell("rm -rf " .. path .. " " .. path .. "-whole")
    end)
  end

  it("is started again by --restarts, and ends with the same bits", function()
    local again = SCRIPT:gsub("how == \"kill\" and step == 10", [[
      (step == 6 or step == 10) and how == "kill" and not io.open(path .. step)]])
      :gsub("os.execute \"kill", [[assert(io.open(path .. step, "w")):close() %0]])
    local script, path = child.file(again), os.tmpname()
    os.remove(path)
    local function start(...)
      local out, err, code = child.run { "--ranks", "3", ... }
      return out, err, code
    end
    local whole = start(script, "whole", path .. "-whole")
    local out, err, code = start("--restarts", "2", script, "kill", path)
    assert.equal(0, code, err)
    assert.truthy(#whole > 100)
    assert.equal(whole, out)
    has(err, "starting the job again (1 of 2)")
    has(err, "starting the job again (2 of 2)")
    child.shell("rm -rf " .. path .. "*")
    err, code = select(2, start("--restarts", "1", script, "kill", path))
    assert.equal(75, code, err)
    os.remove(script)
    child.shell("rm -rf " .. path .. "*")
  end)

  it("ends with code 1 where there is none", function()
    local script, path = child.file((SCRIPT:gsub("every = 4", "every = 0"))), os.tmpname()
    os.remove(path)
    local _, err, code = jobs.run("tcp", 3, { script, "kill", path })
    has(err, "rank 2 (process ")
    assert.truthy(code == 137 or code == 1)
    os.remove(script)
    child.shell("rm -rf " .. path)
  end)
end)
