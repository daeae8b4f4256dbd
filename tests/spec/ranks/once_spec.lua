-- tests/spec/ranks/once_spec.lua - what all ranks of a job have to say is shown once, whatever has
-- started them.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

-- Rank 1 fails first: it does not wait.
local SAME = [[
local gp = require "gpipe"
if gp.rank() == 0 then
  local begin = os.clock()
  while os.clock() - begin < 0.3 do end
end
error "the same everywhere"
]]

local SKIPS = [[
local gp = require "gpipe"
local nn, optim = gp.nn, gp.optim
local pipe <close> = gp.pipeline(nn.Sequential {nn.Linear(2, 2), nn.Linear(2, 2)}, {loss = nn.MSELoss()})
local matrices, rest = {}, {}
for _, p in ipairs(pipe:parameters()) do
  local list = p.name:match "weight" and matrices or rest
  list[#list + 1] = p
end
local muon, sgd = optim.Muon(matrices, {lr = 0.1}), optim.SGD(rest, {lr = 0.1})
pipe:step(gp.full({4, 2}, 0 / 0), gp.ones {4, 2})
muon:step()
sgd:step()
]]

local STOPS = [[
local gp = require "gpipe"
local nn = gp.nn
local pipe = gp.pipeline(nn.Sequential {nn.Linear(2, 2), nn.Linear(2, 2)}, {loss = nn.MSELoss()})
local opt = gp.optim.SGD(pipe:parameters(), {lr = 0.1})
local data = gp.data.tensors(gp.ones {8, 2}, gp.ones {8, 2})
local run = gp.run("a", {dir = arg[1], pipe = pipe, opt = opt, quiet = true, steps = 50,
  data = gp.data.epochs(data, {batch = 4, seed = 1})})
for step, x, y in run:steps() do
  run:log(step, {loss = pipe:step(x, y)})
  opt:step()
  if step == 3 and gp.rank() == 1 then
    os.execute("kill -USR1 " .. io.open("/proc/self/stat"):read "n")
  end
end
]]

-- How often a text stands in another one.
local function times(text, part)
  local count, at = 0, 1
  while true do
    local first, last = text:find(part, at, true)
    if not first then return count end
    count, at = count + 1, last + 1
  end
end

describe("what all ranks have to say", function()
  it("is an error that the launcher shows once", function()
    local _, err, code = jobs.script("unix", 3, SAME)
    assert.equal(1, code)
    assert.equal(1, times(err, "the same everywhere"))
    assert.equal(1, times(err, "stack traceback"))
  end)

  it("is a fault of the command line", function()
    for _ = 1, 5 do -- any rank may be the first
      local _, err, code = child.run { "--ranks", "2", "links", "--bogus" }
      assert.equal(2, code)
      assert.equal(1, times(err, "unknown option '--bogus'"))
    end
  end)

  it("is no error of one rank alone, whose own traceback is shown, too", function()
    local _, err, code = jobs.script("unix", 2, [[
      local gp = require "gpipe"
      if gp.rank() == 1 then error "of one" end
      gp.barrier()]])
    assert.equal(1, code)
    assert.equal(1, times(err, "rank 1: "))
    assert.equal(2, times(err, "of one"))
    assert.equal(2, times(err, "stack traceback"))
  end)

  for _, way in ipairs { "unix", "hosts", "mpi" } do
    it("is a remark of a step that rank 0 makes, over " .. way, function()
      if jobs.missing(way) then return pending(jobs.missing(way)) end
      local _, err, code = jobs.script(way, 2, SKIPS)
      assert.equal(0, code)
      assert.equal(1, times(err, "gpipe: the loss is nan"))
      assert.equal(1, times(err, "gpipe: the gradients of this step of optim.Muon are not finite"))
      assert.equal(1, times(err, "gpipe: the gradients of this step are not finite"))
    end)

    it("is that a run was stopped, over " .. way, function()
      if jobs.missing(way) then return pending(jobs.missing(way)) end
      local folder, script = os.tmpname(), child.file(STOPS)
      os.remove(folder)
      local _, err, code = jobs.run(way, 2, { script, folder })
      assert.equal(75, code)
      assert.equal(1, times(err, "stopped after step 3: SIGUSR1"))
      os.remove(script)
      os.execute("rm -r " .. folder)
    end)
  end
end)
