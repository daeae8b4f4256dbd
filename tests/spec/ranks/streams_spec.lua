-- tests/spec/ranks/streams_spec.lua - asynchronous schedules, and updates without a barrier, give the
-- same bits over processes.

local child = dofile "tests/child.lua"
local jobs = dofile "tests/support/jobs.lua"

local TRAIN = "tests/support/ranks_stream.lua"
local WAYS = { "pipedream", "pipedream_2bw", "1f1b", "gpipe" }

local function lines_of(out, err, code)
  assert.equal("", err:gsub("gpipe: [^\n]*\n", "")) -- remarks about the options are no errors
  assert.equal(0, code)
  local lines = {}
  for line in out:gmatch "[^\n]+" do lines[#lines + 1] = line end
  return lines
end

local function check(way, ranks, devices, ways)
  local words = { TRAIN, tostring(devices), table.unpack(ways) }
  local whole = lines_of(child.run(words))
  local shared = lines_of(jobs.run(way, ranks, words))
  assert.truthy(#whole > 50)
  for i, line in ipairs(whole) do assert.equal(line, shared[i]) end
  assert.equal(#whole, #shared)
end

describe("a stream of mini-batches", function()
  it("has the bits of one process over two and three", function()
    check("unix", 2, 2, WAYS)
    check("unix", 3, 3, WAYS)
  end)

  it("has them where two processes share four devices, and one has none", function()
    check("unix", 2, 4, WAYS)
    check("unix", 3, 2, { "pipedream", "1f1b" })
  end)

  for _, way in ipairs { "tcp", "mpi" } do
    it("has them over " .. way, function()
      if jobs.missing(way) then return pending(jobs.missing(way)) end
      check(way, 2, 2, { "pipedream_2bw", "1f1b" })
    end)
  end
end)

-- ---- when something goes wrong -------------------------------------------------------------------

local STREAM = [[
local gp = require "gpipe"
gp.seed(1)
local model = gp.nn.Sequential {
  gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 8), gp.nn.Tanh(), gp.nn.Linear(8, 4),
}
local pipe <close> = gp.pipeline(model, {
  devices = 3, chunks = 4, loss = gp.nn.CrossEntropyLoss(), watchdog = 4, schedule = "pipedream",
})
pipe:use(gp.optim.SGD(pipe:parameters(), { lr = 0.1 }))
local x, y = gp.randn { 16, 8 }, gp.randint(0, 4, { 16 })
]]

local function run(text, environment)
  local script = child.file(STREAM .. text)
  local began = require("gpipe.core").seconds()
  local out, err, code = child.run({ "--ranks", "3", script }, { environment = environment })
  os.remove(script)
  return out, err, code, require("gpipe.core").seconds() - began
end

local function has(text, part) assert.truthy(text:find(part, 1, true), text) end

describe("a stream over ranks", function()
  it("ends on all of them with the same error if one fails", function()
    local out = run([[
      local good, message
      for step = 1, 20 do
        good, message = pcall(pipe.step, pipe, x, y)
        if not good then break end
      end
      local all = gp.all_gather(message)
      print(good, all[1] == all[2] and all[2] == all[3], message)
      print(select(2, pcall(pipe.step, pipe, x, y)))]],
      { GPIPE_FAULT = "device=1,step=5,op=B,action=fail" })
    has(out, "false\ttrue\t")
    has(out, "rank 1: GPIPE_FAULT asked for this failure")
    -- the last stage may have updated what it had or not when the others stop; if not, all are as
    -- they were, and the next step is the one that fails
    local again = out:match "\n(.*)$"
    assert.truthy(again:find("an earlier failure left some stages updated and others not", 1, true)
      or again:find("rank 1: GPIPE_FAULT asked for this failure", 1, true), out)
  end)

  it("says which rank was given another batch", function()
    local out = run [[
      pipe:step(x, y)
      print(select(2, pcall(pipe.step, pipe, x * (1 + gp.rank() // 2), y)))]]
    has(out, "rank 2 was given another batch than rank 0")
  end)

  it("ends with the error of a script that fails, soon", function()
    local _, err, code, seconds = run [[
      pipe:step(x, y)
      if gp.rank() == 1 then error "too much" end
      while true do pipe:step(x, y) end]]
    has(err, "too much")
    assert.equal(1, code)
    assert.truthy(seconds < 10)
  end)

  it("is given up if a device hangs, which is named", function()
    local out = run([[
      local good, message = true, nil
      while good do good, message = pcall(pipe.step, pipe, x, y) end
      print(message)]], { GPIPE_FAULT = "device=1,step=5,op=F,action=hang" })
    has(out, "rank 1: no progress")
  end)

  it("ends on the other ranks if one is killed, with its number", function()
    local _, err, _, seconds = run [[
      for step = 1, 1000 do
        pipe:step(x, y)
        if step == 20 and gp.rank() == 1 then
          os.execute("kill -9 " .. require("gpipe.core").process())
        end
      end]]
    has(err, "rank 1 (process ")
    has(err, "is gone")
    assert.truthy(seconds < 10)
  end)

  it("is finished by pipe:close, so that all ranks keep the same model", function()
    local out = run [[
      for _ = 1, 5 do pipe:step(x, y) end
      pipe:close()
      print(gp.barrier() == nil)]]
    has(out, "true")
  end)
end)
