-- tests/spec/ranks/absent_spec.lua - a rank whose script stays away from what the others wait for:
-- it is named with the line that it is at, it is not left behind, and who is only slow is waited for.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"
local seconds = require("gpipe.core").seconds

local LIMIT = 1 -- seconds of the watchdog

-- The thread sanitizer holds back the signal that finds the line until the program blocks.
local finds_lines = os.getenv "GPIPE_SANITIZE" ~= "thread"

local TRAIN = [[
local gp = require "gpipe"
gp.seed(1)
local LIMIT = tonumber(os.getenv "LIMIT")
local model = gp.nn.Sequential {
  gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = gp.ranks(), chunks = 4, loss = gp.nn.CrossEntropyLoss(), watchdog = LIMIT > 0 and LIMIT,
})
local opt = gp.optim.SGD(pipe:parameters(), { lr = 0.1 })
pipe:use(opt)
local x, y = gp.randn { 16, 8 }, gp.randint(0, 4, { 16 })
local function busy(time)
  local clock = require "gpipe.core".seconds
  local begin = clock()
  while clock() - begin < time do end
end
local function turn()
  while true do end -- LINE
end
local function stuck(rank)
  if gp.rank() == rank then turn() end
end
pipe:step(x, y)
]]

local LINE = select(2, TRAIN:match "^(.-)%-%- LINE":gsub("\n", "")) + 1

local function has(text, part) assert.truthy(text:find(part, 1, true), text) end

local function run(way, ranks, text, variables)
  local script, began = child.file(TRAIN .. text), seconds()
  variables = variables or {}
  variables.LIMIT = variables.LIMIT or tostring(LIMIT)
  local out, err, code = jobs.run(way, ranks, { script }, variables)
  local left = child.shell("pgrep -f " .. child.quote("[/]" .. script:sub(2)))
  os.remove(script)
  assert.equal("", left) -- no process of the job is left
  return out, err, code, seconds() - began, script:match "[^/]*$"
end

-- The rank's name and where it is, in a call of this name.
local function names(err, rank, name, script)
  local text = err:match(("rank %d %%(process %%d+%%) has not come to '%s' at [^ ]*"):format(rank,
    name:gsub("%p", "%%%0")) .. " within [%d.]+ s: it is alive, ([^\n]*)")
  assert.truthy(text, err)
  has(text, finds_lines and ("in its script at %s:%d; "):format(script, LINE) or "in its script")
  has(text, "; its last call was 'pipe:step' at ")
  has(text, "; gp.barrier(seconds) waits longer")
end

describe("a rank whose script stays away", function()
  local CALLS = {
    ["pipe:step"] = "pipe:step(x, y)",
    ["gp.barrier"] = "gp.barrier()",
    ["gp.all_gather"] = "gp.all_gather(1)",
    ["gp.checkpoint.save"] = "gp.checkpoint.save(os.tmpname() .. 'folder', { pipe = pipe })",
    ["gp.pipeline"] = "gp.pipeline(gp.nn.Sequential { gp.nn.Linear(2, 2), gp.nn.ReLU() }, {})",
  }

  for name, text in pairs(CALLS) do
    it(("is named with its line in %s, within twice the watchdog's time"):format(name), function()
      local _, err, code, took, script = run("unix", 2, "stuck(1) " .. text)
      names(err, 1, name, script)
      assert.equal(1, code)
      assert.truthy(took < 2 * LIMIT + 8) -- the processes start and end, too
    end)
  end

  it("is named if it is rank 0", function()
    local _, err, code, _, script = run("unix", 2, "stuck(0) pipe:step(x, y)")
    names(err, 0, "pipe:step", script)
    assert.equal(1, code)
  end)

  it("is named between two steps of a stream", function()
    local _, err, code, _, script = run("unix", 2, [[
      pipe:close()
      local stream <close> = gp.pipeline(gp.nn.Sequential { gp.nn.Linear(8, 8), gp.nn.Linear(8, 4) },
        { chunks = 4, schedule = "pipedream_2bw", loss = gp.nn.CrossEntropyLoss(), watchdog = LIMIT })
      stream:use(gp.optim.SGD(stream:parameters(), { lr = 0.1 }))
      for step = 1, 8 do
        stream:step(x, y)
        if step == 4 then stuck(1) end
      end]])
    names(err, 1, "pipe:step", script)
    assert.equal(1, code)
  end)

  for _, way in ipairs { "tcp", "hosts", "mpi" } do
    it("is named, and is ended with its job, over " .. way, function()
      local missing = jobs.missing(way)
      if missing then return pending(missing) end
      local _, err, code, _, script = run(way, 2, "stuck(1) pipe:step(x, y)")
      names(err, 1, "pipe:step", script)
      has(err, "rank 0 goes on without this rank: rank 1 (process ")
      assert.equal(1, code)
    end)
  end

  it("ends by itself, also if it catches errors", function()
    local _, err = run("hosts", 2, [[
      if gp.rank() == 1 then while true do pcall(turn) end end
      gp.barrier()]])
    has(err, "; its script did not stop")
  end)

  it("is named by all others, and not those that wait as well", function()
    local _, err, _, _, script = run("hosts", 3, "stuck(2) pipe:step(x, y)")
    names(err, 2, "pipe:step", script)
    for rank = 0, 1 do
      assert.falsy(err:find(("rank %d %%(process %%d+%%) has not come"):format(rank)), err)
    end
  end)

  it("is named with the line of the coroutine that it runs", function()
    local _, err, _, _, script = run("unix", 2, [[
      local batches = coroutine.wrap(function() stuck(1) coroutine.yield(1) end)
      batches()
      gp.barrier()]])
    names(err, 1, "gp.barrier", script)
  end)

  it("is said to wait if it runs no Lua code", function()
    local _, err = run("unix", 2, [[
      if gp.rank() == 1 then io.popen("sleep 30; true"):read "a" end
      gp.barrier()]])
    has(err, "in its script, which waits or is in a function of C; its last call was 'pipe:step' at ")
    child.shell "pkill -f '^sleep 30$'"
  end)

  it("lets the job end with code 75 where there is a checkpoint", function()
    local path = os.tmpname()
    os.remove(path)
    local _, err, code = run("unix", 2, ([[
      local run <close> = gp.run(%q, { pipe = pipe, opt = opt, steps = 12, every = 4,
        quiet = true, background = false })
      for step in run:steps() do
        if step == 6 then stuck(1) end
        run:log(step, { loss = pipe:step(x, y) })
      end]]):format(path))
    has(err, "rank 1 (process ")
    has(err, "a rank was lost; the same command goes on from the last checkpoint")
    assert.equal(75, code)
    child.shell("rm -rf " .. path)
  end)
end)

describe("a rank that does not come before the first call", function()
  for _, way in ipairs { "unix", "mpi" } do
    it("is waited for as long as GPIPE_JOIN_SECONDS says, over " .. way, function()
      local missing = jobs.missing(way)
      if missing then return pending(missing) end
      local _, err, code = jobs.script(way, 2, [[
        local gp = require "gpipe"
        while gp.rank() == 1 do end
        gp.barrier()]], { GPIPE_JOIN_SECONDS = "3", GPIPE_WATCHDOG = "2" })
      has(err, "within 3 seconds")
      assert.equal(1, code)
    end)
  end
end)

describe("a rank that is slow", function()
  it("is waited for if it comes within the watchdog's time", function()
    local out, err, code = run("unix", 2, [[
      if gp.rank() == 1 then busy(2) end
      local a = pipe:step(x, y)
      if gp.rank() == 0 then busy(2) end
      gp.barrier()
      print(a > pipe:step(x, y))]], { LIMIT = "20" })
    assert.equal("", err)
    assert.equal("true\n", out)
    assert.equal(0, code)
  end)

  it("is waited for by gp.barrier as long as that says, and for ever without a watchdog", function()
    local SLOW = "if gp.rank() == 1 then busy(3) end "
    assert.equal("here\n", (run("unix", 2, SLOW .. "gp.barrier(40) print 'here'")))
    assert.equal("here\n", (run("unix", 2, SLOW .. "gp.barrier(false) print 'here'")))
    assert.equal("here\n",
      (run("unix", 2, SLOW .. "pipe:step(x, y) print 'here'", { LIMIT = "0" })))
    local _, err = run("unix", 2, SLOW .. "gp.barrier(0.5)", { LIMIT = "40" })
    has(err, "has not come to 'gp.barrier'")
    assert.equal("here\n", (run("unix", 2, [[
      gp.pipeline(gp.nn.Sequential { gp.nn.Linear(2, 2), gp.nn.ReLU() }, {}):close() -- sets none
      ]] .. SLOW .. "gp.barrier() print 'here'", { LIMIT = "40", GPIPE_WATCHDOG = "1" })))
  end)

  it("may not be waited for a negative time", function()
    local good, message = pcall(require("gpipe").barrier, -1)
    assert.is_false(good)
    has(message, "gp.barrier: seconds is -1, expected a number or true or false >= 0")
  end)

  it("is not taken for one that stays away when the whole job was stopped", function()
    local out, err, code = run("tcp", 2, [[
      local ids = {}
      for i, id in ipairs(gp.all_gather((require("gpipe.core").process()))) do
        ids[i] = tostring(id)
      end
      if gp.rank() == 0 then
        local list = table.concat(ids, " ")
        os.execute(("(sleep 0.5; kill -STOP %s; sleep 7; kill -CONT %s) &"):format(list, list))
      else
        busy(9)
      end
      gp.barrier()
      print "here"]], { LIMIT = "6" })
    assert.equal("", err)
    assert.equal("here\n", out)
    assert.equal(0, code)
  end)
end)
